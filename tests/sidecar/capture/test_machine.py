"""The rules of a capture: what leads where, with which effects."""

import msgspec
import pytest
from fleetprof_api.ledger import RankState, Reason, RecordingCost, TimeCost
from fleetprof_sidecar.capture import events as c
from fleetprof_sidecar.capture.finished_trace import STORE_PATIENCE_NS
from fleetprof_sidecar.capture.machine import (
    CANCEL_PATIENCE_NS,
    GONE_PATIENCE_NS,
    OWN_PROFILE_PATIENCE_NS,
    QUIET_PATIENCE_NS,
    START_PATIENCE_NS,
    advance,
    begin,
    resume,
)
from fleetprof_sidecar.capture.process_capture import Effect, ProcessCapture
from fleetprof_sidecar.hub.messages import make_event
from fleetprof_sidecar.processes.events import BusyChanged, Delivered, Expired, Gone, OwnProfileBegan
from harness.sidecar.played_capture import (
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
    capture, capture_and_actions = begin(terms(), S), []
    for event in events:
        capture, effects = advance(capture, event)
        capture_and_actions.append((capture.state, effects))
    e = Effect
    assert capture_and_actions == [
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
        ([], c.OrderRejected(Reason.BUSY, "m", 2 * S), Reason.BUSY),
        ([], Expired("p", "time", 2 * S, 2 * S), Reason.TOO_LATE),
        ([], Expired("p", "time", 2 * S), Reason.NOT_POLLING),
        ([], Expired("p", "step", 2 * S, 2 * S), Reason.TOO_LATE),
        ([], Expired("p", "busy", 2 * S, 2 * S), Reason.BUSY),
        ([], Expired("p", "own", 2 * S, 2 * S), Reason.BUSY),
        ([], Expired("p", "role", 2 * S, 2 * S), Reason.NOT_POLLING),
        ([], Gone("p", 2 * S, True), Reason.PROCESS_EXITED),
        ([], Gone("p", 2 * S, False), Reason.PROCESS_KILLED),
        ([], c.Cancel(Reason.CANCELLED, "m", 2 * S), Reason.CANCELLED),
        ([], c.Tick(GIVE_UP, last_poll_unix_ns=5 * S), Reason.TOO_LATE),
        ([], c.Tick(GIVE_UP), Reason.NOT_POLLING),
        (TO_ARMED, c.Tick(GIVE_UP, step=50), Reason.NOT_STEPPING),
        (TO_ARMED, c.Tick(GIVE_UP, step=200, busy=False), Reason.NOT_STARTED),
        (TO_ARMED, c.Tick(GIVE_UP, step=200, busy=True), Reason.CANCELLED_BY_USER_PROFILER),
        (TO_STARTED, c.Tick(GIVE_UP, step=101, busy=True), Reason.NOT_STEPPING),
        (TO_STARTED, c.TmpSeen(1001, 21 * S), Reason.TRACE_TOO_LARGE),
        (TO_STARTED, c.FinalSeen(NAME, 1001, 21 * S), Reason.TRACE_TOO_LARGE),
        ([*TO_ARMED, BusyChanged("p", True, 3 * S, 100)], c.Tick(GIVE_UP, 200, False), Reason.CANNOT_WRITE),
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
    "event", [c.Tick(25 * S + CANCEL_PATIENCE_NS), Gone("p", 26 * S, True), c.FinalSeen(NAME, 5, 26 * S)]
)
def test_an_agent_that_does_not_confirm_a_cancel_is_not_waited_for(event: c.Event) -> None:
    late = c.Tick(25 * S + CANCEL_PATIENCE_NS)
    capture, _ = play([*TO_STARTED, c.Cancel(Reason.CANCELLED, "m", 25 * S), event, late])
    assert (capture.state, capture.reason) == (RankState.FAILED, Reason.CANCELLED)


def test_an_agent_that_drops_a_large_recording_is_waited_for() -> None:
    cancelled = [*TO_STARTED, c.Cancel(Reason.CANCELLED, "by the user", 25 * S), c.AgentDropping(26 * S)]
    capture, effects = play([*cancelled, c.Tick(60 * S)])
    assert (capture.state, effects) == (RankState.STARTED, [])
    capture, _ = play([*cancelled, c.Tick(60 * S), c.AgentCancelled(61 * S)])
    assert capture.message == "by the user; the trace was stopped in the process"
    capture, _ = play([*cancelled, Gone("p", 30 * S, True), c.Tick(33 * S)])
    assert capture.state == RankState.FAILED


def test_a_cancel_after_the_window_discards_what_is_written() -> None:
    capture, effects = play([*TO_STARTED, c.Cancel(Reason.CANCELLED, "by the user", 25 * S), c.AgentEnding(26 * S)])
    assert capture.message == "by the user; its window was over, and the trace is discarded once it is written"
    assert Effect.DISCARD in effects
    assert advance(capture, c.FinalSeen(NAME, 5, 40 * S))[1] == [Effect.DISCARD]


def test_without_the_agent_a_delivered_order_ends_with_its_window_and_is_discarded() -> None:
    capture, effects = play([Delivered("p", 2 * S), c.Cancel(Reason.CANCELLED, "by the user", 3 * S)], BLIND)
    assert (capture.state, capture.reason) == (RankState.FAILED, Reason.CANCELLED)
    assert "ends with its window and is discarded" in capture.message
    assert effects == [Effect.REPORT, Effect.DISCARD]
    assert advance(capture, c.FinalSeen(NAME, 5, 30 * S)) == (capture, [Effect.DISCARD])


def test_an_order_that_was_delivered_while_it_was_withdrawn_is_cancelled_in_the_process() -> None:
    capture, _ = play([c.Cancel(Reason.CANCELLED, "m", 2 * S)])
    assert advance(capture, Delivered("p", 2 * S)) == (capture, [Effect.CANCEL_IN_PROCESS, Effect.DISCARD])


@pytest.mark.parametrize(("orderly_end", "reason"), [(True, Reason.PROCESS_EXITED), (False, Reason.PROCESS_KILLED)])
def test_a_process_that_ends_may_have_left_its_trace(orderly_end: bool, reason: Reason) -> None:
    to_end = [*TO_STARTED, Gone("p", 25 * S, orderly_end)]
    assert play([*to_end, c.Tick(25 * S + GONE_PATIENCE_NS - 1)])[0].state == RankState.STARTED
    assert play([*to_end, c.Tick(25 * S + GONE_PATIENCE_NS)])[0].reason == reason
    assert play([*to_end, c.FinalSeen(NAME, 5, 26 * S)])[1] == [Effect.COMPRESS]
    assert play([*TO_WRITTEN, Gone("p", 41 * S, orderly_end), c.Tick(90 * S)])[0].state == RankState.WRITTEN


def test_a_busy_process_counts_as_started_only_when_its_window_is_due() -> None:
    early = BusyChanged("p", True, 3 * S, 50)
    due = BusyChanged("p", True, 3 * S, 99)
    assert play([*TO_ARMED, early])[0].state == RankState.ARMED
    assert play([*TO_ARMED, due])[0].state == RankState.STARTED
    blind: list[c.Event] = [Delivered("p", 2 * S), BusyChanged("p", True, 11 * S, None)]
    assert play(blind, BLIND)[0].state == RankState.STARTED
    assert play([Delivered("p", 2 * S), BusyChanged("p", True, 9 * S, None)], BLIND)[0].state == RankState.ARMED


def test_an_order_that_kineto_took_but_never_began_fails_some_time_after_it_was_due() -> None:
    events: list[c.Event] = [Delivered("p", 2 * S), c.Tick(10 * S, busy=False)]
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
        ([Gone("p", 2 * S, True)], []),
    ],
)
def test_a_restart_takes_up_what_was_under_way(events: list[c.Event], effects: list[Effect]) -> None:
    written = msgspec.json.encode(play(events)[0])
    capture, resumed = resume(msgspec.json.decode(written, type=ProcessCapture))
    assert resumed == effects
    if events == TO_CHECKING:
        assert advance(capture, c.FinalSeen(NAME, 500, 90 * S))[1] == [Effect.COMPRESS]


