"""The status of a request: what the hub says → what is written, as tables and as properties."""

from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.request import Status
from fleetprof_operator.profilerequests.headline import find_page, read_headline
from fleetprof_operator.profilerequests.retention import find_due
from fleetprof_operator.profilerequests.status import (
    SUMMARY,
    TYPES,
    Fact,
    build_status,
    count_ranks,
    differ_much,
    find_state,
    finish,
    format_time,
    from_capture,
    is_finished,
    list_failures,
    parse_time,
)
from fleetprof_store.location import parse_capture_address, parse_location
from hypothesis import given
from hypothesis import strategies as st

SECOND = 10**9
AT = 1_795_000_000 * SECOND


def capture(finished: bool = False, **conditions: tuple[str, str]) -> pb.CaptureStatus:
    return pb.CaptureStatus(
        conditions=[pb.Condition(type=k, status=s, reason=r, message=f"{r}!") for k, (s, r) in conditions.items()],
        finished=finished,
    )


def pairs(status: Any) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}


def written(known: Any, wanted: Any, at: int = AT, generation: int = 1) -> Any:
    return build_status(known, wanted, target="Job/llama", generation=generation, now_unix_ns=at)


def test_all_conditions_are_there_from_the_first_write_on() -> None:
    status = written({}, {"facts": {"Succeeded": Fact("Unknown", "Waiting", "no pods")}})
    assert pairs(status) == dict.fromkeys([*TYPES, "Ready"], ("Unknown", "Waiting")) | {"Stalled": ("False", "Waiting")}
    assert [c["type"] for c in status["conditions"]] == [*TYPES, *SUMMARY]
    assert {c["lastTransitionTime"] for c in status["conditions"]} == {format_time(AT)}
    assert {c["message"] for c in status["conditions"]} == {"no pods", "not begun", "nothing has failed"}
    Status.model_validate(status)


@pytest.mark.parametrize(
    ("succeeded", "ready", "stalled"),
    [
        (Fact("Unknown", "Suspended", "begin it"), ("Unknown", "begin it"), ("False", "nothing has failed")),
        (Fact("Unknown", "Capturing", "2 ranks"), ("Unknown", "2 ranks"), ("False", "nothing has failed")),
        (Fact("True", "Complete", "all there"), ("True", "all there"), ("False", "nothing has failed")),
        (Fact("False", "TimedOut", "no pods"), ("False", "no pods"), ("True", "no pods")),
    ],
)
def test_tools_that_know_no_request_are_told_how_it_stands(
    succeeded: Fact, ready: tuple[str, str], stalled: tuple[str, str]
) -> None:
    status = written(written({}, {"facts": {}}), {"facts": {"Succeeded": succeeded}})
    assert {c["type"]: (c["status"], c["message"]) for c in status["conditions"] if c["type"] in SUMMARY} == {
        "Ready": ready,
        "Stalled": stalled,
    }
    later = written(status, {"facts": {}}, generation=2)  # what Succeeded said before still holds
    assert pairs(later) == pairs(status)


def test_a_transition_is_that_of_the_status_alone() -> None:
    first = written({}, {"facts": {"Captured": Fact("Unknown", "Capturing")}})
    same = written(first, {"facts": {"Captured": Fact("Unknown", "Uploading", "1 of 2")}}, AT + SECOND)
    other = written(same, {"facts": {"Captured": Fact("True", "AllCaptured")}}, AT + 2 * SECOND)
    times = [next(c for c in s["conditions"] if c["type"] == "Captured")["lastTransitionTime"] for s in (same, other)]
    assert times == [format_time(AT), format_time(AT + 2 * SECOND)]


def test_a_finished_capture_that_is_not_stored_yet_is_not_told_as_finished() -> None:
    going = from_capture(capture(Succeeded=("True", "Complete")))
    assert going["facts"]["Succeeded"] == Fact("Unknown", "Finishing", "Complete!")
    ended = from_capture(capture(finished=True, Succeeded=("True", "Complete")))
    assert ended["facts"]["Succeeded"].status == "True"


def test_an_end_leaves_nothing_open() -> None:
    status = written({}, finish({"facts": {"Succeeded": Fact("False", "Invalid", "spec: wrong")}}, AT))
    assert pairs(status) == dict.fromkeys([*TYPES, "Ready"], ("False", "Invalid")) | {"Stalled": ("True", "Invalid")}
    assert {c["message"] for c in status["conditions"]} == {
        "spec: wrong",
        "not done: the request ended with Invalid",
    }
    assert status["completionTime"] == format_time(AT)
    assert (is_finished(status), find_state(status)) == (True, "Invalid")


def test_other_peoples_conditions_stay() -> None:
    theirs = {"type": "example.com/Reviewed", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "x"}
    assert theirs in written({"conditions": [theirs]}, {"facts": {}})["conditions"]


