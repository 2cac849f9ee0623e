"""The CRD as text: the file that is applied to a cluster, and the chart's template of it.

Guarantees: the template is the file line by line, with what the chart adds: its switch, its labels, and the policy that
keeps the CRD, and with it every request, when the release goes. Fields that older API servers do not know are left out
for those.
"""

import re
from typing import Any, Final

import yaml

_FILE_HEAD: Final = """\
# Made from the types in {source} by crds/generate.py: change those, then `make generate`.
"""
_TEMPLATE_NOTE: Final = """\
{{{{- /* Made from the types in {source} by crds/generate.py: change those, then `make generate`. */}}}}
"""
_TEMPLATE_HEAD: Final = """\
{{- if .Values.crds.enabled }}
"""
_METADATA: Final = """\
  annotations:
    helm.sh/resource-policy: keep
  labels:
    {{- include "fleetprof.labels" (dict "root" . "component" "crd") | nindent 4 }}
"""
_LONG_TEXT: Final = 90
_TAIL: Final = "{{- end }}\n"
# Helm asks the API server to refuse fields that it does not know.
_SELECTABLE: Final = re.compile(r" {4}selectableFields:\n(?: {4}- .*\n)+")
_SELECTABLE_SINCE: Final = '{{- if semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version }}\n'


class _Dumper(yaml.SafeDumper):
    """Lists of plain values in one line, long texts folded, nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    plain = not any(isinstance(item, dict | list) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=plain)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=">" if len(text) > _LONG_TEXT else None)


_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(str, _represent_text)


def write_file(definition: dict[str, Any], source: str) -> str:
    """The CRD's YAML; `source` is the folder of the types that it is made of."""
    return _FILE_HEAD.format(source=source) + _dump(definition)


def write_template(definition: dict[str, Any], source: str) -> str:
    """The chart's template of the CRD; `source` as in `write_file`."""
    body = _dump(definition)
    assert "{{" not in body, "Helm would take it for its own"
    body, found = _SELECTABLE.subn(lambda match: f"    {_SELECTABLE_SINCE}{match[0]}    {_TAIL}", body)
    assert found == 1, "the CRD's selectable fields are written otherwise"
    begin, name, rest = body.partition(f"  name: {definition['metadata']['name']}\n")
    return f"{_TEMPLATE_NOTE.format(source=source)}{_TEMPLATE_HEAD}{begin}{name}{_METADATA}{rest}{_TAIL}"


def _dump(definition: dict[str, Any]) -> str:
    return yaml.dump(definition, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)
