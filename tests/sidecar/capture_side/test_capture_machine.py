"""The rules of a capture: what leads where, with which effects."""

import msgspec
import pytest
from fleetprof_api.ledger import RankState, Reason
from fleetprof_sidecar import capture_events as c
from fleetprof_sidecar.capture import Capture, Effect
from fleetprof_sidecar.capture_machine import (
    CANCEL_PATIENCE_NS,
    GONE_PATIENCE_NS,
    QUIET_PATIENCE_NS,
    START_PATIENCE_NS,
    STORE_PATIENCE_NS,
    advance,
    begin,
    resume,
)
from played_capture import (
    BLIND,
    GIVE_UP,
    NAME,
    STORED,
    TO_ARMED,
    TO_CHECKING,
    TO_STARTED,
    TO_WRITTEN,
    S,
    play,
    terms,
)


def test_the_way_of_a_good_capture() -> None:
    events = [
        *TO_WRITTEN,
        c.TraceStored(50 * S),
        c.SamplesReady(STORED, "", 51 * S),
        c.SamplesStored(52 * S),
    ]
    capture, told = begin(terms(), S), []
    for event in events:
        capture, effects = advance(capture, event)
        told.append((capture.state, effects))
    e = Effect
    assert told == [
        (RankState.ARMED, [e.REPORT]),
        (RankState.STARTED, [e.REPORT]),
        (RankState.STARTED, [e.COMPRESS]),
        (RankState.WRITTEN, [e.REPORT, e.TELL_AGENT_DONE, e.UPLOAD_TRACE, e.GATHER_SAMPLES]),
        (RankState.WRITTEN, []),
        (RankState.WRITTEN, [e.UPLOAD_SAMPLES]),
        (RankState.UPLOADED, [e.REPORT, e.DISCARD]),
    ]
    times = (capture.asked_unix_ns, capture.armed_unix_ns, capture.started_unix_ns, capture.written_unix_ns)
    assert (*times, capture.uploaded_unix_ns) == (S, 2 * S, 20 * S, 30 * S, 52 * S)
    assert capture.trace_bytes == 500


@pytest.mark.parametrize(
    ("before", "event", "reason"),
    [
        ([], c.Refused(Reason.BUSY, "m", 2 * S), Reason.BUSY),
        ([], c.Expired("time", True, 2 * S), Reason.TOO_LATE),
        ([], c.Expired("time", False, 2 * S), Reason.NOT_POLLING),
        ([], c.Expired("step", True, 2 * S), Reason.TOO_LATE),
        ([], c.Expired("busy", True, 2 * S), Reason.BUSY),
        ([], c.Expired("role", True, 2 * S), Reason.NOT_POLLING),
        ([], c.Gone(True, 2 * S), Reason.PROCESS_EXITED),
        ([], c.Gone(False, 2 * S), Reason.PROCESS_KILLED),
        ([], c.Cancel(Reason.CANCELLED, "m", 2 * S), Reason.CANCELLED),
        ([], c.Tick(GIVE_UP, last_poll_unix_ns=5 * S), Reason.TOO_LATE),
        ([], c.Tick(GIVE_UP), Reason.NOT_POLLING),
        (TO_ARMED, c.Tick(GIVE_UP, step=50), Reason.NOT_STEPPING),
        (TO_ARMED, c.Tick(GIVE_UP, step=200, busy=False), Reason.NOT_STARTED),
        (TO_ARMED, c.Tick(GIVE_UP, step=200, busy=True), Reason.CANCELLED_BY_USER_PROFILER),
        (TO_STARTED, c.Tick(GIVE_UP, step=101, busy=True), Reason.NOT_STEPPING),
        (TO_STARTED, c.TmpSeen(1001, 21 * S), Reason.TRACE_TOO_LARGE),
        (TO_STARTED, c.FinalSeen(NAME, 1001, 21 * S), Reason.TRACE_TOO_LARGE),
        ([*TO_ARMED, c.BusyChanged(True, 100, 3 * S)], c.Tick(GIVE_UP, 200, False), Reason.CANNOT_WRITE),
        ([*TO_STARTED, c.TmpSeen(9, 21 * S)], c.Tick(GIVE_UP, 200, False), Reason.CANNOT_WRITE),
        (TO_STARTED, c.Tick(60 * S, 200, False, 60 * S), Reason.CANCELLED_BY_USER_PROFILER),
        (TO_CHECKING, c.FileChecked(NAME, "other-r3", 5, STORED, 40 * S), Reason.WRONG_TRACE),
        (TO_CHECKING, c.FileRejected(NAME, Reason.DISK_FULL, "m", 40 * S), Reason.DISK_FULL),
        (TO_CHECKING, c.Cancel(Reason.CANCELLED, "m", 40 * S), Reason.CANCELLED),
        (TO_CHECKING, c.Tick(GIVE_UP + STORE_PATIENCE_NS), Reason.DEADLINE_EXCEEDED),
        (TO_WRITTEN, c.Cancel(Reason.CANCELLED, "m", 50 * S), Reason.CANCELLED),
        (TO_WRITTEN, c.UploadEnded("m", "trace", 50 * S), Reason.UPLOAD_FAILED),
        (TO_WRITTEN, c.Tick(GIVE_UP + STORE_PATIENCE_NS), Reason.UPLOAD_FAILED),
    ],
)
def test_each_failure_has_its_reason(before: list[c.Event], event: c.Event, reason: Reason) -> None:
    capture, effects = play([*before, event])
    assert (capture.state, capture.reason) == (RankState.FAILED, reason)
    assert capture.message
    assert effects[-1] == Effect.DISCARD
    assert Effect.REPORT in effects


