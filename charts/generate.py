"""Makes the chart's values.schema.json and the table of values in its README from the comments in values.yaml.

`--check` writes nothing and fails when something is stale. Guarantees: the schema is closed at every level that is
ours, every value has a description, and no comment is lost.

In values.yaml a comment above a value describes it; `# @schema {…}` adds JSON Schema keywords, where a bare `$ref`
names one of DEFINITIONS, and `setting: PROCESS.NAME` takes the bounds from that process's table of settings;
`## Title`, with a comment below it, begins a section of the README.
"""

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from fleetprof_api.choices import Collect
from fleetprof_api.process.settings import list_settings
from fleetprof_dashboards.boards import make_dashboards
from fleetprof_operator.hub.bounds import Bounds
from fleetprof_operator.settings import Settings as OperatorSettings
from fleetprof_webui.cluster.settings import Settings as WebUiSettings

SETTINGS: Final = {"operator": OperatorSettings, "webui": WebUiSettings}
CHART: Final = Path(__file__).parent / "fleetprof"
BEGIN: Final = "<!-- Made from values.yaml by charts/generate.py: begin -->\n"
END: Final = "<!-- Made from values.yaml by charts/generate.py: end -->\n"
TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}

_STRING: Final = {"type": "string"}
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_OF_KUBERNETES: Final[dict[str, Any]] = {"type": "object", "additionalProperties": {}}
_PORT: Final = {"type": "integer", "minimum": 1, "maximum": 65535}


def _closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


_QUANTITIES: Final = {"type": "object", "additionalProperties": {"$ref": "#/definitions/quantity"}}
_SELECTOR: Final = _closed(
    matchLabels={"type": "object", "additionalProperties": _STRING},
    matchExpressions={
        "type": "array",
        "items": _closed(key=_STRING, operator=_STRING, values={"type": "array", "items": _STRING}),
    },
)

_PEER: Final = _closed(
    ipBlock=_closed(cidr=_STRING, **{"except": {"type": "array", "items": _STRING}}),
    podSelector=_SELECTOR,
    namespaceSelector=_SELECTOR,
)


def _describe_bounds() -> dict[str, Any]:
    """The bounds of requests, as the operator reads them."""
    _, types = msgspec.json.schema_components([Bounds])
    fields: dict[str, Any] = types["Bounds"]["properties"]
    options = {"type": "array", "items": {"enum": [option.value for option in Collect]}, "uniqueItems": True}
    return _closed(
        **{
            name: options if name == "collect" else {key: field[key] for key in ("type", "minimum", "maximum")}
            for name, field in fields.items()
        }
    )