WITH_EVENTS = c.FileChecked(NAME, "cap-r3", 500, STORED, 40 * S, events=70)


def cost(**more: int) -> RecordingCost:
    return RecordingCost(memory_before_bytes=100, memory_peak_bytes=900, memory_after_bytes=120, **more)


MEASURED = c.MemoryMeasured(100, 900, 120, 60 * S)


@pytest.mark.parametrize(
    ("events", "cost"),
    [
        ([*TO_WRITTEN[:-1], WITH_EVENTS], RecordingCost(iterations=5, events=70, trace_bytes=500)),
        (
            [*TO_WRITTEN[:-1], WITH_EVENTS, MEASURED],
            cost(iterations=5, events=70, trace_bytes=500),
        ),
        ([*TO_STARTED, MEASURED], cost()),
        ([*TO_STARTED, c.Cancel(Reason.NO_MEMORY, "m", 50 * S), c.AgentCancelled(51 * S), MEASURED], cost()),
        (TO_STARTED, None),
    ],
)
def test_what_the_recording_took_is_known_as_soon_as_it_is_told_even_at_the_end(
    events: list[c.Event], cost: RecordingCost | None
) -> None:
    capture, effects = play(events)
    assert capture.cost == cost
    assert Effect.REPORT in effects or cost is None
    sent = make_event(capture)
    assert sent.HasField("recording_cost") == (cost is not None)
    assert cost is None or sent.recording_cost.memory_peak_bytes == cost.memory_peak_bytes


