"""A stored request as read back, without pydantic, is what was stored."""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from fleetprof_api.request import parse_request
from fleetprof_api.stored_request import ProfileRequest
from harness.kubernetes.documents.requests import RIGHT, with_value

CASES = [
    *RIGHT,
    ("spec.analysis.kernelClasses", [{"pattern": "my_*_kernel", "class": "Communication"}]),
    (
        "spec.target",
        {
            "selector": {
                "matchLabels": {"app": "train"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}],
            }
        },
    ),
]


def assert_same(stored: Any, typed: Any) -> None:
    """Field by field, as far as the stored one has fields."""
    if isinstance(stored, msgspec.Struct):
        for name in stored.__struct_fields__:
            assert_same(getattr(stored, name), getattr(typed, name))
    elif isinstance(stored, list):
        for one, other in zip(stored, typed, strict=True):
            assert_same(one, other)
    elif isinstance(stored, Mapping):
        assert dict(stored) == dict(typed)
    else:
        assert stored == typed


@pytest.mark.parametrize(("path", "value"), CASES, ids=[f"{path}={value!r}"[:60] for path, value in CASES])
def test_every_field_that_is_read_has_the_value_that_was_stored(path: str, value: Any) -> None:
    request = parse_request(with_value(path, value))
    assert_same(msgspec.json.decode(request.to_json(), type=ProfileRequest), request)


def test_a_request_of_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    stored = msgspec.json.decode(b'{"new": 1, "spec": {"newer": [], "collect": ["Newest"]}}', type=ProfileRequest)
    assert stored.spec.collect == ["Newest"]
    assert stored.spec.window is None


def test_reading_needs_no_pydantic() -> None:
    code = "import sys, fleetprof_api.stored_request; print({'pydantic', 'yaml'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"
