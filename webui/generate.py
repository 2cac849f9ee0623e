"""Makes the service's OpenAPI document for the frontend; `--check` fails when the committed one is stale.

Run by `make generate`, checked by `make lint`.
"""

import json
import sys
from pathlib import Path

from fleetprof_webui.app import create_application

DOCUMENT = Path(__file__).parent / "frontend" / "openapi.json"


def main() -> None:
    """Generates in place, or compares with what is there."""
    fresh = json.dumps(create_application(None, hosts=()).openapi(), indent=1, ensure_ascii=False) + "\n"
    if "--check" not in sys.argv:
        DOCUMENT.write_text(fresh)
    elif not DOCUMENT.exists() or DOCUMENT.read_text() != fresh:
        raise SystemExit(f"stale: {DOCUMENT.name}; run `make generate` and commit the result")


if __name__ == "__main__":
    main()