def test_a_window_by_time_has_no_iterations_to_count() -> None:
    capture, _ = play([*TO_WRITTEN[:-1], WITH_EVENTS], BLIND)
    assert capture.cost == RecordingCost(events=70, trace_bytes=500)


def test_a_canary_is_measured_and_waits_to_be_let_go() -> None:
    canary = terms(canary=True)
    _, effects = play(TO_WRITTEN, canary)
    assert effects == [Effect.REPORT, Effect.TELL_AGENT_DONE, Effect.GATHER_SAMPLES]
    cost = TimeCost(iteration_ns=5, iterations_after=1)
    measured, effects = play([*TO_WRITTEN, c.TimeMeasured(cost, 50 * S)], canary)
    assert (measured.state, measured.time_cost, effects) == (RankState.WRITTEN, cost, [Effect.REPORT])
    assert resume(measured)[1] == []
    assert resume(play(TO_WRITTEN, canary)[0])[1] == [Effect.GATHER_SAMPLES]
    assert play([*TO_WRITTEN, c.TimeMeasured(cost, 50 * S)])[1] == []  # told with the end


@pytest.mark.parametrize("before", [TO_ARMED, TO_STARTED], ids=["armed", "recording"])
def test_a_profile_of_the_jobs_own_ends_ours_within_two_seconds_and_says_so(before: list[c.Event]) -> None:
    capture, effects = play([*before, OwnProfileBegan("p", 21 * S)])
    assert (capture.is_final, effects) == (False, [])
    capture, effects = play(
        [*before, OwnProfileBegan("p", 21 * S), c.Tick(21 * S + OWN_PROFILE_PATIENCE_NS, 101, True)]
    )
    assert capture.reason is Reason.CANCELLED_BY_USER_PROFILER
    # PyTorch 2.13 keeps an order that has not begun: the agent takes it away when the job's own profile is over.
    assert Effect.CANCEL_IN_PROCESS in effects
    assert OWN_PROFILE_PATIENCE_NS < 2 * S


def test_a_job_that_leaves_no_gap_is_told_how_long_one_has_to_be() -> None:
    at = 21 * S
    met, _ = play([*TO_ARMED, OwnProfileBegan("p", at), c.Tick(at + OWN_PROFILE_PATIENCE_NS, 90, True)])
    missed, _ = play([OwnProfileBegan("p", 2 * S), Expired("p", "own", 3 * S, 2 * S)])
    assert "began 20.0 s after this rank was asked" in met.message
    for capture in (met, missed):
        assert "must be room for this window and some 3 s before it: give its schedule a longer wait" in capture.message


def test_a_trace_that_was_complete_just_before_the_jobs_own_profile_is_kept() -> None:
    capture, effects = play([*TO_STARTED, OwnProfileBegan("p", 21 * S), c.FinalSeen(NAME, 500, 22 * S)])
    assert effects == [Effect.COMPRESS]
    assert advance(capture, c.Tick(40 * S, 200, False))[0].is_final is False


def test_a_cancel_that_meets_the_jobs_own_profile_touches_nothing_and_ends_as_a_cancel() -> None:
    cancel = c.Cancel(Reason.CANCELLED, "by you", 22 * S)
    orders: list[list[c.Event]] = [[OwnProfileBegan("p", 21 * S), cancel], [cancel, OwnProfileBegan("p", 22 * S)]]
    for events in orders:
        capture, _ = play([*TO_STARTED, *events, c.Tick(24 * S, 101, True)])
        assert capture.reason is Reason.CANCELLED
        assert capture.message == "by you; the job's own torch.profiler had dropped the trace"


def test_before_its_delivery_an_order_waits_for_the_jobs_own_profile() -> None:
    capture, effects = play([OwnProfileBegan("p", 2 * S), c.Tick(5 * S, 1, True)])
    assert (capture.state, effects) == (RankState.ASKED, [])


def test_without_the_agent_a_window_by_time_that_another_profile_took_is_not_recording_for_long() -> None:
    blind = BLIND
    assert blind.start_unix_ns is not None
    started: list[c.Event] = [Delivered("p", 2 * S), c.TmpSeen(0, blind.start_unix_ns)]
    end = blind.start_unix_ns + 3 * S
    capture, _ = play([*started, c.Tick(end + 10 * S, None, True, end)], blind)
    assert capture.is_final is False
    capture, _ = play([*started, c.Tick(end + 30 * S, None, True, end + 30 * S)], blind)
    assert capture.reason is Reason.CANCELLED_BY_USER_PROFILER


def test_a_file_that_never_came_is_not_the_volumes_fault_in_a_job_that_profiles_itself() -> None:
    busy = [*TO_ARMED, BusyChanged("p", True, 3 * S, 100)]
    tick = c.Tick(GIVE_UP, 200, False, profiles_itself=True)
    assert play([*busy, tick])[0].reason is Reason.CANCELLED_BY_USER_PROFILER
