"""The chart's values: documented or fail, closed at every level, and the generated files are those of values.yaml."""

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from fleetprof_api import __version__
from fleetprof_operator.hub.bounds import Bounds

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/fleetprof"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


@pytest.fixture(scope="module")
def generate() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("chart_generate", ROOT / "charts/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["chart_generate"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["chart_generate"]


def test_schema_and_readme_are_made_from_the_values(generate: ModuleType) -> None:
    sections = generate.read_sections((CHART / "values.yaml").read_text())
    assert generate.make_schema(sections) == (CHART / "values.schema.json").read_text()
    assert generate.make_tables(sections) in (CHART / "README.md").read_text()


def test_the_bounds_of_requests_are_the_operators_own_unless_set() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["bounds"]["default"] == msgspec.to_builtins(Bounds())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\n", "must begin with a section"),
        ("## A\na:\n  b: 1\n", "a.b: has no comment"),
        ("## A\na:\n  # B.\n  b: []\n", "a.b: is a list; say of what"),
        ("## A\na:\n  # B.\n  b: {}\n", "a.b: is an open map; say of what"),
        ("## A\na:\n  # Lost.\n  b:\n    # C.\n    c: 1\n", "a.b: is no value"),
    ],
)
def test_a_value_that_says_too_little_of_itself_is_refused(generate: ModuleType, text: str, words: str) -> None:
    with pytest.raises(generate.Undocumented, match=re.escape(words)):
        generate.read_sections(text)


def test_comments_become_description_rule_and_section(generate: ModuleType) -> None:
    text = """
## Title
# Prose
# goes on.
a:
  # What
  # it is.
  # @schema {enum: [x, y]}
  b: x
## Last
# Alone.
c: 1
"""
    one, two = generate.read_sections(text)
    assert (one.title, one.text, two.title, two.text) == ("Title", "Prose goes on.", "Last", "")
    assert [(v.path, v.default, v.schema) for s in (one, two) for v in s.values] == [
        (("a", "b"), "x", {"description": "What it is.", "type": "string", "enum": ["x", "y"]}),
        (("c",), 1, {"description": "Alone.", "type": "integer"}),
    ]


def levels(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield path, schema
        for key, value in schema.items():
            yield from levels(value, f"{path}/{key}")


def test_no_level_of_the_schema_is_open() -> None:
    # Maps of names to values say what the values are; a parent chart's globals are not ours to close.
    open_levels = [path for path, level in levels(SCHEMA) if level.get("additionalProperties", True) is True]
    assert open_levels == ["/properties/global"]


def test_the_schema_is_one_and_the_defaults_obey_it() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(yaml.safe_load((CHART / "values.yaml").read_text()), SCHEMA)


def test_every_value_is_used_by_a_template(generate: ModuleType) -> None:
    templates = "".join(path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file())
    for section in generate.read_sections((CHART / "values.yaml").read_text()):
        for value in section.values:
            # By itself, or with the map that it stands in.
            names = [value.path[-1], ".".join(value.path[:-1])]
            assert any(re.search(rf"\.{re.escape(name)}\b", templates) for name in names if name), value.path


def test_chart_and_code_are_of_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
    images = [image["image"] for image in yaml.safe_load(chart["annotations"]["artifacthub.io/images"])]
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    ours = [
        f"{values['image']['registry']}/{name}:{__version__}" for name in ("operator", "sidecar", "analyzer", "webui")
    ]
    assert images == [*ours, values["store"]["bundled"]["image"]]
