"""The same requests pass the CRD and the typed Python.

One difference is known: Python takes an explicit null for a field that was left out, the API server refuses it.
"""

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from fleetprof_api.request import ProfileRequest
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.documents.crds import as_json_schema, documents
from harness.kubernetes.documents.requests import REQUESTS, VALID
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.fixture(scope="module")
def validator(schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    """The structural part of the CRD's spec."""
    return jsonschema.Draft202012Validator(as_json_schema(schema["properties"]["spec"]))


def broken_structure(document: object) -> list[str]:
    """The faults that Python finds, leaving out the rules between fields, which are CEL's in the CRD."""
    try:
        ProfileRequest.model_validate(document)
    except ValidationError as error:
        return [str(detail["loc"]) for detail in error.errors() if detail["type"] != "rule"]
    return []


def with_spec(spec: Any) -> dict[str, Any]:
    return VALID | {"spec": spec}


@settings(max_examples=400, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_what_has_the_form_for_python_has_it_for_the_crd_and_the_reverse(
    schema: dict[str, Any], validator: jsonschema.Draft202012Validator, data: st.DataObject
) -> None:
    document = with_spec(data.draw(documents(schema["properties"]["spec"])))
    wrong_for_crd = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document["spec"])]
    wrong_for_python = broken_structure(document)
    assert bool(wrong_for_crd) == bool(wrong_for_python), (wrong_for_crd, wrong_for_python)


def follow_most_rules(spec: dict[str, Any], draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """Makes a request of right parts most likely right as a whole, so that the rules' other side is tried as well."""
    for name, alternatives in (
        ("target", ["workload", "selector"]),
        ("ranks", ["list", "sample", "every"]),
        ("window", ["iterations", "durationMillis"]),
    ):
        part = spec.get(name, {})
        if given := [field for field in alternatives if field in part]:
            kept = draw(st.sampled_from(given))
            for field in set(given) - {kept}:
                del part[field]
        elif name == "ranks":
            spec.pop(name, None)
    if not spec["target"]:
        spec["target"] = VALID["spec"]["target"]
    if "capture" in spec and draw(st.booleans()):
        for name in ("window", "ranks", "collect", "iteration"):
            spec.pop(name, None)
    else:
        spec.pop("capture", None)
        window = spec.setdefault("window", {})
        if not set(window) & {"iterations", "durationMillis"}:
            window["iterations"] = 5
        if "iterations" in window:
            spec.pop("iteration", None)
    for requirement in spec["target"].get("selector", {}).get("matchExpressions", []):
        if requirement["operator"] in ("Exists", "DoesNotExist"):
            requirement.pop("values", None)


@pytest.mark.cluster
@settings(max_examples=300, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_the_api_server_takes_what_python_takes_and_nothing_else(
    api: ApiServer, schema: dict[str, Any], data: st.DataObject
) -> None:
    wrong_in_100 = data.draw(st.sampled_from([0, 0, 0, 2]))
    spec = data.draw(documents(schema["properties"]["spec"], wrong_in_100))
    if not wrong_in_100:
        follow_most_rules(spec, data.draw)
    document = with_spec(spec)
    code, answer = api.call("POST", f"{REQUESTS}?dryRun=All&fieldValidation=Strict", document)
    try:
        request = ProfileRequest.model_validate(document)
    except ValidationError:
        request = None
    event("taken" if request else "refused")
    assert code == (201 if request else 422) or (request is None and code == 400), answer
    if request is not None:
        # And both read the same out of it.
        read = ProfileRequest.model_validate({**answer, "metadata": VALID["metadata"]})
        assert json.loads(read.to_json())["spec"] == json.loads(request.to_json())["spec"]
