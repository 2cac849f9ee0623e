"""The display of the hub's state of a capture: as one JSON document, in words, and on a display.

Guarantees: pure. The document has the names of hub.proto's CaptureStatus, 64-bit numbers as numbers.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.quantities import size

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.terminal.capture_view import CaptureView, Count, RankRow

# Words for people, in the order of a capture's life.
STATE_WORDS: Final = {
    pb.ASKED: "waiting for its next poll",
    pb.ARMED: "waiting for the first iteration",
    pb.STARTED: "recording",
    pb.WRITTEN: "written, on its way to the store",
    pb.UPLOADED: "uploaded",
    pb.FAILED: "failed",
}
STATE_ORDER: Final = tuple(STATE_WORDS)
_STYLES: Final = {pb.UPLOADED: "green", pb.FAILED: "red", pb.STARTED: "yellow"}
_BEGUN: Final = ("Cancelled", "DeadlineExceeded", "CanaryHarmed", "CanaryFailed")  # something was asked of the job
_RANKS_SHOWN: Final = 12
_REASONS_SHOWN: Final = 8


def succeeded(status: pb.CaptureStatus) -> pb.Condition:
    """The condition that tells how the capture as a whole stands; an empty one before there is any."""
    return next((condition for condition in status.conditions if condition.type == "Succeeded"), pb.Condition())


def count_states(ranks: Sequence[pb.CaptureEvent]) -> Counter[int]:
    """The number of ranks in each state."""
    return Counter(rank.state for rank in ranks)


def exit_code(status: pb.CaptureStatus) -> ExitCode:
    """The exit code of a finished capture."""
    stored = sum(rank.state == pb.UPLOADED for rank in status.ranks)
    condition = succeeded(status)
    return judge_end(len(status.ranks), stored, succeeded=condition.status != "False", reason=condition.reason)


def judge_end(targeted: int, stored: int, *, succeeded: bool, reason: str) -> ExitCode:
    """The exit code of an end: of `targeted` ranks so many are stored, and the Succeeded condition's word."""
    if not targeted and reason not in _BEGUN:
        return ExitCode.REFUSED
    if stored == 0:
        return ExitCode.CAPTURE_FAILED
    if stored < targeted or not succeeded or reason == "PartiallyCaptured":
        return ExitCode.PARTIAL
    return ExitCode.DONE


def view(status: pb.CaptureStatus) -> CaptureView:
    """For the display: every rank, and how many are in each state."""
    counts = count_states(status.ranks)
    start = f", from step {status.first_step}" if status.start_mode == "step" else ""
    return CaptureView(
        title=f"{status.name or status.uid} of {status.target}{start}",
        sentence=sentence(status),
        counts=[
            Count(number=counts[state], words=STATE_WORDS[state], style=_STYLES.get(state, ""))
            for state in STATE_ORDER
            if counts[state]
        ],
        ranks=[_rank_row(rank) for rank in sorted(status.ranks, key=lambda rank: rank.rank)],
        finished=status.finished,
        began_unix_ns=status.submitted_unix_ns,
        ended_unix_ns=status.completed_unix_ns,
    )


def _rank_row(rank: pb.CaptureEvent) -> RankRow:
    note = f"{rank.reason}: {rank.message}" if rank.state == pb.FAILED else ""
    if rank.trace_bytes:
        note = f"{size(rank.trace_bytes)}, {size(rank.compressed_bytes)} uploaded"
    return RankRow(
        rank=rank.rank,
        words=STATE_WORDS.get(rank.state, "asked"),
        style=_STYLES.get(rank.state, ""),
        note=note,
        # Failures first, then whoever is least far.
        urgency=-1 if rank.state == pb.FAILED else rank.state,
    )


def status_document(status: pb.CaptureStatus) -> dict[str, Any]:
    """The JSON document of `capture -o json` and of each item of `list -o json`."""
    return {
        "uid": status.uid,
        "name": status.name,
        "namespace": status.namespace,
        "target": status.target,
        "finished": status.finished,
        "conditions": [
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "transition_unix_ns": condition.transition_unix_ns,
            }
            for condition in status.conditions
        ],
        "start_mode": status.start_mode,
        "first_step": status.first_step,
        "submitted_unix_ns": status.submitted_unix_ns,
        "armed_unix_ns": status.armed_unix_ns,
        "completed_unix_ns": status.completed_unix_ns,
        "queue_position": status.queue_position or None,
        "report_location": status.report_location,
        "ranks": [_rank_document(rank) for rank in status.ranks],
        "canary": _rank_document(status.canary) if status.HasField("canary") else None,
    }


def _rank_document(rank: pb.CaptureEvent) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "process_id": rank.process_id,
        "state": pb.RankState.Name(rank.state),
        "reason": rank.reason,
        "message": rank.message,
        "asked_unix_ns": rank.asked_unix_ns,
        "armed_unix_ns": rank.armed_unix_ns,
        "started_unix_ns": rank.started_unix_ns,
        "written_unix_ns": rank.written_unix_ns,
        "uploaded_unix_ns": rank.uploaded_unix_ns,
        "failed_unix_ns": rank.failed_unix_ns,
        "trace_bytes": rank.trace_bytes,
        "compressed_bytes": rank.compressed_bytes,
        "sha256": rank.sha256,
        "recording_cost": _cost_document(rank.recording_cost) if rank.HasField("recording_cost") else None,
        "time_cost": _cost_document(rank.time_cost) if rank.HasField("time_cost") else None,
    }


def _cost_document(cost: pb.RecordingCost | pb.TimeCost) -> dict[str, int]:
    return {field.name: getattr(cost, field.name) for field in cost.DESCRIPTOR.fields}


def sentence(status: pb.CaptureStatus) -> str:
    """The state of the capture, in one line."""
    states = count_states(status.ranks)
    stored, failed = states[pb.UPLOADED], states[pb.FAILED]
    condition = succeeded(status)
    if not status.ranks:
        return condition.message or "no rank yet"
    counted = f"{stored} of {len(status.ranks)} ranks uploaded" + (f", {failed} failed" if failed else "")
    if not status.finished:
        return counted
    return f"{counted}: {condition.reason}" + (f", {condition.message}" if condition.message else "")


def failure_lines(status: pb.CaptureStatus) -> list[str]:
    """One line per reason, with the ranks it is about: a thousand ranks may fail for one."""
    groups: dict[tuple[str, str], list[int]] = {}
    for rank in status.ranks:
        if rank.state == pb.FAILED:
            groups.setdefault((rank.reason, rank.message), []).append(rank.rank)
    lines = []
    for (reason, message), ranks in sorted(groups.items(), key=lambda group: -len(group[1])):
        shown = ", ".join(map(str, sorted(ranks)[:_RANKS_SHOWN]))
        more = f" and {len(ranks) - _RANKS_SHOWN} more" if len(ranks) > _RANKS_SHOWN else ""
        lines.append(f"{'rank' if len(ranks) == 1 else 'ranks'} {shown}{more}: {reason}: {message}")
    if len(lines) > _REASONS_SHOWN:
        lines[_REASONS_SHOWN:] = [f"and {len(lines) - _REASONS_SHOWN} more reasons: fleetprof list -o json"]
    return lines
