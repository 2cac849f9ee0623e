"""Makes what the frontend takes from Python: the service's OpenAPI document, the causes of idle time, the palette.

`--check` fails when a committed file is stale. Run by `make generate`, checked by `make lint`.
"""

import json
import sys
from pathlib import Path

from fleetprof_analyzer.views.palette import style_pages
from fleetprof_api.report.idle_causes import IDLE_CAUSES
from fleetprof_webui.app import create_application

FRONTEND = Path(__file__).parent / "frontend"


def write_openapi() -> str:
    """The document of all routes."""
    return json.dumps(create_application(None, hosts=()).openapi(), indent=1, ensure_ascii=False) + "\n"


def write_idle_causes() -> str:
    """The class of time that draws each cause, as a module of TypeScript."""
    rows = "".join(f'  {name}: "{cause.shown_as}",\n' for name, cause in IDLE_CAUSES.items())
    return (
        "// Made by webui/generate.py from IDLE_CAUSES of fleetprof_api: the class of time that draws each cause.\n\n"
        f"export const IDLE_CAUSES = {{\n{rows}}} as const;\n"
    )


FILES = {
    "openapi.json": write_openapi,
    "src/api/idleCauses.ts": write_idle_causes,
    "src/theme/palette.css": style_pages,
}


def main() -> None:
    """Generates in place, or compares with what is there."""
    for name, write in FILES.items():
        path, fresh = FRONTEND / name, write()
        if "--check" not in sys.argv:
            path.write_text(fresh)
        elif not path.exists() or path.read_text() != fresh:
            raise SystemExit(f"stale: {name}; run `make generate` and commit the result")


if __name__ == "__main__":
    main()