@pytest.mark.parametrize(
    ("before", "effects"),
    [
        ([], [Effect.WITHDRAW_ORDER, Effect.REPORT, Effect.TELL_AGENT_DONE, Effect.DISCARD]),
        (TO_ARMED, [Effect.CANCEL_IN_PROCESS]),
        (TO_STARTED, [Effect.CANCEL_IN_PROCESS]),
        (TO_CHECKING, [Effect.REPORT, Effect.TELL_AGENT_DONE, Effect.STOP_WORK, Effect.DISCARD]),
        (TO_WRITTEN, [Effect.REPORT, Effect.TELL_AGENT_DONE, Effect.STOP_WORK, Effect.DISCARD]),
    ],
)
def test_cancel_takes_back_what_can_be_taken_back(before: list[c.Event], effects: list[Effect]) -> None:
    assert play([*before, c.Cancel(Reason.CANCELLED, "by the user", 50 * S)])[1] == effects


def test_a_delivered_order_ends_when_the_agent_says_that_it_dropped_it() -> None:
    cancel = c.Cancel(Reason.SLOWDOWN, "too slow", 25 * S)
    capture, _ = play([*TO_STARTED, cancel])
    assert capture.state == RankState.STARTED
    capture, effects = play([*TO_STARTED, cancel, c.AgentCancelled(26 * S)])
    assert (capture.state, capture.reason) == (RankState.FAILED, Reason.SLOWDOWN)
    assert capture.message == "too slow; the trace was stopped in the process"
    assert Effect.CANCEL_IN_PROCESS not in effects


@pytest.mark.parametrize(
    "event", [c.Tick(25 * S + CANCEL_PATIENCE_NS), c.Gone(True, 26 * S), c.FinalSeen(NAME, 5, 26 * S)]
)
def test_an_agent_that_does_not_confirm_a_cancel_is_not_waited_for(event: c.Event) -> None:
    late = c.Tick(25 * S + CANCEL_PATIENCE_NS)
    capture, _ = play([*TO_STARTED, c.Cancel(Reason.CANCELLED, "m", 25 * S), event, late])
    assert (capture.state, capture.reason) == (RankState.FAILED, Reason.CANCELLED)


def test_without_the_agent_a_delivered_order_ends_with_its_window_and_is_discarded() -> None:
    capture, effects = play([c.Delivered(2 * S), c.Cancel(Reason.CANCELLED, "by the user", 3 * S)], BLIND)
    assert (capture.state, capture.reason) == (RankState.FAILED, Reason.CANCELLED)
    assert "ends with its window and is discarded" in capture.message
    assert effects == [Effect.REPORT, Effect.DISCARD]
    assert advance(capture, c.FinalSeen(NAME, 5, 30 * S)) == (capture, [Effect.DISCARD])


def test_an_order_that_was_delivered_while_it_was_withdrawn_is_cancelled_in_the_process() -> None:
    capture, _ = play([c.Cancel(Reason.CANCELLED, "m", 2 * S)])
    assert advance(capture, c.Delivered(2 * S)) == (capture, [Effect.CANCEL_IN_PROCESS, Effect.DISCARD])


