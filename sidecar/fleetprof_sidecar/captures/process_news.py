"""What an event of the process table means for one capture of that process.

Guarantees: changes nothing but the recorder that it is given; an event about another capture's order means nothing.
"""

from typing import Any

from fleetprof_api.ledger import Reason
from fleetprof_api.report.recording import say_bytes

from fleetprof_sidecar.capture import events as happened
from fleetprof_sidecar.capture.process_capture import Capture
from fleetprof_sidecar.processes import views as seen
from fleetprof_sidecar.samples.rank_samples import RankRecorder


def translate(
    event: seen.ProcessEvent,
    capture: Capture,
    view: seen.ProcessView | None,
    recorder: RankRecorder | None,
    now_unix_ns: int,
    *,
    has_order: bool,
) -> list[happened.Event]:
    """The capture's events. `has_order`: the process's latest order is this capture's; `recorder` gets the samples."""
    match event:
        case seen.Delivered(_, at) if has_order:
            return [happened.Delivered(at)]
        case seen.Expired(_, why, at) if has_order:
            polled = view is not None and view.last_poll_unix_ns > capture.asked_unix_ns
            return [happened.Expired(why, polled or why != "time", at)]
        case seen.BusyChanged(_, busy, at):
            step = view.step.step if view is not None and view.step is not None else None
            return [happened.BusyChanged(busy, step, at)]
        case seen.OwnProfileBegan(_, at) if has_order:
            return [happened.OwnProfileBegan(at)]
        case seen.Gone(_, at, farewell):
            return [happened.Gone(farewell, at)]
        case seen.AgentMessage(_, fields):
            return _hear_agent(fields, capture.terms.capture_id, recorder, now_unix_ns)
    return []


def _hear_agent(
    fields: dict[str, Any], capture_id: str, recorder: RankRecorder | None, now_unix_ns: int
) -> list[happened.Event]:
    kind, mine = fields["t"], fields.get("capture") == capture_id
    if kind == "bye":
        return [happened.Gone(True, now_unix_ns)]
    if kind == "dropping" and mine:
        return [happened.AgentDropping(now_unix_ns)]
    if kind == "ending" and mine:
        return [happened.AgentEnding(now_unix_ns)]
    if kind == "cancelled" and mine:
        return [happened.AgentCancelled(now_unix_ns)]
    if kind == "short" and mine:
        return [happened.Cancel(Reason.NO_MEMORY, _say_shortage(fields), now_unix_ns)]
    if kind == "memory" and mine:
        return [
            happened.MemoryMeasured(fields["before_bytes"], fields["peak_bytes"], fields["after_bytes"], now_unix_ns)
        ]
    if recorder is not None and kind == "times" and mine:
        recorder.add_steps(fields["step"], fields["end_unix_ns"])
    if recorder is not None and kind == "device":
        recorder.add_device(fields)
    if recorder is not None and kind in ("places", "stacks", "thread", "collections") and mine:
        recorder.thread.add(kind, fields)
    return []


def _say_shortage(fields: dict[str, Any]) -> str:
    left, needed = say_bytes(fields["headroom_bytes"]), say_bytes(fields["needed_bytes"])
    when = "while it recorded, the process could" if fields["recording"] else "before it recorded, the process could"
    return f"{when} take {left} more, and the trace would need {needed}; capture fewer iterations or less of collect"
