"""The one who made a request, or that nobody vouches for it; and the log that says what they had captured."""

import io
import json
import logging
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.pods import CHANGED_BY_ANNOTATION, POLICY_AUTHOR_ANNOTATION, REQUESTED_BY_ANNOTATION
from fleetprof_api.process.log import JsonLines
from fleetprof_operator.log import AUDIT, set_up_logging
from fleetprof_operator.profilerequests.audit import audit_ended, audit_taken
from fleetprof_operator.profilerequests.records import to_request
from fleetprof_operator.profilerequests.requesters import UNKNOWN, Requesters, read_note
from fleetprof_operator.profilerequests.status import Fact
from harness.kubernetes.scripted_cluster import ScriptedCluster

GUARD = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/fleetprof-requester"
SPEC = {"target": {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}}, "window": {"iterations": 5}}


def made(at: str, by: str | None = "ada") -> dict[str, Any]:
    annotations = {REQUESTED_BY_ANNOTATION: by} if by is not None else {}
    metadata = {
        "name": "five",
        "namespace": "team-a",
        "uid": "u-1",
        "creationTimestamp": at,
        "annotations": annotations,
    }
    return {"apiVersion": "fleetprof.io/v1alpha1", "kind": "ProfileRequest", "metadata": metadata, "spec": SPEC}


def guard(at: str) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": at}}


@pytest.mark.attack
@pytest.mark.parametrize(
    ("request_", "guarded", "expected"),
    [
        (made("2026-11-22T12:01:01Z"), guard("2026-11-22T12:00:00Z"), "ada"),
        # In the guard's first minute an API server may not heed it yet; before, anybody could write what they liked.
        (made("2026-11-22T12:01:00Z"), guard("2026-11-22T12:00:00Z"), UNKNOWN),
        (made("2026-11-21T12:00:00Z"), guard("2026-11-22T12:00:00Z"), UNKNOWN),
        (made("2026-11-22T12:01:01Z"), None, UNKNOWN),
        (made("2026-11-22T12:01:01Z", by=None), guard("2026-11-22T12:00:00Z"), UNKNOWN),
        (made("2026-11-22T12:01:01Z", by=""), guard("2026-11-22T12:00:00Z"), UNKNOWN),
        (made("nonsense"), guard("2026-11-22T12:00:00Z"), UNKNOWN),
        (made("2026-11-22T12:01:01Z"), {"metadata": {}}, UNKNOWN),
        (made("2026-11-22T12:01:01Z", by="a" * 300), guard("2026-11-22T12:00:00Z"), "a" * 255 + "…"),
    ],
)
def test_a_note_counts_when_its_request_is_younger_than_the_guard(
    request_: dict[str, Any], guarded: dict[str, Any] | None, expected: str
) -> None:
    assert read_note(request_, guarded) == expected


async def test_who_vouches_is_asked_once_and_a_name_told_before_stays() -> None:
    cluster = ScriptedCluster({GUARD: guard("2026-11-22T12:00:00Z")})
    request = made("2026-11-22T13:00:00Z")
    assert await Requesters(cluster, GUARD).find(request) == "ada"
    assert await Requesters(cluster, "").find(request) == UNKNOWN
    assert await Requesters(cluster, f"{GUARD}-gone").find(request) == UNKNOWN
    request["status"] = {"requester": "grace"}
    assert await Requesters(cluster, GUARD).find(request) == "grace"
    assert cluster.calls == [f"GET {GUARD}", f"GET {GUARD}-gone"]


OPERATOR = "system:serviceaccount:fleetprof-system:fleetprof-operator"


@pytest.mark.attack
@pytest.mark.parametrize(
    ("by", "at", "author", "expected"),
    [
        (OPERATOR, "2026-11-22T13:00:00Z", "ada", f"{OPERATOR} for ada"),
        (OPERATOR, "2026-11-22T13:00:00Z", UNKNOWN, f"{OPERATOR} for {UNKNOWN}"),
        (OPERATOR, "2026-11-22T13:00:00Z", None, OPERATOR),
        ("eve", "2026-11-22T13:00:00Z", "ada", "eve"),  # whoever makes one of their own names nobody else
        (OPERATOR, "2026-11-22T12:00:30Z", "ada", UNKNOWN),  # before the guard
        (OPERATOR, "2026-11-22T13:00:00Z", "a" * 300, f"{OPERATOR} for {'a' * 300}"[:255] + "…"),
    ],
)
async def test_a_request_of_a_policy_names_its_author(by: str, at: str, author: str | None, expected: str) -> None:
    request = made(at, by=by)
    if author is not None:
        request["metadata"]["annotations"][POLICY_AUTHOR_ANNOTATION] = author
    cluster = ScriptedCluster({GUARD: guard("2026-11-22T12:00:00Z")})
    assert await Requesters(cluster, GUARD, OPERATOR).find(request) == expected


@pytest.mark.attack
@pytest.mark.parametrize(
    ("at", "expected"), [("2026-11-22T13:00:00Z", "ada"), ("2026-11-22T11:00:00Z", UNKNOWN)], ids=["younger", "older"]
)
async def test_the_author_of_a_policy_counts_when_it_is_younger_than_the_guard(at: str, expected: str) -> None:
    policy = {"metadata": {"creationTimestamp": at, "annotations": {CHANGED_BY_ANNOTATION: "ada"}}}
    cluster = ScriptedCluster({GUARD: guard("2026-11-22T12:00:00Z")})
    assert await Requesters(cluster, GUARD, OPERATOR).find_author(policy) == expected


@pytest.mark.attack
def test_a_forged_note_does_not_get_into_the_stored_request() -> None:
    assert to_request(made("2026-11-22T12:00:00Z", by="eve")).metadata.annotations == {}


@pytest.fixture
def lines() -> Any:
    stream = io.StringIO()
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    set_up_logging("error")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    root.handlers[:] = [handler]
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:] = before
    root.setLevel(level)


def test_the_audit_log_says_who_what_when_and_with_what_outcome_whatever_the_level(lines: Any) -> None:
    body = made("2026-11-22T12:00:00Z", by="x")
    audit_taken(body["metadata"], 'eve\n{"audit": "ended"}', to_request(body))
    capture = pb.CaptureStatus(ranks=[pb.CaptureEvent(state=pb.UPLOADED), pb.CaptureEvent(state=pb.FAILED)])
    audit_ended(body["metadata"], "ada", "Job/llama", Fact("False", "Partial", "x" * 900), capture)
    taken, ended = lines()
    assert {taken["logger"], ended["logger"]} == {AUDIT}
    common = {"namespace": "team-a", "name": "five", "capture": "u-1", "target": "Job/llama"}
    assert common.items() <= taken.items()
    assert common.items() <= ended.items()
    assert (taken["audit"], taken["requester"]) == ("taken", 'eve\n{"audit": "ended"}')  # one line all the same
    assert taken["window"] == {"iterations": 5}
    assert taken["created"] == "2026-11-22T12:00:00Z"
    assert (ended["audit"], ended["requester"], ended["outcome"]) == ("ended", "ada", "Partial")
    assert (ended["ranks"]["uploaded"], ended["ranks"]["failed"], len(ended["message"])) == (1, 1, 500)
