"""The rules of a capture, as a pure state machine: what an event changes and what is to be done about it.

Kineto has no status channel, so states are inferred from what can be seen: the poll that fetched the order, the `.tmp`
file, the renamed file, the busy bit of later polls, the agent's step reports
(docs/kineto-protocol.md#states-inside-the-process).

Guarantees: `advance` touches nothing outside its arguments and takes the time from its events; a final state is never
left; a capture always ends (`Tick` at `give_up_unix_ns + STORE_PATIENCE_NS` at the latest); a trace is uploaded only
after its own trace id was found in it; repeating an event changes nothing.
"""

from typing import Final

import msgspec
from fleetprof_api.ledger import RankState, Reason, RecordingCost

from fleetprof_sidecar.capture.end import Transition, end_failed
from fleetprof_sidecar.capture.events import (
    AgentCancelled,
    AgentDropping,
    AgentEnding,
    Cancel,
    Event,
    FileChecked,
    FileRejected,
    FinalSeen,
    MemoryMeasured,
    OrderRejected,
    PodEnded,
    Tick,
    TimeMeasured,
    TmpSeen,
)
from fleetprof_sidecar.capture.finished_trace import (
    STORE_PATIENCE_NS,
    deliver,
    give_up_delivery,
    keep,
    resume_delivery,
)
from fleetprof_sidecar.capture.orders import window_end_unix_ns
from fleetprof_sidecar.capture.process_capture import Effect, ProcessCapture, Terms
from fleetprof_sidecar.capture.reasons import explain_end_of_process, explain_expiry, explain_missing_file
from fleetprof_sidecar.capture.trace_file import accept_file, see_final, see_tmp, to_armed, to_started
from fleetprof_sidecar.processes.events import BusyChanged, Delivered, Expired, Gone, OwnProfileBegan

# How long an agent may take to confirm that it dropped the trace: it answers from the next optimizer step.
CANCEL_PATIENCE_NS: Final = 10_000_000_000
# And how long the drop may take once it has begun: PyTorch works through all that was recorded.
DROP_PATIENCE_NS: Final = 120_000_000_000
# From the end of a process to the verdict: the directory is scanned several times in between.
GONE_PATIENCE_NS: Final = 2_000_000_000
# Kineto idle again, and neither a file nor a sign of one: its write ends with the busy bit
# (docs/kineto-protocol.md#states-inside-the-process).
QUIET_PATIENCE_NS: Final = 5_000_000_000
# From the begin of the job's own profile, which drops our trace, to the verdict.
OWN_PROFILE_PATIENCE_NS: Final = 1_500_000_000
# From the end of a window by time to "Kineto is busy with something else", where nothing was written.
OVERDUE_PATIENCE_NS: Final = 15_000_000_000
# From the time (or step) at which tracing should have begun to "it did not".
START_PATIENCE_NS: Final = 15_000_000_000


def begin(terms: Terms, now_unix_ns: int) -> ProcessCapture:
    """A capture that was just asked for."""
    return ProcessCapture(terms=terms, asked_unix_ns=now_unix_ns, last_sign_unix_ns=now_unix_ns)


def resume(capture: ProcessCapture) -> Transition:
    """A capture read from the journal after a restart: what has to be begun again."""
    if capture.keeps_trace and capture.fetched:
        return capture, [Effect.UPLOAD_TRACE]
    if capture.is_final:
        return capture, []
    if capture.state == RankState.WRITTEN:
        return capture, resume_delivery(capture)
    # The compression died with us; the scan finds the file again.
    return msgspec.structs.replace(capture, file_name=""), []


def advance(capture: ProcessCapture, event: Event) -> Transition:
    """The capture after `event`, and what is to be done about it."""
    if isinstance(event, MemoryMeasured):
        return _note_memory(capture, event)
    if isinstance(event, TimeMeasured):
        # A canary has no further event that would tell it.
        known = msgspec.structs.replace(capture, time_cost=event.cost)
        return known, [Effect.REPORT] if capture.terms.canary and known != capture else []
    if capture.keeps_trace:
        return keep(capture, event)
    if capture.is_final and isinstance(event, AgentCancelled) and not capture.dropped_by_agent:
        return msgspec.structs.replace(capture, dropped_by_agent=True), []
    if capture.is_final:
        return capture, _clean_up(capture, event)
    match event:
        case PodEnded(at):
            cause = "the trace was not uploaded in time" if capture.written_unix_ns else "its trace was not complete"
            return end_failed(capture, Reason.POD_ENDED, f"lost: the pod ended, and {cause}", at)
        case OrderRejected(reason, message, at):
            if capture.state == RankState.ASKED:
                return end_failed(capture, reason, message, at)
        case Expired():
            if capture.state == RankState.ASKED:
                return end_failed(
                    capture, *explain_expiry(capture, event.why, event.last_poll_unix_ns), event.at_unix_ns
                )
        case Delivered(_, at):
            if capture.state == RankState.ASKED:
                return to_armed(capture, at), [Effect.REPORT]
        case BusyChanged(_, busy, at, step):
            if capture.awaits_file and capture.state != RankState.ASKED:
                moved = msgspec.structs.replace(capture, last_sign_unix_ns=at)
                if capture.state == RankState.ARMED and busy and capture.terms.is_due(at, step):
                    return to_started(moved, at), [Effect.REPORT]
                return moved, []
        case OwnProfileBegan(_, at):
            if capture.awaits_file and capture.state != RankState.ASKED and not capture.own_profile_unix_ns:
                # A file that was complete just before is seen within this time.
                return msgspec.structs.replace(
                    capture, own_profile_unix_ns=at, settle_unix_ns=at + OWN_PROFILE_PATIENCE_NS
                ), []
        case TmpSeen():
            return see_tmp(capture, event)
        case FinalSeen():
            return see_final(capture, event)
        case FileChecked():
            return accept_file(capture, event)
        case FileRejected(name, reason, message, at):
            if capture.file_name == name and capture.state == RankState.STARTED:
                return end_failed(capture, reason, message, at)
        case Gone(_, at, orderly_end):
            if capture.state == RankState.ASKED:
                capture = msgspec.structs.replace(capture, orderly_end=orderly_end)
                return end_failed(capture, *explain_end_of_process(orderly_end), at)
            if capture.awaits_file and capture.orderly_end is None:
                return msgspec.structs.replace(
                    capture, orderly_end=orderly_end, settle_unix_ns=at + GONE_PATIENCE_NS
                ), []
        case Cancel():
            return _cancel(capture, event)
        case AgentDropping(at):
            settles_otherwise = capture.own_profile_unix_ns or capture.orderly_end is not None
            if capture.awaits_file and capture.cancel_reason is not None and not settles_otherwise:
                return msgspec.structs.replace(capture, settle_unix_ns=at + DROP_PATIENCE_NS), []
        case AgentEnding(at):
            if capture.awaits_file and capture.cancel_reason is not None:
                discarded = "its window was over, and the trace is discarded once it is written"
                return end_failed(capture, capture.cancel_reason, f"{capture.cancel_message}; {discarded}", at)
        case AgentCancelled(at):
            if capture.cancel_reason is not None:
                return end_failed(
                    capture,
                    capture.cancel_reason,
                    f"{capture.cancel_message}; the trace was stopped in the process",
                    at,
                )
            if capture.awaits_file and not capture.dropped_by_agent:
                dropped = msgspec.structs.replace(
                    capture, dropped_by_agent=True, settle_unix_ns=capture.settle_unix_ns or at + QUIET_PATIENCE_NS
                )
                return dropped, []
        case Tick():
            return _tick(capture, event)
        case _ if capture.state == RankState.WRITTEN:
            return deliver(capture, event)
    return capture, []


