"""A request's ledger as the hub protocol's messages, and a sidecar's message as a line of the ledger.

Guarantees: pure; a line and its message say the same, so that both ways together change nothing.
"""

from typing import Final

import msgspec
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Ledger, LedgerEntry, RankState, Reason, RecordingCost, TimeCost

_EVENT_TIMES = ("asked", "armed", "started", "written", "uploaded", "failed")
_STATES: Final = {number: RankState(name) for name, number in pb.RankState.items() if name in RankState.__members__}
_REASONS: Final = {reason.value: reason for reason in Reason}


def to_status(
    ledger: Ledger,
    *,
    target: str,
    request_json: str,
    finished: bool,
    report_location: str,
    with_ranks: bool = True,
) -> pb.CaptureStatus:
    """The ledger as people see it; the hub that runs the capture knows the rest."""
    return pb.CaptureStatus(
        uid=ledger.uid,
        name=ledger.name,
        namespace=ledger.namespace,
        target=target,
        conditions=[
            pb.Condition(
                type=c.type,
                status=c.status,
                reason=c.reason,
                message=c.message,
                transition_unix_ns=c.transition_unix_ns,
            )
            for c in ledger.conditions
        ],
        ranks=[to_event(ledger.uid, e) for e in ledger.entries] if with_ranks else [],
        finished=finished,
        start_mode=ledger.start_mode,
        first_step=ledger.first_step or 0,
        submitted_unix_ns=ledger.submitted_unix_ns,
        armed_unix_ns=ledger.armed_unix_ns,
        completed_unix_ns=ledger.completed_unix_ns,
        report_location=report_location,
        request_json=request_json,
        canary=None
        if ledger.canary is None or ledger.canary.entry is None
        else to_event(ledger.uid, ledger.canary.entry),
    )


def to_event(uid: str, entry: LedgerEntry) -> pb.CaptureEvent:
    """A line as a sidecar would tell it."""
    times = {f"{name}_unix_ns": getattr(entry, f"{name}_unix_ns") for name in _EVENT_TIMES}
    return pb.CaptureEvent(
        capture_id=uid,
        process_id=entry.process_id,
        rank=entry.rank,
        state=pb.RankState.Value(entry.state.value),
        reason=entry.reason or "",
        message=entry.message,
        trace_bytes=entry.trace_bytes,
        compressed_bytes=entry.compressed_bytes,
        sha256=entry.sha256,
        recording_cost=None
        if entry.recording_cost is None
        else pb.RecordingCost(**msgspec.structs.asdict(entry.recording_cost)),
        time_cost=None if entry.time_cost is None else pb.TimeCost(**msgspec.structs.asdict(entry.time_cost)),
        **times,
    )


def to_entry(event: pb.CaptureEvent, known: LedgerEntry) -> LedgerEntry:
    """The sidecar's word on the rank whose line is `known`. A reason that nobody knows is Internal."""
    failed = event.state == pb.FAILED
    reason = None
    if failed:
        reason = _REASONS.get(event.reason, Reason.INTERNAL)
    return msgspec.structs.replace(
        known,
        state=_STATES.get(event.state, RankState.ASKED),
        reason=reason,
        message=event.message or ("the sidecar gave no explanation" if failed else ""),
        asked_unix_ns=event.asked_unix_ns,
        armed_unix_ns=event.armed_unix_ns,
        started_unix_ns=event.started_unix_ns,
        written_unix_ns=event.written_unix_ns,
        uploaded_unix_ns=event.uploaded_unix_ns,
        failed_unix_ns=event.failed_unix_ns,
        trace_bytes=event.trace_bytes,
        compressed_bytes=event.compressed_bytes,
        sha256=event.sha256,
        recording_cost=_to_cost(event.recording_cost) if event.HasField("recording_cost") else None,
        time_cost=_to_time(event.time_cost) if event.HasField("time_cost") else None,
    )


def _to_cost(cost: pb.RecordingCost) -> RecordingCost:
    return RecordingCost(**{name: getattr(cost, name) for name in RecordingCost.__struct_fields__})


def _to_time(cost: pb.TimeCost) -> TimeCost:
    return TimeCost(**{name: getattr(cost, name) for name in TimeCost.__struct_fields__})
