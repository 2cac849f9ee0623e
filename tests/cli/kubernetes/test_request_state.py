"""The state of a ProfileRequest, from what the API gives."""

from typing import Any

import pytest
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.request_state import RequestState, headline_lines
from fleetprof_cli.terminal.progress import Progress, draw_capture
from rich.console import Console

TIME = "2026-11-21T09:45:12Z"


def make_condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": TIME}


def make_state(
    succeeded: tuple[str, str] | None, counts: tuple[int, int] | None = None, *, is_deleted: bool = False, **status: Any
) -> RequestState:
    """`counts` are targeted and uploaded."""
    status.setdefault("conditions", [])
    if succeeded:
        status["conditions"] = [*status["conditions"], make_condition("Succeeded", *succeeded, "in words")]
        if succeeded[0] != "Unknown":
            status["completionTime"] = TIME
    if counts:
        status["ranks"] = {"targeted": counts[0], "armed": counts[0], "captured": counts[1], "uploaded": counts[1]}
        status["ranks"]["failed"] = counts[0] - counts[1]
    metadata = {"name": "look", "namespace": "team", "uid": "u1", "creationTimestamp": TIME}
    return RequestState({"metadata": metadata, "status": status}, is_deleted=is_deleted)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (make_state(("True", "Complete"), (4, 4)), ExitCode.DONE),
        (make_state(("True", "PartiallyCaptured"), (4, 3)), ExitCode.PARTIAL),
        (make_state(("True", "PartiallyCaptured"), (4, 4)), ExitCode.PARTIAL),
        (make_state(("False", "AnalysisFailed"), (4, 4)), ExitCode.PARTIAL),
        (make_state(("False", "AllRanksFailed"), (4, 0)), ExitCode.CAPTURE_FAILED),
        (make_state(("False", "NothingMatched")), ExitCode.REFUSED),
        (make_state(("False", "DeadlineExceeded")), ExitCode.CAPTURE_FAILED),
        (make_state(("False", "CanaryHarmed")), ExitCode.CAPTURE_FAILED),
        (make_state(("False", "BeyondBounds")), ExitCode.REFUSED),
        (make_state(("Unknown", "Capturing"), (4, 0), is_deleted=True), ExitCode.CAPTURE_FAILED),
        (make_state(None, is_deleted=True), ExitCode.CAPTURE_FAILED),
    ],
)
def test_the_exit_code_is_that_of_local_mode(state: RequestState, code: ExitCode) -> None:
    assert state.finished
    assert state.exit_code() == code


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (make_state(None), "waiting for fleetprof's operator"),
        (
            make_state(
                ("Unknown", "Waiting"),
                conditions=[make_condition("TargetsResolved", "False", "WaitingForPods", "Job/llama has no pod yet")],
            ),
            "WaitingForPods: Job/llama has no pod yet",
        ),
        (make_state(("Unknown", "Capturing"), (4, 2)), "2 of 4 ranks uploaded, 2 failed: Capturing"),
        (make_state(("True", "Complete"), (4, 4)), "4 of 4 ranks uploaded: Complete, in words"),
        (make_state(("False", "NothingMatched")), "NothingMatched: in words"),
        (make_state(None, is_deleted=True), "the request was deleted: the capture is cancelled"),
        (make_state(("True", "Complete"), (4, 4), is_deleted=True), "4 of 4 ranks uploaded: Complete, in words"),
    ],
)
def test_a_request_in_one_line(state: RequestState, text: str) -> None:
    assert state.sentence() == text


@pytest.mark.parametrize("status", [{"conditions": "none"}, {"ranks": {"targeted": -1}}, {"completionTime": "soon"}])
def test_a_status_that_makes_no_sense_is_taken_for_none(status: dict[str, Any]) -> None:
    state = RequestState({"metadata": {"name": "look"}, "status": status})
    assert not state.finished
    assert state.sentence() == "waiting for fleetprof's operator"


def test_at_the_end_each_reason_of_failed_ranks_is_a_line() -> None:
    failures = [
        {"reason": "ProcessKilled", "ranks": 12, "firstRanks": list(range(10)), "message": "it ended by SIGKILL"},
        {"reason": "Busy", "ranks": 2, "firstRanks": [12, 13]},
        {"reason": "NotPolling", "ranks": 1, "firstRanks": [14]},
    ]
    assert make_state(("True", "PartiallyCaptured"), (16, 1), failures=failures).troubles() == [
        "12 ranks (0, 1, 2, 3, 4, 5, 6, 7, 8, 9 …): ProcessKilled: it ended by SIGKILL",
        "2 ranks (12, 13): Busy",
        "rank 14: NotPolling",
    ]


@pytest.mark.parametrize(("ready", "stalled"), [("True", "False"), ("False", "True"), ("Unknown", "False")])
def test_what_sums_the_request_up_is_no_trouble_of_its_own(ready: str, stalled: str) -> None:
    summaries = [
        make_condition(kind, status, "Complete", "nothing has failed")
        for kind, status in (("Ready", ready), ("Stalled", stalled))
    ]
    assert make_state(("True", "Complete"), (1, 1), conditions=summaries).troubles() == []


def test_what_a_newer_operator_says_is_passed_over() -> None:
    state = make_state(("True", "Complete"), (1, 1), newField={"a": 1})
    assert state.finished


def test_the_display_counts_where_ranks_are_not_known() -> None:
    console = Console(width=100, force_terminal=False)
    with console.capture() as taken:
        console.print(draw_capture(make_state(("Unknown", "Capturing"), (512, 500), target="Job/llama").view(), 0))
    lines = [line.split() for line in taken.get().splitlines()]
    assert lines[0][:3] == ["look", "of", "Job/llama:"]
    assert lines[1:] == [
        ["512", "ranks"],
        ["512", "have", "their", "order"],
        ["500", "captured"],
        ["500", "uploaded"],
        ["12", "failed"],
    ]


def test_without_a_terminal_each_stage_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(Console(stderr=True, force_terminal=False)) as progress:
        for state in (
            make_state(None),
            make_state(("Unknown", "Capturing"), (2, 0)),
            make_state(("Unknown", "Capturing"), (2, 0)),
            make_state(("Unknown", "Analyzing"), (2, 2)),
            make_state(("True", "Complete"), (2, 2)),
        ):
            progress.show(state.view(), 0)
    assert capsys.readouterr().err.splitlines() == [
        "fleetprof: waiting for fleetprof's operator",
        "fleetprof: Capturing: 2 ranks, 2 have their order, 2 failed",
        "fleetprof: Analyzing: 2 ranks, 2 have their order, 2 captured, 2 uploaded",
        "fleetprof: 2 of 2 ranks uploaded: Complete, in words",
    ]


def test_the_headline_in_words() -> None:
    headline = make_state(
        ("True", "Complete"),
        (1, 1),
        headline={"busyPermille": 613, "exposedCommunicationPermille": 121, "straggler": "rank 17", "topFinding": "x"},
    ).status.headline
    assert headline_lines(headline) == [
        "busy 61.3 % of the window",
        "exposed communication 12.1 % of the window",
        "straggler: rank 17",
        "x",
    ]
    assert headline_lines(None) == []
