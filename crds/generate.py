"""Makes what follows from the CRD and from the request's types: the chart's template, the tables of docs/request.md.

`--check` writes nothing and fails when something is stale. Run by `make generate`, checked by `make lint`.
Guarantees: the template is the CRD line by line, with what the chart adds: its switch, its labels, and the policy that
keeps the CRD, and with it every request, when the release goes. Fields that older API servers do not know are left out
for those.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fleetprof_api.request import ProfileRequest, Status
from fleetprof_api.request.fields import FieldRow, list_fields

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "crds/fleetprof.io_profilerequests.yaml"
TEMPLATE: Final = ROOT / "charts/fleetprof/templates/crds/profilerequests.yaml"
PAGE: Final = ROOT / "docs/request.md"

_HEAD: Final = """\
{{- /* Made from crds/fleetprof.io_profilerequests.yaml by crds/generate.py: change that one, then `make generate`. */}}
{{- if .Values.crds.enabled }}
"""
_METADATA: Final = """\
  annotations:
    helm.sh/resource-policy: keep
  labels:
    {{- include "fleetprof.labels" (dict "root" . "component" "crd") | nindent 4 }}
"""
_TAIL: Final = "{{- end }}\n"
# Helm asks the API server to refuse fields that it does not know.
_SELECTABLE: Final = re.compile(r" {4}selectableFields:\n(?: {4}- .*\n)+")
_SELECTABLE_SINCE: Final = '{{- if semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version }}\n'
_FIELDS: Final = "<!-- The fields of {}, made by crds/generate.py: {} -->\n"


def make_template(crd: str) -> str:
    """The chart's template of a CRD's text."""
    body = "".join(line for line in crd.splitlines(keepends=True) if not line.startswith("#"))
    assert "{{" not in body, "Helm would take it for its own"
    body, found = _SELECTABLE.subn(lambda match: f"    {_SELECTABLE_SINCE}{match[0]}    {_TAIL}", body)
    assert found == 1, "the CRD's selectable fields are written otherwise"
    begin, name, rest = body.partition("  name: profilerequests.fleetprof.io\n")
    return f"{_HEAD}{begin}{name}{_METADATA}{rest}{_TAIL}"


def make_page(text: str) -> str:
    """The page about requests, with its tables as the types are now."""
    text = _with_table(text, "a request", [row for row in list_fields(ProfileRequest) if row.path != "status"])
    return _with_table(text, "its status", list_fields(Status, "status."))


def _with_table(text: str, what: str, rows: Iterable[FieldRow]) -> str:
    before, begin, rest = text.partition(_FIELDS.format(what, "begin"))
    _, end, after = rest.partition(_FIELDS.format(what, "end"))
    assert begin, f"docs/request.md has lost the place of the table about {what}"
    assert end, f"docs/request.md has lost the end of the table about {what}"
    lines = ["| field | rule | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{row.path}` | {row.rule} | {row.default} | {row.meaning} |" for row in rows]
    table = "\n".join(lines)
    return f"{before}{begin}{table}\n{end}{after}"


def main() -> None:
    """Generates in place, or compares with what is there."""
    made = {TEMPLATE: make_template(SOURCE.read_text()), PAGE: make_page(PAGE.read_text())}
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
