"""Makes what follows from the types of our kinds, and writes it where it belongs (see `main`).

Of each kind the CRD, the chart's template of it, rules and fields in its page of docs/, and the types that read what is
stored of it. `--check` writes nothing and fails when something is stale. Run by
`make generate`, checked by `make lint`.
"""

import sys
from pathlib import Path
from typing import Final

from fleetprof_crds.definition import find_schema, make_definition
from fleetprof_crds.definition_file import write_file, write_template
from fleetprof_crds.fields_page import write_page
from fleetprof_crds.kinds import POLICY, REQUEST
from fleetprof_crds.stored_types import STORED_POLICY_STATUS, STORED_REQUEST, write_stored

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = {REQUEST: ROOT / "docs/request.md", POLICY: ROOT / "docs/policy.md"}
STORED: Final = {
    ROOT / "api/fleetprof_api/stored_request.py": STORED_REQUEST,
    ROOT / "api/fleetprof_api/policy/stored_status.py": STORED_POLICY_STATUS,
}


def main() -> None:
    """Generates in place, or compares with what is there."""
    made = {path: write_stored(kind) for path, kind in STORED.items()}
    for kind, page in PAGES.items():
        definition = make_definition(kind)
        made[ROOT / f"crds/fleetprof.io_{kind.plural}.yaml"] = write_file(definition, kind.source)
        made[ROOT / f"charts/fleetprof/templates/crds/{kind.plural}.yaml"] = write_template(definition, kind.source)
        made[page] = write_page(page.read_text(), kind, find_schema(definition))
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