def _clean_up(capture: ProcessCapture, event: Event) -> list[Effect]:
    """The effects of a capture that is over: take back what was delivered after all, drop what appears."""
    if isinstance(event, Delivered) and capture.terms.has_agent and not capture.armed_unix_ns:
        return [Effect.CANCEL_IN_PROCESS, Effect.DISCARD]
    return [Effect.DISCARD] if isinstance(event, Delivered | FinalSeen) else []


def _note_memory(capture: ProcessCapture, event: MemoryMeasured) -> Transition:
    """Also of a capture that is over: what it cost is known last."""
    cost = msgspec.structs.replace(
        capture.cost or RecordingCost(),
        memory_before_bytes=event.before_bytes,
        memory_peak_bytes=event.peak_bytes,
        memory_after_bytes=event.after_bytes,
    )
    if cost == capture.cost:
        return capture, []
    return msgspec.structs.replace(capture, cost=cost), [Effect.REPORT]


def _cancel(capture: ProcessCapture, event: Cancel) -> Transition:
    at = event.at_unix_ns
    if capture.state == RankState.ASKED:
        return end_failed(capture, event.reason, f"{event.message}; the order was withdrawn", at)
    if not capture.awaits_file:
        return end_failed(capture, event.reason, f"{event.message}; the trace is discarded", at)
    if not capture.terms.has_agent:
        message = f"{event.message}; the profiler takes no order back: it ends with its window and is discarded"
        return end_failed(capture, event.reason, message, at)
    if capture.cancel_reason is not None:
        return capture, []
    cancelling = msgspec.structs.replace(
        capture,
        cancel_reason=event.reason,
        cancel_message=event.message,
        settle_unix_ns=capture.settle_unix_ns if capture.own_profile_unix_ns else at + CANCEL_PATIENCE_NS,
    )
    return cancelling, [Effect.CANCEL_IN_PROCESS]


def _tick(capture: ProcessCapture, tick: Tick) -> Transition:
    now, terms = tick.at_unix_ns, capture.terms
    if not capture.awaits_file:
        if now < terms.give_up_unix_ns + STORE_PATIENCE_NS:
            return capture, []
        return give_up_delivery(capture, tick)
    if now >= terms.give_up_unix_ns or (capture.settle_unix_ns and now >= capture.settle_unix_ns):
        return end_failed(capture, *explain_missing_file(capture, tick), now)
    if capture.state == RankState.ARMED and terms.is_due(now, tick.step) and not capture.due_unix_ns:
        # A process that is busy when its window begins is busy with it.
        capture = msgspec.structs.replace(capture, due_unix_ns=now)
    if capture.state == RankState.ARMED and capture.due_unix_ns:
        patience = START_PATIENCE_NS + 3 * terms.iteration_ns + 3 * terms.poll_interval_ns
        if now - capture.due_unix_ns >= patience and not tick.busy:
            return end_failed(capture, *explain_missing_file(capture, tick), now)
    end = window_end_unix_ns(terms)
    overdue = end is not None and now >= end + OVERDUE_PATIENCE_NS + 3 * terms.poll_interval_ns
    if capture.state == RankState.STARTED and overdue and tick.busy and not capture.tmp_bytes:
        return end_failed(capture, *explain_missing_file(capture, tick), now)
    if capture.state == RankState.STARTED and tick.busy is False:
        patience = QUIET_PATIENCE_NS + 3 * terms.poll_interval_ns
        quiet = min(now, tick.last_poll_unix_ns) - capture.last_sign_unix_ns
        if quiet >= patience:
            return end_failed(capture, *explain_missing_file(capture, tick), now)
    return capture, []