# Types of Kubernetes that several values have.
DEFINITIONS: Final[dict[str, Any]] = {
    # Names of objects: what the API server takes (RFC 1123 subdomains); the first may be left empty.
    "name": {"type": "string", "maxLength": 253, "pattern": f"^$|^{_LABEL}(\\.{_LABEL})*$"},
    "objectName": {"type": "string", "maxLength": 253, "pattern": f"^{_LABEL}(\\.{_LABEL})*$"},
    "digest": {"type": "string", "pattern": "^$|^sha256:[0-9a-f]{64}$"},
    "quantity": {
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"},
        ]
    },
    "quantities": {**_QUANTITIES, "type": ["object", "null"]},
    "amounts": _closed(cpu={"$ref": "#/definitions/quantity"}, memory={"$ref": "#/definitions/quantity"}),
    "resources": _closed(requests=_QUANTITIES, limits=_QUANTITIES),
    "toleration": _closed(
        key=_STRING,
        operator={"enum": ["Exists", "Equal"]},
        value=_STRING,
        effect={"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
        tolerationSeconds={"type": "integer"},
    ),
    # What Kubernetes itself checks better than a schema of ours could.
    "affinity": _closed(nodeAffinity=_OF_KUBERNETES, podAffinity=_OF_KUBERNETES, podAntiAffinity=_OF_KUBERNETES),
    "spread": {
        **_closed(
            maxSkew={"type": "integer", "minimum": 1},
            minDomains={"type": "integer", "minimum": 1},
            topologyKey=_STRING,
            whenUnsatisfiable={"enum": ["DoNotSchedule", "ScheduleAnyway"]},
            labelSelector=_SELECTOR,
            matchLabelKeys={"type": "array", "items": _STRING},
            nodeAffinityPolicy={"enum": ["Honor", "Ignore"]},
            nodeTaintsPolicy={"enum": ["Honor", "Ignore"]},
        ),
        "required": ["maxSkew", "topologyKey", "whenUnsatisfiable"],
    },
    "variable": {
        **_closed(
            name={"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "not": {"pattern": "^FLEETPROF_"}},
            value=_STRING,
            valueFrom=_OF_KUBERNETES,
        ),
        "required": ["name"],
    },
    "volume": {**_OF_KUBERNETES, "properties": {"name": _STRING}, "required": ["name"]},
    "mount": {
        **_closed(name=_STRING, mountPath=_STRING, subPath=_STRING, readOnly={"type": "boolean"}),
        "required": ["name", "mountPath"],
    },
    "bounds": _describe_bounds(),
    "owner": {
        **_closed(apiGroup=_STRING, resources={"type": "array", "items": _STRING, "minItems": 1}),
        "required": ["apiGroup", "resources"],
    },
    "peer": _PEER,
    "egress": _closed(
        ports={
            "type": "array",
            "items": _closed(protocol={"enum": ["TCP", "UDP", "SCTP"]}, port=_PORT, endPort=_PORT),
        },
        to={"type": "array", "items": _PEER},
    ),
}


class Undocumented(Exception):
    """A value lacks what values.yaml must say of it; the message names it."""


@dataclass(frozen=True, slots=True)
class Value:
    """One leaf of values.yaml: its path, default, description and JSON Schema."""

    path: tuple[str, ...]
    default: Any
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of the README with the values below it."""

    title: str
    text: str
    values: list[Value]


def read_sections(text: str) -> list[Section]:
    """The sections of a values.yaml. Raises Undocumented, and yaml.YAMLError when it is no YAML."""
    lines = text.splitlines()
    sections: list[Section] = []
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, node in root.value:
        comment = _comment_above(lines, key.start_mark.line)
        if comment and comment[0].startswith("# "):
            # What follows a title describes the section, or the value itself where the section holds no map.
            own = not isinstance(node, yaml.MappingNode)
            sections.append(Section(comment[0].removeprefix("# "), "" if own else " ".join(comment[1:]), []))
            comment = comment[1:] if own else []
        if not sections:
            raise Undocumented(f"{key.value}: values.yaml must begin with a section, '## Title'")
        sections[-1].values.extend(_leaves((), key, node, lines, comment))
    return sections


def _comment_above(lines: list[str], at: int) -> list[str]:
    first = at
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return [line.lstrip()[1:].removeprefix(" ") for line in lines[first:at]]


def _leaves(
    parent: tuple[str, ...], key: yaml.Node, node: yaml.Node, lines: list[str], comment: list[str]
) -> Iterator[Value]:
    path = (*parent, key.value)
    words = [line for line in comment if not line.startswith("@schema ")]
    rules = [line.removeprefix("@schema ") for line in comment if line.startswith("@schema ")]
    if isinstance(node, yaml.MappingNode) and node.value and not rules:
        if words:
            raise Undocumented(f"{'.'.join(path)}: is no value; write its comment above one of those below it")
        for inner, below in node.value:
            yield from _leaves(path, inner, below, lines, _comment_above(lines, inner.start_mark.line))
        return
    name = ".".join(path)
    if not words:
        raise Undocumented(f"{name}: has no comment that says what it is; write one above it")
    default = yaml.safe_load(yaml.serialize(node))
    schema: dict[str, Any] = {"description": " ".join(words)}
    rule = yaml.safe_load(rules[0]) if rules else {}
    if "$ref" not in rule:
        schema["type"] = TYPES[type(default)]
    schema |= _expand(rule)
    if schema.get("type") == "array" and "items" not in schema:
        raise Undocumented(f"{name}: is a list; say of what: # @schema {{items: …}}")
    if schema.get("type") == "object" and "additionalProperties" not in schema:
        raise Undocumented(f"{name}: is an open map; say of what: # @schema {{additionalProperties: …}}")
    yield Value(path, default, " ".join(words), schema)


def _expand(rule: dict[str, Any]) -> dict[str, Any]:
    expanded = {key: _expand(value) if isinstance(value, dict) else value for key, value in rule.items()}
    if "$ref" in expanded:
        expanded["$ref"] = f"#/definitions/{expanded['$ref']}"
    if "setting" in expanded:
        expanded |= _describe_setting(*expanded.pop("setting").split("."))
    return expanded


def _describe_setting(process: str, name: str) -> dict[str, Any]:
    """The bounds of a value that is a process's setting as it is."""
    (row,) = (row for row in list_settings(SETTINGS[process]) if row.name == name)
    if row.choices:
        return {"enum": list(row.choices)}
    return {"minimum": row.setting.least, "maximum": row.setting.most}


def make_schema(sections: list[Section]) -> str:
    """The closed JSON Schema of all values, as text."""
    root = _closed()
    for section in sections:
        for value in section.values:
            level = root["properties"]
            for part in value.path[:-1]:
                level = level.setdefault(part, _closed())["properties"]
            level[value.path[-1]] = value.schema
    # Helm gives every chart its parents' globals.
    root["properties"]["global"] = {"type": "object", "description": "Values of a parent chart; not read."}
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of fleetprof"}
    return json.dumps(schema | root | {"definitions": DEFINITIONS}, indent=2, ensure_ascii=False) + "\n"


def make_tables(sections: list[Section]) -> str:
    """The README's sections, as Markdown."""
    parts = []
    for section in sections:
        rows = [f"| `{'.'.join(v.path)}` | {_code(v.default)} | {_meaning(v)} |" for v in section.values]
        text = f"{section.text}\n\n" if section.text else ""
        parts.append("\n".join([f"### {section.title}\n\n{text}| value | default | meaning |", "|---|---|---|", *rows]))
    return "\n" + "\n\n".join(parts) + "\n\n"


def _code(default: Any) -> str:
    return f"`{json.dumps(default, ensure_ascii=False)}`"


def _meaning(value: Value) -> str:
    choices = value.schema.get("enum")
    named = f" One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else ""
    return (value.description + named).replace("|", "\\|")


def main() -> None:
    """Writes what is stale, or says so."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when something is stale")
    only_check = parser.parse_args().check
    sections = read_sections((CHART / "values.yaml").read_text())
    readme = (CHART / "README.md").read_text()
    parts = re.split(f"{re.escape(BEGIN)}|{re.escape(END)}", readme)
    if len(parts) != 3:
        raise SystemExit(
            f"{CHART / 'README.md'}: must hold the two lines between which the values stand:\n{BEGIN}{END}"
        )
    wanted = {
        CHART / "values.schema.json": make_schema(sections),
        CHART / "README.md": parts[0] + BEGIN + make_tables(sections) + END + parts[2],
    }
    wanted |= {CHART / "dashboards" / name: text for name, text in make_dashboards()}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if only_check and stale:
        names = ", ".join(path.name for path in stale)
        raise SystemExit(f"stale files of the chart: {names}; run `make generate` and commit the result")
    for path in stale:
        path.write_text(wanted[path])


if __name__ == "__main__":
    main()
