"""The rules of a capture: what leads where, with which effects, and what can never happen."""

from typing import Any

import msgspec
import pytest
from fleetprof_api.ledger import RankState, Reason
from fleetprof_sidecar import capture_events as c
from fleetprof_sidecar.capture import Capture, Effect, StoredFile, Terms, Traces
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
from hypothesis import given
from hypothesis import strategies as st

S = 10**9
GIVE_UP = 600 * S
STORED = StoredFile(name="f", size_bytes=5, sha256="00", part_sizes=[5], part_sha256=["00"])
NAME = "cap-r3_77.json"


def terms(**more: Any) -> Terms:
    base = {"capture_id": "cap", "process_id": "p", "rank": 3, "pid": 77, "has_agent": True, "first_step": 100}
    return Terms(**{**base, "iterations": 5, "give_up_unix_ns": GIVE_UP, "max_trace_bytes": 1000, **more})


SUMMARY = terms(traces=Traces.SUMMARY)
AUTO = terms(traces=Traces.AUTO)
BLIND = terms(has_agent=False, first_step=None, start_unix_ns=10 * S, duration_ns=S)
CHECKED = c.FileChecked(NAME, "cap-r3", 500, STORED, 40 * S)
TO_ARMED = [c.Delivered(2 * S)]
TO_STARTED = [*TO_ARMED, c.TmpSeen(0, 20 * S)]
TO_CHECKING = [*TO_STARTED, c.FinalSeen(NAME, 500, 30 * S)]
TO_WRITTEN = [*TO_CHECKING, CHECKED]


def play(events: list[c.Event], start: Terms | None = None) -> tuple[Capture, list[Effect]]:
    """The capture after all events, and the effects of the last one."""
    capture, effects = begin(start or terms(), S), []
    for event in events:
        capture, effects = advance(capture, event)
    return capture, effects


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


# ---------------------------------------------------------------- summaries in place of traces

GATHERED = [*TO_WRITTEN, c.SamplesReady(STORED, "", 51 * S)]
SUMMARISED = [*GATHERED, c.SummaryReady(STORED, "", 52 * S)]
DELIVERED = [*SUMMARISED, c.SummaryStored(53 * S), c.SamplesStored(54 * S)]
NO_SUMMARY = [*GATHERED, c.SummaryReady(None, "no memory", 52 * S)]


@pytest.mark.parametrize(
    ("start", "events", "state", "effects"),
    [
        (SUMMARY, TO_WRITTEN, "WRITTEN", ["report", "tell agent done", "gather samples"]),
        (SUMMARY, GATHERED, "WRITTEN", ["summarise"]),
        (SUMMARY, [*TO_WRITTEN, c.SamplesReady(None, "no room", 51 * S)], "WRITTEN", ["summarise"]),
        (SUMMARY, SUMMARISED, "WRITTEN", ["upload summary"]),
        (SUMMARY, [*SUMMARISED, c.SummaryStored(53 * S)], "WRITTEN", ["upload samples"]),
        (SUMMARY, DELIVERED, "UPLOADED", ["report", "discard"]),
        (SUMMARY, [*DELIVERED, c.TraceWanted(55 * S)], "UPLOADED", []),
        (SUMMARY, NO_SUMMARY, "FAILED", ["report", "tell agent done", "stop work", "discard"]),
        (SUMMARY, [*SUMMARISED, c.UploadEnded("no", "summary", 53 * S)], "FAILED", None),
        (SUMMARY, [*SUMMARISED, c.SummaryStored(53 * S), c.UploadEnded("no", "samples", 54 * S)], "UPLOADED", None),
        # Auto: the trace stays until it is asked for, or let go.
        (AUTO, DELIVERED, "UPLOADED", ["report"]),
        (AUTO, [*DELIVERED, c.TraceWanted(55 * S)], "UPLOADED", ["upload trace"]),
        (AUTO, [*DELIVERED, c.TraceWanted(55 * S), c.TraceWanted(56 * S)], "UPLOADED", []),
        (AUTO, [*DELIVERED, c.TraceWanted(55 * S), c.TraceStored(56 * S)], "UPLOADED", ["discard"]),
        (AUTO, [*DELIVERED, c.TraceWanted(55 * S), c.UploadEnded("no", "trace", 56 * S)], "UPLOADED", ["discard"]),
        (AUTO, [*DELIVERED, c.Tick(GIVE_UP + STORE_PATIENCE_NS)], "UPLOADED", ["stop work", "discard"]),
        # Auto without a summary: the trace instead, at once.
        (AUTO, NO_SUMMARY, "WRITTEN", ["upload trace"]),
        (AUTO, [*NO_SUMMARY, c.TraceStored(53 * S)], "WRITTEN", ["upload samples"]),
        (AUTO, [*NO_SUMMARY, c.TraceStored(53 * S), c.SamplesStored(54 * S)], "UPLOADED", ["report", "discard"]),
    ],
)
def test_the_way_of_a_summary(start: Terms, events: list[c.Event], state: str, effects: list[str] | None) -> None:
    capture, told = play(events, start)
    assert capture.state == state
    if effects is not None:
        assert told == effects


def test_a_rank_without_a_summary_says_why() -> None:
    failed, _ = play(NO_SUMMARY, SUMMARY)
    assert (failed.reason, failed.message) == (Reason.SUMMARY_FAILED, "no summary could be made: no memory")
    whole, _ = play([*NO_SUMMARY, c.TraceStored(53 * S), c.SamplesStored(54 * S)], AUTO)
    assert whole.message == "its whole trace was stored, for no summary could be made: no memory"


