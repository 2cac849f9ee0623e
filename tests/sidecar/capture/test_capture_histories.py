"""Events that can never happen to a capture, whatever is told in whatever order."""

import msgspec
from fleetprof_api.choices import Traces
from fleetprof_api.ledger import RankState, Reason, TimeCost
from fleetprof_sidecar.capture import events as c
from fleetprof_sidecar.capture.finished_trace import STORE_PATIENCE_NS
from fleetprof_sidecar.capture.machine import advance, begin, resume
from fleetprof_sidecar.capture.process_capture import Effect, ProcessCapture, Terms
from fleetprof_sidecar.processes.events import BusyChanged, Delivered, Expired, Gone
from harness.sidecar.played_capture import (
    AUTO,
    BLIND,
    GIVE_UP,
    NAME,
    STORED,
    SUMMARY,
    S,
    terms,
)
from hypothesis import given
from hypothesis import strategies as st

times = st.integers(S, 2 * GIVE_UP)
stored = st.just(STORED)
process = st.just("p")
events = st.one_of(
    st.builds(c.OrderRejected, st.sampled_from(Reason), st.text(), times),
    st.builds(Delivered, process, times),
    st.builds(Expired, process, st.sampled_from(["time", "step", "busy", "role"]), times, st.just(0) | times),
    st.builds(BusyChanged, process, st.booleans(), times, st.none() | st.integers(0, 200)),
    st.builds(c.TmpSeen, st.integers(0, 2000), times),
    st.builds(c.FinalSeen, st.sampled_from([NAME, "cap-r3_78.json"]), st.integers(0, 2000), times),
    st.builds(c.FileChecked, st.just(NAME), st.sampled_from(["cap-r3", "cap-r4", ""]), st.just(9), stored, times),
    st.builds(c.FileRejected, st.just(NAME), st.sampled_from(Reason), st.text(), times),
    st.builds(Gone, process, times, st.booleans()),
    st.builds(c.Cancel, st.sampled_from(Reason), st.text(), times),
    st.builds(c.AgentDropping, times),
    st.builds(c.AgentEnding, times),
    st.builds(c.AgentCancelled, times),
    st.builds(c.MemoryMeasured, times, times, times, times),
    st.builds(c.TimeMeasured, st.builds(TimeCost, iteration_ns=times), times),
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
    [terms(), BLIND, terms(has_agent=False), terms(max_trace_bytes=0), SUMMARY, AUTO, terms(canary=True)]
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
    assert msgspec.json.decode(msgspec.json.encode(capture), type=ProcessCapture) == capture
    resumed, _ = resume(capture)
    ended, _ = advance(resumed, c.Tick(GIVE_UP + STORE_PATIENCE_NS))
    assert ended.is_final
