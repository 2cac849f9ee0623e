"""Makes what follows from the types of a request, and writes it where it belongs (see `main`).

The CRD, the chart's template of it, rules and fields in docs/request.md, and the types that read a stored request
without pydantic. `--check` writes nothing and fails when something is stale. Run by `make generate`, checked by
`make lint`.
"""

import sys
from pathlib import Path
from typing import Final

from fleetprof_crds.definition import find_schema, make_definition
from fleetprof_crds.definition_file import write_file, write_template
from fleetprof_crds.fields_page import write_page
from fleetprof_crds.stored_request import write_stored_request

ROOT: Final = Path(__file__).parents[1]
FILE: Final = ROOT / "crds/fleetprof.io_profilerequests.yaml"
TEMPLATE: Final = ROOT / "charts/fleetprof/templates/crds/profilerequests.yaml"
PAGE: Final = ROOT / "docs/request.md"
STORED: Final = ROOT / "api/fleetprof_api/stored_request.py"


def main() -> None:
    """Generates in place, or compares with what is there."""
    definition = make_definition()
    made = {
        FILE: write_file(definition),
        TEMPLATE: write_template(definition),
        PAGE: write_page(PAGE.read_text(), find_schema(definition)),
        STORED: write_stored_request(),
    }
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        if stale:
            names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
            raise SystemExit(f"stale generated files: {names}; run `make generate` and commit the result")
        return
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path])


if __name__ == "__main__":
    main()