@pytest.mark.parametrize(
    ("start", "events", "effects"),
    [
        (SUMMARY, TO_WRITTEN, ["gather samples"]),
        (SUMMARY, GATHERED, ["summarise"]),
        (SUMMARY, SUMMARISED, ["upload summary"]),
        (SUMMARY, [*SUMMARISED, c.SummaryStored(53 * S)], ["upload samples"]),
        (AUTO, NO_SUMMARY, ["upload trace"]),
        (AUTO, DELIVERED, []),
        (AUTO, [*DELIVERED, c.TraceWanted(55 * S)], ["upload trace"]),
    ],
)
def test_a_restart_takes_up_a_summary(start: Terms, events: list[c.Event], effects: list[str]) -> None:
    assert resume(play(events, start)[0])[1] == effects


# ---------------------------------------------------------------- what can never happen

times = st.integers(S, 2 * GIVE_UP)
stored = st.just(STORED)
events = st.one_of(
    st.builds(c.Refused, st.sampled_from(Reason), st.text(), times),
    st.builds(c.Delivered, times),
    st.builds(c.Expired, st.sampled_from(["time", "step", "busy", "role"]), st.booleans(), times),
    st.builds(c.BusyChanged, st.booleans(), st.none() | st.integers(0, 200), times),
    st.builds(c.TmpSeen, st.integers(0, 2000), times),
    st.builds(c.FinalSeen, st.sampled_from([NAME, "cap-r3_78.json"]), st.integers(0, 2000), times),
    st.builds(c.FileChecked, st.just(NAME), st.sampled_from(["cap-r3", "cap-r4", ""]), st.just(9), stored, times),
    st.builds(c.FileRejected, st.just(NAME), st.sampled_from(Reason), st.text(), times),
    st.builds(c.Gone, st.booleans(), times),
    st.builds(c.Cancel, st.sampled_from(Reason), st.text(), times),
    st.builds(c.AgentCancelled, times),
    st.builds(c.Tick, times, st.none() | st.integers(0, 200), st.none() | st.booleans(), times),
    st.builds(c.TraceStored, times),
    st.builds(c.SamplesReady, st.none() | stored, st.text(), times),
    st.builds(c.SamplesStored, times),
    st.builds(c.UploadEnded, st.text(), st.sampled_from(["trace", "samples", "summary"]), times),
    st.builds(c.SummaryReady, st.none() | stored, st.text(), times),
    st.builds(c.SummaryStored, times),
    st.builds(c.TraceWanted, times),
)
anything = st.lists(events, max_size=30)
any_terms = st.sampled_from(
    [terms(), BLIND, terms(has_agent=False), terms(max_trace_bytes=0), SUMMARY, AUTO, terms(traces=Traces.AUTO)]
)


@given(any_terms, anything)
def test_states_move_forward_and_a_final_one_is_never_left(start: Terms, history: list[c.Event]) -> None:
    order = [RankState.ASKED, RankState.ARMED, RankState.STARTED, RankState.WRITTEN, RankState.UPLOADED]
    capture = begin(start, S)
    for event in history:
        after, _ = advance(capture, event)
        if capture.is_final:
            assert (after.state, after.reason, after.message) == (capture.state, capture.reason, capture.message)
        elif after.state != RankState.FAILED:
            assert order.index(after.state) >= order.index(capture.state)
        assert (after.reason is not None) == (after.state == RankState.FAILED)
        capture = after


@given(any_terms, anything)
def test_a_capture_always_ends_by_its_deadline(start: Terms, history: list[c.Event]) -> None:
    capture = begin(start, S)
    for event in history:
        capture, _ = advance(capture, event)
    capture, _ = advance(capture, c.Tick(GIVE_UP + STORE_PATIENCE_NS))
    assert capture.is_final


@given(any_terms, anything)
def test_only_a_trace_that_was_found_to_be_ours_is_uploaded(start: Terms, history: list[c.Event]) -> None:
    capture, ours = begin(start, S), False
    for event in history:
        ours = ours or (isinstance(event, c.FileChecked) and event.trace_id == start.trace_id)
        capture, effects = advance(capture, event)
        if Effect.UPLOAD_TRACE in effects or capture.state in (RankState.WRITTEN, RankState.UPLOADED):
            assert ours
        if Effect.UPLOAD_TRACE in effects or capture.state == RankState.WRITTEN:
            assert capture.trace is not None
            assert start.traces is not Traces.SUMMARY or Effect.UPLOAD_TRACE not in effects
        if capture.state == RankState.UPLOADED:
            assert capture.trace_stored or capture.summary_stored


@given(any_terms, anything, st.data())
def test_an_event_told_twice_changes_nothing_more(start: Terms, history: list[c.Event], data: st.DataObject) -> None:
    capture = begin(start, S)
    for event in history:
        once, _ = advance(capture, event)
        if not isinstance(event, c.Tick):
            twice, effects = advance(once, event)
            assert msgspec.structs.replace(twice, last_sign_unix_ns=0) == msgspec.structs.replace(
                once, last_sign_unix_ns=0
            )
            assert set(effects) <= {Effect.DISCARD, Effect.CANCEL_IN_PROCESS}
        capture = once


@given(any_terms, anything)
def test_the_journal_brings_back_the_same_capture(start: Terms, history: list[c.Event]) -> None:
    capture = begin(start, S)
    for event in history:
        capture, _ = advance(capture, event)
    assert msgspec.json.decode(msgspec.json.encode(capture), type=Capture) == capture
    resumed, _ = resume(capture)
    ended, _ = advance(resumed, c.Tick(GIVE_UP + STORE_PATIENCE_NS))
    assert ended.is_final
