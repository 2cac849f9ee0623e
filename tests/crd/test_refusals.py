"""The API server refuses every wrong request with field and rule, and the typed Python refuses the same ones."""

import re
from typing import Any

import pytest
from fleetprof_api.request import InvalidRequest, parse_request
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.wrong_requests import REQUESTS, WRONG, with_value

IDS = [f"{path}={value!r}"[:60] for path, value, _, _ in WRONG]


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
def test_python_refuses_it_as_well(path: str, value: Any, field: str, words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_request(with_value(path, value))
    # The same field, or the object that it is in.
    fields = [problem.partition(":")[0] for problem in caught.value.problems]
    assert any(field.startswith(re.split(r"\[|\.a$", named)[0]) for named in fields)
