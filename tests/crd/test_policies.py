"""The API server and the typed Python take the same policies, and refuse the same with field and rule."""

import re
from typing import Any

import pytest
from fleetprof_api.policy import Budget, InvalidPolicy, PolicyStatus, ProfilePolicy, dump_template, parse_policy
from fleetprof_api.request.fields import FieldRow, list_fields
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.documents.policies import POLICIES, RIGHT, VALID, WRONG, with_value

ROWS = [*list_fields(ProfilePolicy), *list_fields(PolicyStatus, "status.")]
IDS = [f"{path}={value!r}"[:60] for path, value, _, _ in WRONG]
each_right_one = pytest.mark.parametrize(
    ("path", "value"), RIGHT, ids=[f"{path}={value!r}"[:60] for path, value in RIGHT]
)


@pytest.mark.parametrize("row", ROWS, ids=[row.path for row in ROWS])
def test_every_field_is_described(row: FieldRow) -> None:
    assert row.rule != "any value" or row.path == "status"
    assert row.meaning.endswith(".")


@each_right_one
def test_python_takes_a_right_policy(path: str, value: Any) -> None:
    parse_policy(with_value(path, value))


@pytest.mark.cluster
@each_right_one
def test_the_api_server_takes_it_as_well(api: ApiServer, path: str, value: Any) -> None:
    code, answer = api.call("POST", f"{POLICIES}?dryRun=All&fieldValidation=Strict", with_value(path, value))
    assert code == 201, answer


@pytest.mark.cluster
@pytest.mark.parametrize(("path", "value", "field", "words"), WRONG, ids=IDS)
def test_the_api_server_names_field_and_rule(api: ApiServer, path: str, value: Any, field: str, words: str) -> None:
    document = with_value(path, value)
    code, answer = api.call("POST", f"{POLICIES}?dryRun=All&fieldValidation=Strict", document)
    assert code == 422, answer
    assert words in answer["message"]
    assert field in answer["message"]


@pytest.mark.parametrize(("path", "value", "field", "words"), WRONG, ids=IDS)
def test_python_refuses_it_as_well(path: str, value: Any, field: str, words: str) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse_policy(with_value(path, value))
    # Of a list the API server names the item that is there twice, Python the list.
    field = re.sub(r"\[1\]$", "", field)
    assert any(problem.startswith(field) for problem in caught.value.problems), caught.value.problems


@pytest.mark.cluster
def test_defaults_are_those_of_python(api: ApiServer) -> None:
    code, answer = api.call("POST", f"{POLICIES}?dryRun=All&fieldValidation=Strict", VALID)
    assert code == 201, answer
    assert answer["spec"]["mode"] == "Capture"
    assert answer["spec"]["budget"] == Budget().model_dump(by_alias=True)


def test_a_template_is_a_spec_as_it_was_written() -> None:
    written = {"window": {"iterations": 5}, "traces": "Auto", "limits": {"maxTraceBytes": 1 << 20}}
    policy = parse_policy(with_value("spec.template.spec", written))
    assert dump_template(policy.spec.template) == written