@pytest.mark.parametrize(("farewell", "reason"), [(True, Reason.PROCESS_EXITED), (False, Reason.PROCESS_KILLED)])
def test_a_process_that_ends_may_have_left_its_trace(farewell: bool, reason: Reason) -> None:
    gone = [*TO_STARTED, c.Gone(farewell, 25 * S)]
    assert play([*gone, c.Tick(25 * S + GONE_PATIENCE_NS - 1)])[0].state == RankState.STARTED
    assert play([*gone, c.Tick(25 * S + GONE_PATIENCE_NS)])[0].reason == reason
    assert play([*gone, c.FinalSeen(NAME, 5, 26 * S)])[1] == [Effect.COMPRESS]
    assert play([*TO_WRITTEN, c.Gone(farewell, 41 * S), c.Tick(90 * S)])[0].state == RankState.WRITTEN


def test_a_busy_process_counts_as_started_only_when_its_window_is_due() -> None:
    early = c.BusyChanged(True, 50, 3 * S)
    due = c.BusyChanged(True, 99, 3 * S)
    assert play([*TO_ARMED, early])[0].state == RankState.ARMED
    assert play([*TO_ARMED, due])[0].state == RankState.STARTED
    blind = [c.Delivered(2 * S), c.BusyChanged(True, None, 11 * S)]
    assert play(blind, BLIND)[0].state == RankState.STARTED
    assert play([c.Delivered(2 * S), c.BusyChanged(True, None, 9 * S)], BLIND)[0].state == RankState.ARMED


def test_an_order_that_kineto_took_but_never_began_fails_some_time_after_it_was_due() -> None:
    events = [c.Delivered(2 * S), c.Tick(10 * S, busy=False)]
    assert play([*events, c.Tick(10 * S + START_PATIENCE_NS - 1, busy=False)], BLIND)[0].state == RankState.ARMED
    capture, _ = play([*events, c.Tick(10 * S + START_PATIENCE_NS, busy=False, hint="look there")], BLIND)
    assert capture.reason == Reason.NOT_STARTED
    assert "look there" in capture.message


def test_a_long_write_is_waited_for_as_long_as_kineto_is_busy() -> None:
    late = 20 * S + 10 * QUIET_PATIENCE_NS
    assert play([*TO_STARTED, c.Tick(late, 200, True, late)])[0].state == RankState.STARTED


def test_a_trace_dropped_by_the_agent_alone_says_what_did_not_come() -> None:
    capture, _ = play([*TO_STARTED, c.AgentCancelled(25 * S), c.Tick(60 * S, step=101, busy=True)])
    assert capture.reason == Reason.NOT_STEPPING


@pytest.mark.parametrize(
    "last",
    [c.SamplesReady(None, "no room", 51 * S), c.UploadEnded("refused", "samples", 52 * S), c.Tick(GIVE_UP * 3)],
)
def test_missing_samples_do_not_fail_a_rank(last: c.Event) -> None:
    before = [*TO_WRITTEN, c.TraceStored(50 * S)]
    if not isinstance(last, c.SamplesReady):
        before.append(c.SamplesReady(STORED, "", 51 * S))
    capture, _ = play([*before, last])
    assert (capture.state, capture.reason) == (RankState.UPLOADED, None)
    assert "samples are missing" in capture.message


@pytest.mark.parametrize(
    ("events", "effects"),
    [
        ([], []),
        (TO_ARMED, []),
        (TO_STARTED, []),
        (TO_CHECKING, []),
        (TO_WRITTEN, [Effect.UPLOAD_TRACE, Effect.GATHER_SAMPLES]),
        ([*TO_WRITTEN, c.TraceStored(50 * S)], [Effect.GATHER_SAMPLES]),
        ([*TO_WRITTEN, c.TraceStored(50 * S), c.SamplesReady(STORED, "", 51 * S)], [Effect.UPLOAD_SAMPLES]),
        ([*TO_WRITTEN, c.SamplesReady(STORED, "", 51 * S)], [Effect.UPLOAD_TRACE]),
        ([c.Gone(True, 2 * S)], []),
    ],
)
def test_a_restart_takes_up_what_was_under_way(events: list[c.Event], effects: list[Effect]) -> None:
    written = msgspec.json.encode(play(events)[0])
    capture, resumed = resume(msgspec.json.decode(written, type=Capture))
    assert resumed == effects
    if events == TO_CHECKING:
        assert advance(capture, c.FinalSeen(NAME, 500, 90 * S))[1] == [Effect.COMPRESS]