def test_texts_keep_to_the_bounds() -> None:
    status = build_status({}, {"facts": {"Succeeded": Fact("Unknown", "Waiting", "m" * 40_000)}},
                          target="t" * 400, generation=1, now_unix_ns=AT)  # fmt: skip
    assert len(status["target"]) == 330
    assert max(len(c["message"]) for c in status["conditions"]) == 2000


def test_counts() -> None:
    ranks = [
        pb.CaptureEvent(state=pb.ASKED),
        pb.CaptureEvent(state=pb.STARTED, armed_unix_ns=1),
        pb.CaptureEvent(state=pb.WRITTEN, armed_unix_ns=1),
        pb.CaptureEvent(state=pb.UPLOADED, armed_unix_ns=1),
        pb.CaptureEvent(state=pb.FAILED, armed_unix_ns=1),
        pb.CaptureEvent(state=pb.FAILED),
    ]
    assert count_ranks(ranks) == {"targeted": 6, "armed": 4, "captured": 2, "uploaded": 1, "failed": 2}


def failed(rank: int, reason: str, message: str = "") -> pb.CaptureEvent:
    return pb.CaptureEvent(rank=rank, state=pb.FAILED, reason=reason, message=message)


def test_why_ranks_failed_is_told_by_reason_the_most_frequent_first() -> None:
    ranks = [
        failed(3, "Busy", "its own profiler runs"),
        failed(7, "ProcessKilled", "it ended by SIGKILL"),
        failed(5, "ProcessKilled", "it ended by SIGSEGV"),
        failed(5, "ProcessKilled", "and again"),  # torchrun restarted it
        pb.CaptureEvent(rank=0, state=pb.UPLOADED),
        failed(9, "Cancelled"),
    ]
    killed = {"reason": "ProcessKilled", "ranks": 2, "firstRanks": [5, 7], "message": "it ended by SIGSEGV"}
    assert from_capture(pb.CaptureStatus(ranks=ranks))["failures"] == [
        killed,
        {"reason": "Busy", "ranks": 1, "firstRanks": [3], "message": "its own profiler runs"},
        {"reason": "Cancelled", "ranks": 1, "firstRanks": [9]},
    ]
    assert "failures" not in from_capture(pb.CaptureStatus(ranks=[pb.CaptureEvent(state=pb.UPLOADED)]))


def test_ten_thousand_ranks_that_failed_fit_into_a_status() -> None:
    ranks = [failed(rank, f"Reason{rank % 20}", "m" * 4000) for rank in range(10_000)]
    failures = list_failures(reversed(ranks))
    Status.model_validate({"failures": failures})
    assert len(failures) == 8
    assert failures[0] == {
        "reason": "Reason0",
        "ranks": 500,
        "firstRanks": list(range(0, 200, 20)),
        "message": "m" * 511 + "…",
    }


@pytest.mark.parametrize(
    ("change", "much"),
    [
        ({}, False),
        ({"ranks": {"armed": 3}}, False),
        ({"facts": {"Succeeded": Fact("Unknown", "Waiting", "another sentence")}}, False),
        ({"facts": {"Succeeded": Fact("Unknown", "Capturing")}}, True),
        ({"completionTime": "2026-11-21T12:00:00Z"}, True),
    ],
)
def test_what_is_written_at_once(change: Any, much: bool) -> None:
    known = written({}, {"facts": {"Succeeded": Fact("Unknown", "Waiting", "a sentence")}})
    assert differ_much(known, written(known, {"facts": {}} | change)) is much


facts = st.dictionaries(
    st.sampled_from(TYPES),
    st.builds(Fact, st.sampled_from(["True", "False", "Unknown"]), st.sampled_from(["A", "B"]), st.text(max_size=20)),
)


@given(st.lists(facts, max_size=6), st.integers(1, 5))
def test_whatever_is_told_the_status_is_valid_and_settles(steps: list[dict[str, Fact]], generation: int) -> None:
    status: Any = {}
    for number, wanted in enumerate(steps):
        before = pairs(status) if status else {}
        times = {c["type"]: c["lastTransitionTime"] for c in status.get("conditions", [])}
        status = written(status, {"facts": wanted}, AT + number * SECOND, generation)
        Status.model_validate(status)
        assert status["observedGeneration"] == generation
        for condition in status["conditions"]:
            kind = condition["type"]
            moved = kind not in before or before[kind][0] != condition["status"]
            assert (condition["lastTransitionTime"] == format_time(AT + number * SECOND)) or not moved
            assert moved or condition["lastTransitionTime"] == times[kind]
        # Told again, nothing is to be written.
        assert written(status, {"facts": wanted}, AT + 100 * SECOND, generation) == status


@given(st.integers(0, 4_000_000_000))
def test_times_go_there_and_back(seconds: int) -> None:
    assert parse_time(format_time(seconds * SECOND)) == seconds * SECOND


