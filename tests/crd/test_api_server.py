"""The CRD at a real API server: defaults, what may change, what users of kubectl see."""

import copy
import secrets
from typing import Any

import pytest
from harness.kubernetes.api_server import ApiServer, since
from harness.kubernetes.documents.requests import REQUESTS, VALID

pytestmark = pytest.mark.cluster


@pytest.fixture
def name(api: ApiServer) -> str:
    """A request that is there, with every optional field but `suspend: true`."""
    document = copy.deepcopy(VALID)
    document["metadata"]["name"] = f"look-{secrets.token_hex(4)}"
    document["spec"] |= {
        "ranks": {"list": [0, 8]},
        "collect": ["Shapes"],
        "redact": ["Paths"],
        "limits": {"maxTraceBytes": 1 << 29},
        "storage": {"profile": "cold"},
        "analysis": {"parallelism": 2, "resources": {"requests": {"cpu": 1, "memory": "2Gi"}}},
        "ttlSecondsAfterFinished": 3600,
        "suspend": True,
    }
    code, answer = api.call("POST", f"{REQUESTS}?fieldValidation=Strict", document)
    assert code == 201, answer
    made: str = answer["metadata"]["name"]
    return made


def test_defaults_are_filled_in(api: ApiServer) -> None:
    code, answer = api.call("POST", f"{REQUESTS}?dryRun=All&fieldValidation=Strict", VALID)
    assert code == 201, answer
    limits = {"maxTraceBytes": 1 << 30, "maxSlowdownPercent": 200}
    defaults = {
        "traces": "Full",
        "canary": "Auto",
        "threadSamples": "Auto",
        "conflict": "Wait",
        "limits": limits,
        "activeDeadlineSeconds": 900,
        "suspend": False,
    }
    assert answer["spec"] == VALID["spec"] | defaults


CHANGES: list[tuple[str, Any]] = [
    ("target", {"workload": {"name": "other"}}),
    ("ranks", None),
    ("ranks", {"list": [0]}),
    ("window", {"iterations": 6}),
    ("capture", {"stacks": {}}),
    ("iteration", {"range": "a"}),
    ("activities", ["Device"]),
    ("collect", None),
    ("collect", ["Shapes", "Stacks"]),
    ("traces", "Auto"),
    ("threadSamples", "Never"),
    ("redact", None),
    ("limits", {"maxTraceBytes": 1 << 31}),
    ("limits", None),
    ("canary", "Never"),
    ("conflict", "Fail"),
    ("activeDeadlineSeconds", 60),
    ("missingRanksGraceSeconds", 60),
    ("storage", None),
    ("analysis", {"parallelism": 3}),
]


@pytest.mark.parametrize(("field", "value"), CHANGES, ids=[f"{field}={value}" for field, value in CHANGES])
def test_what_was_asked_cannot_be_changed(api: ApiServer, name: str, field: str, value: Any) -> None:
    code, answer = api.call("PATCH", f"{REQUESTS}/{name}", {"spec": {field: value}})
    assert code == 422
    assert f"spec.{field} cannot be changed; create another ProfileRequest" in answer["message"]


def test_every_field_of_spec_is_tried(schema: dict[str, Any]) -> None:
    changeable = {"suspend", "ttlSecondsAfterFinished"}
    assert {field for field, _ in CHANGES} == set(schema["properties"]["spec"]["properties"]) - changeable


@pytest.mark.parametrize("value", [0, 60, None])
def test_the_time_to_live_may_change(api: ApiServer, name: str, value: int | None) -> None:
    code, answer = api.call("PATCH", f"{REQUESTS}/{name}", {"spec": {"ttlSecondsAfterFinished": value}})
    assert code == 200, answer
    assert answer["spec"].get("ttlSecondsAfterFinished") == value


def test_a_suspended_request_can_begin_and_never_be_suspended_again(api: ApiServer, name: str) -> None:
    code, answer = api.call("PATCH", f"{REQUESTS}/{name}", {"spec": {"suspend": False}})
    assert code == 200, answer
    code, answer = api.call("PATCH", f"{REQUESTS}/{name}", {"spec": {"suspend": True}})
    assert code == 422
    assert "spec.suspend can only go from true to false" in answer["message"]
    assert answer["details"]["causes"][0]["field"] == "spec.suspend"


