"""The API server refuses every wrong request with field and rule, and the typed Python refuses the same ones.

A rule of several fields, or of more than a bound, stands beside its CEL in Python: both say it in the same words.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fleetprof_api.request import InvalidRequest, parse_request
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.documents.requests import REQUESTS, RIGHT, WRONG, with_value

IDS = [f"{path}={value!r}"[:60] for path, value, _, _ in WRONG]
each_right_one = pytest.mark.parametrize(
    ("path", "value"), RIGHT, ids=[f"{path}={value!r}"[:60] for path, value in RIGHT]
)


def rules_of(schema: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The CEL of a new request, which is neither about a change nor a text's form."""
    for rule in schema.get("x-kubernetes-validations", []):
        if "oldSelf" not in rule["rule"] and "size(self.metadata" not in rule["rule"]:
            yield rule
    for inner in schema.get("properties", {}).values():
        yield from rules_of(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from rules_of(schema[key])


@each_right_one
def test_python_takes_a_right_request(path: str, value: Any) -> None:
    parse_request(with_value(path, value))


@pytest.mark.cluster
@each_right_one
def test_the_api_server_takes_it_as_well(api: ApiServer, path: str, value: Any) -> None:
    code, answer = api.call("POST", f"{REQUESTS}?dryRun=All&fieldValidation=Strict", with_value(path, value))
    assert code == 201, answer


@pytest.mark.cluster
@pytest.mark.parametrize(("path", "value", "field", "words"), WRONG, ids=IDS)
def test_the_api_server_names_field_and_rule(api: ApiServer, path: str, value: Any, field: str, words: str) -> None:
    document = with_value(path, value)
    code, answer = api.call("POST", f"{REQUESTS}?dryRun=All&fieldValidation=Strict", document)
    assert code in (400, 422), answer
    assert words in answer["message"]
    assert field in answer["message"]
    causes = [cause["field"] for cause in answer.get("details", {}).get("causes", [])]
    assert not causes or field in causes


@pytest.mark.parametrize(("path", "value", "field", "words"), WRONG, ids=IDS)
def test_python_refuses_it_as_well(schema: dict[str, Any], path: str, value: Any, field: str, words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_request(with_value(path, value))
    problems = caught.value.problems
    # The same field, or the object that it is in.
    fields = [problem.partition(":")[0] for problem in problems]
    assert any(field.startswith(re.split(r"\[|\.a$", named)[0]) for named in fields)
    for rule in rules_of(schema):
        if words in rule["message"] and not rule["rule"].startswith("self.matches("):
            assert f"{field}: {rule['message'].removeprefix(f'{field} ')}" in problems


def test_every_rule_in_cel_refuses_one_of_these(schema: dict[str, Any]) -> None:
    for rule in rules_of(schema):
        assert any(words in rule["message"] for _, _, _, words in WRONG), rule["message"]