@pytest.mark.parametrize(
    ("spec", "status", "due"),
    [
        ({}, {"completionTime": "2026-11-21T12:00:00Z"}, None),
        ({"ttlSecondsAfterFinished": 60}, {}, None),
        ({"ttlSecondsAfterFinished": 60}, {"completionTime": "2026-11-21T12:00:00Z"}, "2026-11-21T12:01:00Z"),
        ({"ttlSecondsAfterFinished": 0}, {"completionTime": "2026-11-21T12:00:00Z"}, "2026-11-21T12:00:00Z"),
        ({"ttlSecondsAfterFinished": 60}, {"completionTime": "yesterday"}, None),
    ],
)
def test_when_a_request_is_deleted(spec: Any, status: Any, due: str | None) -> None:
    body = {"metadata": {"uid": "u"}, "spec": spec, "status": status}
    assert find_due(body) == (parse_time(due) if due else None)
    assert find_due(body | {"metadata": {"uid": "u", "deletionTimestamp": "x"}}) is None


@pytest.mark.parametrize(
    ("metadata", "is_kept"),
    [
        ({}, False),
        ({"labels": {"app": "a"}, "annotations": {"note": "b"}}, False),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}, True),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "apps"}}, True),
        ({"labels": {"argocd.argoproj.io/instance": "apps"}}, True),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "apps:fleetprof.io/ProfileRequest:a/b"}}, True),
    ],
)
def test_what_git_would_make_again_is_not_deleted(metadata: dict[str, object], is_kept: bool) -> None:
    status = {"completionTime": "2026-11-21T10:00:00Z"}
    body = {"metadata": {"uid": "u", **metadata}, "spec": {"ttlSecondsAfterFinished": 0}, "status": status}
    assert (find_due(body) is None) is is_kept


@pytest.mark.parametrize(
    ("report", "headline"),
    [
        (b"", {}),
        (b"\xff", {}),
        (b'{"totals": []}', {}),
        (b'{"totals": [{"kind": "gpu", "time_basis": "device", "ranks": 1, "time_ns": {}}]}', {}),
        (b'{"totals": [{"kind": "cpu", "time_basis": "host", "ranks": 1, "time_ns": {"span": 10, "idle": 5}},'
         b'{"kind": "gpu", "time_basis": "device", "ranks": 1, "time_ns": {"span": 1000, "idle": 100,'
         b'"exposed_communication": 333}}], "ranks": "of no interest"}',
         {"busyPermille": 900, "exposedCommunicationPermille": 333}),
        (b'{"totals": [{"kind": "cpu", "time_basis": "host", "ranks": 1, "time_ns": {"span": 10, "idle": 5}}]}',
         {"busyPermille": 500, "exposedCommunicationPermille": 0}),
        (b'{"stragglers": {"verdict": "not_judged", "reason": "one rank"}}', {}),
        (b'{"stragglers": {"verdict": "nobody", "reason": "nobody is late"}}', {"topFinding": "nobody is late"}),
        (b'{"findings": [{"kind": "python", "message": "the GPU waits for Python", "gain_permille": 97}]}',
         {"topFinding": "the GPU waits for Python: potential saving 9.7 % of the time"}),
        (b'{"stragglers": {"verdict": "straggler", "reason": "rank 3 is late", "ranks": ['
         b'{"rank": 3, "lateness_ns": 12500000, "cause": "data_loading", "gain": 0.125},'
         b'{"rank": 1, "lateness_ns": 1000000, "cause": "host", "gain": 0.01}]}}',
         {"straggler": "3 (data loading)", "topFinding": "rank 3 is late"}),
    ],
)  # fmt: skip
def test_the_headline(report: bytes, headline: Any) -> None:
    assert read_headline(report) == headline


@pytest.mark.parametrize(
    ("store", "template", "address"),
    [
        ("s3://b/p", "", "s3://b/p/v1/team/u/report.html"),
        (
            "s3://b/p?endpoint=https://minio.example:9000&region=eu-1",
            "",
            "s3://b/p/v1/team/u/report.html?endpoint=https://minio.example:9000&region=eu-1",
        ),
        ("/var/lib/store", "", "/var/lib/store/v1/team/u/report.html"),
        ("s3://b?region=eu-1", "https://ui.example/{namespace}/{name}?{uid}", "https://ui.example/team/five?u"),
    ],
)
def test_the_address_of_a_report_says_which_server_has_it(store: str, template: str, address: str) -> None:
    location = parse_location(store)
    located = f"{location.address().rstrip('/')}/v1/team/u/report.html"
    metadata = {"namespace": "team", "name": "five", "uid": "u"}
    stored = located + location.settings()
    assert find_page(template, stored, metadata) == address
    if stored.startswith("s3://"):
        assert parse_capture_address(stored) == (location, "team", "u")