STATUS = {
    "observedGeneration": 1,
    "target": "Job/llama",
    "ranks": {"targeted": 512, "armed": 512, "captured": 511, "uploaded": 510, "failed": 1},
    "conditions": [
        {
            "type": "Succeeded",
            "status": "True",
            "reason": "PartiallyCaptured",
            "message": "511 of 512 ranks",
            "lastTransitionTime": "2026-11-21T09:45:12Z",
            "observedGeneration": 1,
        }
    ],
    "headline": {"busyPermille": 613, "straggler": "rank 17", "topFinding": "rank 17 reads slowly"},
    "requester": "lena",
    "reportURL": "https://ui.example/reports/default/uid",
    "storeURL": "s3://traces/v1/default/uid/report.html",
    "completionTime": "2026-11-21T09:46:12Z",
}


def test_the_table_shows_where_a_request_stands(api: ApiServer, name: str) -> None:
    code, answer = api.call("PATCH", f"{REQUESTS}/{name}/status", {"status": STATUS})
    assert code == 200, answer
    head, row = (line.split() for line in api.kubectl("get", "profreq", name).stdout.splitlines())
    assert head == ["NAME", "TARGET", "CAPTURED", "RANKS", "STATE", "QUEUE", "AGE"]
    assert row[:5] == [name, "Job/llama", "511", "512", "PartiallyCaptured"]
    head, row = (line.split() for line in api.kubectl("get", "profreq", name, "-o", "wide").stdout.splitlines())
    assert head[6:] == ["AGE", "BUSY-PERMILLE", "STRAGGLER", "REQUESTER", "REPORT"]
    assert row[6:] == ["613", "rank", "17", "lena", "https://ui.example/reports/default/uid"]


def test_the_table_shows_the_place_of_a_request_that_waits_for_its_turn(api: ApiServer, name: str) -> None:
    waiting = {
        "type": "Succeeded",
        "status": "Unknown",
        "reason": "Waiting",
        "message": "place 2 in the queue",
        "lastTransitionTime": "2026-11-21T09:45:12Z",
    }
    status = {"target": "Job/llama", "conditions": [waiting], "queuePosition": 2}
    assert api.call("PATCH", f"{REQUESTS}/{name}/status", {"status": status})[0] == 200
    _, row = (line.split() for line in api.kubectl("get", "profreq", name).stdout.splitlines())
    assert row[:4] == [name, "Job/llama", "Waiting", "2"]


def test_one_word_lists_all_objects_of_ours(api: ApiServer, name: str) -> None:
    listed = api.kubectl("get", "fleetprof", "-o", "name").stdout.split()
    assert f"profilerequest.fleetprof.io/{name}" in listed


def test_a_status_does_not_change_what_was_asked_and_the_reverse(api: ApiServer, name: str) -> None:
    code, answer = api.call("PATCH", f"{REQUESTS}/{name}", {"status": STATUS})
    assert code == 200
    assert "status" not in answer
    code, answer = api.call("PATCH", f"{REQUESTS}/{name}/status", {"spec": {"suspend": False}})
    assert (code, answer["spec"]["suspend"]) == (200, True)


def test_a_wait_for_either_end_returns(api: ApiServer, name: str) -> None:
    api.call("PATCH", f"{REQUESTS}/{name}/status", {"status": STATUS})
    for what in ("jsonpath={.status.completionTime}", "condition=Succeeded"):
        result = api.kubectl("wait", f"--for={what}", f"profreq/{name}", "--timeout=20s")
        assert result.returncode == 0, result.stderr


@since(31)
@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("spec.target.workload.kind=Job", True),
        ("spec.target.workload.kind=JobSet", False),
        ("spec.target.workload.name=llama", True),
        ("spec.traces=Full", True),
        ("spec.traces=Auto", False),
        ("spec.suspend=true", True),
    ],
)
def test_requests_are_found_by_field(api: ApiServer, name: str, selector: str, found: bool) -> None:
    shown = api.kubectl("get", "profreq", "-o", "name", "--field-selector", f"{selector},metadata.name={name}").stdout
    assert shown.strip() == (f"profilerequest.fleetprof.io/{name}" if found else "")


def test_explain_reads_like_documentation(api: ApiServer) -> None:
    shown = " ".join(api.kubectl("explain", "profreq.spec.window.iterations").stdout.split())
    assert "How many whole training iterations to record, the same ones on every rank." in shown
    shown = " ".join(api.kubectl("explain", "profreq").stdout.split())
    assert "Delete the request to take the capture back." in shown
    fields = api.kubectl("explain", "profreq", "--recursive").stdout
    for name in ("matchExpressions", "ttlSecondsAfterFinished", "exposedCommunicationPermille", "reportURL"):
        assert name in fields
