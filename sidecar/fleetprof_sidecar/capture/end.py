"""The end of a capture: delivered, or failed with a reason; and what is left to be done then.

Guarantees: pure; each end is reported to the hub; what was delivered to Kineto is taken back where that is possible.
"""

import msgspec
from fleetprof_api.ledger import RankState, Reason

from fleetprof_sidecar.capture.process_capture import Effect, ProcessCapture

Transition = tuple[ProcessCapture, list[Effect]]


def end_delivered(capture: ProcessCapture, at: int) -> Transition:
    """The store holds what was asked for. A trace that may still be asked for stays in the spool."""
    note = f"the rank's samples are missing: {capture.samples_note}" if capture.samples_note else ""
    if capture.trace_stored and capture.summary_note:
        note = f"its whole trace was uploaded, for no summary could be made: {capture.summary_note}"
    delivered_capture = msgspec.structs.replace(capture, state=RankState.UPLOADED, uploaded_unix_ns=at, message=note)
    return delivered_capture, [Effect.REPORT] if delivered_capture.keeps_trace else [Effect.REPORT, Effect.DISCARD]


def end_failed(capture: ProcessCapture, reason: Reason, message: str, at: int) -> Transition:
    """The rank has no result; the message says why."""
    failed = msgspec.structs.replace(
        capture, state=RankState.FAILED, reason=reason, message=message, failed_unix_ns=at, file_name=""
    )
    effects = [Effect.REPORT]
    if capture.state == RankState.ASKED:
        effects.insert(0, Effect.WITHDRAW_ORDER)
    if capture.terms.has_agent and capture.orderly_end is None and capture.cancel_reason is None:
        # Dropping frees Kineto's one slot; it costs the trainer milliseconds, so only where there is something.
        held_by_kineto = capture.state != RankState.ASKED and not capture.written_unix_ns
        effects.append(Effect.CANCEL_IN_PROCESS if held_by_kineto else Effect.TELL_AGENT_DONE)
    if not capture.awaits_file:
        effects.append(Effect.STOP_WORK)
    effects.append(Effect.DISCARD)
    return failed, effects
