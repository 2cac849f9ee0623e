"""The rules of a finished trace: what is made of it, what goes to the store, and when that is enough.

Full: the trace, then the samples. Summary: the samples are gathered, the summary is made of both and stored, then the
samples; the trace never leaves. Auto: the same, and the trace waits in the spool until the hub asks for it or lets go;
where no summary can be made, the trace is stored at once. A canary: the iterations after it are watched, no more.

Guarantees: pure; a rank counts as delivered only when the store holds its trace or its summary; missing samples are a
note, never a failure.
"""

from typing import Final

import msgspec
from fleetprof_api.choices import Traces
from fleetprof_api.ledger import RankState, Reason

from fleetprof_sidecar.capture.end import Transition, end_delivered, end_failed
from fleetprof_sidecar.capture.events import (
    Event,
    SamplesReady,
    SamplesStored,
    SummaryReady,
    SummaryStored,
    Tick,
    TraceStored,
    TraceWanted,
    UploadEnded,
)
from fleetprof_sidecar.capture.process_capture import Effect, ProcessCapture

# A finished trace outlives its request by this much while the store is away, or the hub silent.
STORE_PATIENCE_NS: Final = 300_000_000_000


def begin_delivery(capture: ProcessCapture) -> list[Effect]:
    """The effects for a trace that was just written, or of which nothing was done before a restart."""
    if capture.terms.traces is Traces.FULL and not capture.terms.canary:
        return [Effect.UPLOAD_TRACE, Effect.GATHER_SAMPLES]
    return [Effect.GATHER_SAMPLES]


def resume_delivery(capture: ProcessCapture) -> list[Effect]:
    """The effects that a restart has ended, to be begun again."""
    if capture.terms.canary:
        return [] if capture.time_cost is not None else [Effect.GATHER_SAMPLES]
    gathered = capture.samples is not None or bool(capture.samples_note)
    if capture.terms.traces is Traces.FULL and not capture.trace_stored:
        return begin_delivery(capture)[: 1 if gathered else 2]
    return _next(capture, 0)[1] if gathered else [Effect.GATHER_SAMPLES]


def deliver(capture: ProcessCapture, event: Event) -> Transition:
    """A written capture after one of the events of its delivery; others change nothing."""
    changes: dict[str, object] = {}
    match event:
        case TraceStored() if not capture.trace_stored:
            changes = {"trace_stored": True}
        case SamplesReady(stored, note, _) if capture.samples is None and not capture.samples_note:
            changes = {"samples": stored, "samples_note": "" if stored else note or "none"}
        case SummaryReady(stored, note, at) if capture.summary is None and not capture.summary_note:
            changes = {"summary": stored, "summary_note": "" if stored else note or "unknown"}
            if stored is None and capture.terms.traces is Traces.SUMMARY:
                return end_failed(capture, Reason.SUMMARY_FAILED, f"no summary could be made: {note}", at)
        case SummaryStored() if capture.summary is not None and not capture.summary_stored:
            changes = {"summary_stored": True}
        case SamplesStored(at) if is_delivered(capture) and capture.samples is not None:
            return end_delivered(capture, at)
        case UploadEnded(message, "samples", at):
            if is_delivered(capture):
                return end_delivered(msgspec.structs.replace(capture, samples_note=message), at)
        case UploadEnded(message, _, at):
            return end_failed(capture, Reason.UPLOAD_FAILED, message, at)
    if not changes:
        return capture, []
    return _next(msgspec.structs.replace(capture, **changes), event.at_unix_ns)


def is_delivered(capture: ProcessCapture) -> bool:
    """Tells whether the store holds what the report needs."""
    return capture.trace_stored or capture.summary_stored


def give_up_delivery(capture: ProcessCapture, tick: Tick) -> Transition:
    """The end of a delivery that took too long."""
    if capture.state == RankState.WRITTEN and is_delivered(capture):
        note = capture.samples_note or "the store did not take them in time"
        return end_delivered(msgspec.structs.replace(capture, samples_note=note), tick.at_unix_ns)
    if capture.state == RankState.WRITTEN:
        message = f"not in the store until after the deadline; {tick.hint or 'the hub gave no answer'}"
        return end_failed(capture, Reason.UPLOAD_FAILED, message, tick.at_unix_ns)
    return end_failed(capture, Reason.DEADLINE_EXCEEDED, "the trace was not compressed in time", tick.at_unix_ns)


def keep(capture: ProcessCapture, event: Event) -> Transition:
    """A delivered capture whose trace waits in the spool: it goes when the hub asks for it, or after a bound."""
    match event:
        case TraceWanted() if not capture.fetched:
            return msgspec.structs.replace(capture, fetched=True), [Effect.UPLOAD_TRACE]
        case TraceStored():
            return msgspec.structs.replace(capture, trace_stored=True), [Effect.DISCARD]
        case UploadEnded(_, "trace", _):
            return msgspec.structs.replace(capture, trace=None), [Effect.DISCARD]
        case Tick(at) if at >= capture.terms.give_up_unix_ns + STORE_PATIENCE_NS:
            return msgspec.structs.replace(capture, trace=None), [Effect.STOP_WORK, Effect.DISCARD]
    return capture, []


def _next(capture: ProcessCapture, at: int) -> Transition:
    """The effects that follow from what is there, stored and gathered."""
    gathered = capture.samples is not None or bool(capture.samples_note)
    if capture.terms.traces is not Traces.FULL:
        if not gathered:
            return capture, []
        if capture.summary is None and not capture.summary_note:
            return capture, [Effect.SUMMARISE]
        if capture.summary is not None and not capture.summary_stored:
            return capture, [Effect.UPLOAD_SUMMARY]
        if capture.summary is None and not capture.trace_stored:
            return capture, [Effect.UPLOAD_TRACE]
    elif not capture.trace_stored:
        return capture, []
    if capture.samples is not None:
        return capture, [Effect.UPLOAD_SAMPLES]
    return end_delivered(capture, at) if capture.samples_note else (capture, [])
