"""The handling of the file that Kineto writes: it begins as `.tmp`, and is renamed when it is complete.

A file is the surest sign of a state: it shows that the order was fetched, and that the recording has begun.
Guarantees: as in `machine`; a trace counts as written only after its own trace id was found in it.
"""

import msgspec
from fleetprof_api.ledger import RankState, Reason, RecordingCost

from fleetprof_sidecar.capture.end import Transition, end_failed
from fleetprof_sidecar.capture.events import FileChecked, FinalSeen, TmpSeen
from fleetprof_sidecar.capture.finished_trace import begin_delivery
from fleetprof_sidecar.capture.process_capture import Effect, ProcessCapture


def to_armed(capture: ProcessCapture, at: int) -> ProcessCapture:
    """The order was fetched."""
    return msgspec.structs.replace(capture, state=RankState.ARMED, armed_unix_ns=at, last_sign_unix_ns=at)


def to_started(capture: ProcessCapture, at: int) -> ProcessCapture:
    """The recording has begun."""
    # A file without a delivery: we were away, or the endpoint's event is still on its way.
    armed = capture if capture.state == RankState.ARMED else to_armed(capture, at)
    return msgspec.structs.replace(armed, state=RankState.STARTED, started_unix_ns=at, last_sign_unix_ns=at)


def see_tmp(capture: ProcessCapture, event: TmpSeen) -> Transition:
    """The file is there, or has grown."""
    if not capture.awaits_file or capture.tmp_bytes == event.size_bytes:
        return capture, []
    at = event.at_unix_ns
    after = msgspec.structs.replace(capture, tmp_bytes=event.size_bytes, last_sign_unix_ns=at)
    effects = []
    if capture.state != RankState.STARTED:
        after = to_started(after, at)
        effects = [Effect.REPORT]
    if _is_too_large(after, event.size_bytes):
        return _fail_too_large(after, event.size_bytes, at)
    return after, effects


def see_final(capture: ProcessCapture, event: FinalSeen) -> Transition:
    """The file has its final name."""
    if not capture.awaits_file:
        return capture, []
    at = event.at_unix_ns
    after = capture if capture.state == RankState.STARTED else to_started(capture, at)
    after = msgspec.structs.replace(after, trace_bytes=event.size_bytes, written_unix_ns=at)
    if capture.cancel_reason is not None:
        return end_failed(after, capture.cancel_reason, f"{capture.cancel_message}; the trace is discarded", at)
    if _is_too_large(after, event.size_bytes):
        return _fail_too_large(after, event.size_bytes, at)
    after = msgspec.structs.replace(after, file_name=event.name)
    effects = [Effect.COMPRESS]
    if capture.state == RankState.ASKED:
        effects.insert(0, Effect.WITHDRAW_ORDER)
    if capture.state != RankState.STARTED:
        effects.append(Effect.REPORT)
    return after, effects


def _is_too_large(capture: ProcessCapture, size_bytes: int) -> bool:
    return 0 < capture.terms.max_trace_bytes < size_bytes


def _fail_too_large(capture: ProcessCapture, size_bytes: int, at: int) -> Transition:
    limit = capture.terms.max_trace_bytes
    message = f"the trace has {size_bytes} bytes or more, limits.maxTraceBytes allows {limit}; capture fewer iterations"
    return end_failed(capture, Reason.TRACE_TOO_LARGE, message, at)


def accept_file(capture: ProcessCapture, event: FileChecked) -> Transition:
    """The file was read and compressed: the trace is this capture's, or the capture fails."""
    if capture.state != RankState.STARTED or capture.file_name != event.name:
        return capture, []
    if event.trace_id != capture.terms.trace_id:
        message = f"the file carries the trace id {event.trace_id[:80]!r}, this request's is {capture.terms.trace_id!r}"
        return end_failed(capture, Reason.WRONG_TRACE, message, event.at_unix_ns)
    cost = msgspec.structs.replace(
        capture.cost or RecordingCost(),
        iterations=0 if capture.terms.first_step is None else capture.terms.recorded_iterations,
        events=event.events,
        trace_bytes=event.trace_bytes,
    )
    kept = msgspec.structs.replace(
        capture,
        state=RankState.WRITTEN,
        trace=event.stored,
        trace_bytes=event.trace_bytes,
        file_name="",
        cost=cost,
    )
    return kept, [Effect.REPORT, Effect.TELL_AGENT_DONE, *begin_delivery(kept)]
