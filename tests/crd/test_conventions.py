"""The rules of reviewers of Kubernetes APIs (API conventions, Kube-API-Linter), held over the CRDs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.kubernetes.chart import read_objects

FOLDER = Path(__file__).parents[2] / "crds"
CRDS = {
    name: read_objects((FOLDER / f"fleetprof.io_{name}.yaml").read_text()).items[0]
    for name in ("profilerequests", "profilepolicies")
}
VERSIONS = {name: crd["spec"]["versions"][0] for name, crd in CRDS.items()}
SCHEMAS = {name: version["schema"]["openAPIV3Schema"] for name, version in VERSIONS.items()}
each_kind = pytest.mark.parametrize("kind", CRDS)
MESSAGE_LENGTH = 32768


def walk(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema within a schema with its path; items as `[]`, values of maps as `{}`."""
    yield path, node
    for name, inner in node.get("properties", {}).items():
        yield from walk(inner, f"{path}.{name}" if path else name)
    if "items" in node:
        yield from walk(node["items"], f"{path}[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from walk(node["additionalProperties"], f"{path}{{}}")


NODES = [
    (path, node)
    for schema in SCHEMAS.values()
    for path, node in walk(schema)
    if path not in ("metadata", "metadata.name")
]
IDS = [path or "object" for path, _ in NODES]
FIELDS = [(path, node) for path, node in NODES if not path.endswith(("[]", "{}"))]
each_node = pytest.mark.parametrize(("path", "node"), NODES, ids=IDS)


@pytest.mark.parametrize(("path", "node"), FIELDS, ids=[path or "object" for path, _ in FIELDS])
def test_every_field_is_described_in_a_sentence(path: str, node: dict[str, Any]) -> None:
    description = node["description"]
    assert description[0].isupper()
    assert description.endswith(".") or path == ""
    assert "  " not in description


# What kubectl explain does not show by itself, and only of what people write.
BOUNDS = ("minimum", "maximum", "maxLength", "maxItems", "default")
BOUNDED = [
    (path, name, node[name])
    for path, node in FIELDS
    if path.startswith("spec.") and node.get("type") != "object"
    for name in BOUNDS
    if name in node
]


@pytest.mark.parametrize(("path", "name", "value"), BOUNDED, ids=[f"{path}:{name}" for path, name, _ in BOUNDED])
def test_the_bounds_and_the_default_of_a_field_are_in_its_description(path: str, name: str, value: object) -> None:
    descriptions = [node["description"] for other, node in FIELDS if other == path and node.get(name) == value]
    assert any(str(value).lower() in description.lower() for description in descriptions), descriptions


def test_the_rules_between_fields_are_in_the_descriptions() -> None:
    described = {path: node["description"] for path, node in FIELDS}
    assert "Exactly one of spec.target.workload and spec.target.selector must be set." in described["spec.target"]
    assert "spec.window.warmupIterations needs spec.window.iterations." in described["spec.window"]
    assert "cannot be changed" not in described["spec.window"]


@each_node
def test_types_are_those_that_the_conventions_allow(path: str, node: dict[str, Any]) -> None:
    assert node.get("type", "int-or-string") in ("object", "array", "string", "integer", "boolean", "int-or-string")
    if node.get("type") == "integer":
        assert node["format"] in ("int32", "int64")
        assert node["minimum"] >= 0
    assert not {"nullable", "oneOf", "not"} & set(node)
    assert "x-kubernetes-preserve-unknown-fields" not in node


@each_node
def test_everything_is_bounded(path: str, node: dict[str, Any]) -> None:
    match node.get("type"):
        case "string":
            assert "enum" in node or node["maxLength"] <= MESSAGE_LENGTH
        case "array":
            assert node["maxItems"] <= 1024
        case "object" if "additionalProperties" in node:
            assert node["maxProperties"] <= 16
        case "integer" if path.startswith("spec"):
            assert node["minimum"] < node["maximum"]


@each_node
def test_lists_say_how_they_are_merged(path: str, node: dict[str, Any]) -> None:
    if node.get("type") == "array":
        kind = node["x-kubernetes-list-type"]
        assert kind in ("atomic", "set", "map")
        assert (kind == "map") == ("x-kubernetes-list-map-keys" in node)


@each_node
def test_names_follow_the_conventions(path: str, node: dict[str, Any]) -> None:
    name = path.rpartition(".")[2].removesuffix("[]").removesuffix("{}")
    assert name == "" or name[0].islower()
    assert name.lower() not in ("phase", "state")
    assert not name.endswith(("Timestamp", "Duration", "Timeout", "Ref", "Id", "Url"))
    # A number that is a time or a size says its unit.
    if node.get("type") == "integer" and any(word in name.lower() for word in ("duration", "deadline", "ttl", "size")):
        assert any(unit in name for unit in ("Seconds", "Millis", "Bytes"))
    if node.get("type") == "boolean":
        assert path.endswith("spec.suspend"), "an enum can grow, a boolean cannot"
    for value in node.get("enum", []):
        assert value[0].isupper(), "enums are CamelCase"


@each_kind
def test_the_status_is_a_subresource_with_mergeable_conditions_first(kind: str) -> None:
    assert VERSIONS[kind]["subresources"] == {"status": {}}
    status = SCHEMAS[kind]["properties"]["status"]["properties"]
    assert next(iter(status)) == "conditions"
    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert set(status["conditions"]["items"]["required"]) == {
        "type",
        "status",
        "lastTransitionTime",
        "reason",
        "message",
    }
    assert status["observedGeneration"]["format"] == "int64"
    assert "required" not in SCHEMAS[kind]["properties"]["status"]


def test_every_rule_says_the_field_and_what_to_do() -> None:
    for path, node in NODES:
        for rule in node.get("x-kubernetes-validations", []):
            assert len(rule["message"]) <= 200
            # The API server puts the field in front; a rule of an object names the field that it is about.
            if node.get("type") == "object" and "[]" not in path:
                assert "spec." in rule["message"] or "metadata." in rule["message"], rule["message"]
            assert "?x" not in rule["rule"], "optional selectors cost a hundred times the budget"


def test_every_field_of_a_requests_spec_is_immutable_or_known_to_change() -> None:
    spec = SCHEMAS["profilerequests"]["properties"]["spec"]
    frozen = {
        name
        for name in spec["properties"]
        for rule in spec["x-kubernetes-validations"]
        if f"self.{name} == oldSelf.{name}" in rule["rule"] and f"spec.{name} cannot be changed" in rule["message"]
    }
    assert set(spec["properties"]) - frozen == {"suspend", "ttlSecondsAfterFinished"}


@pytest.mark.parametrize(("kind", "short"), [("profilerequests", "profreq"), ("profilepolicies", "profpol")])
def test_names_are_ours_and_nothing_is_in_all(kind: str, short: str) -> None:
    names = CRDS[kind]["spec"]["names"]
    assert (names["shortNames"], names["categories"]) == ([short], ["fleetprof"])
    assert CRDS[kind]["metadata"]["name"] == f"{names['plural']}.{CRDS[kind]['spec']['group']}"
    assert CRDS[kind]["spec"]["scope"] == "Namespaced"


@pytest.mark.parametrize(
    ("kind", "shown", "wide"),
    [
        (
            "profilerequests",
            ["Target", "Captured", "Ranks", "State", "Queue", "Age"],
            ["Busy-Permille", "Straggler", "Requester", "Report"],
        ),
        ("profilepolicies", ["Mode", "Ready", "Fired", "Captured", "Suppressed", "Age"], ["Last-Fired"]),
    ],
)
def test_every_column_is_described(kind: str, shown: list[str], wide: list[str]) -> None:
    columns = VERSIONS[kind]["additionalPrinterColumns"]
    assert all(column["description"].endswith(".") for column in columns)
    assert [c["name"] for c in columns if not c.get("priority")] == shown
    assert [c["name"] for c in columns if c.get("priority")] == wide
