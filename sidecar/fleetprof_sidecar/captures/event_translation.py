"""The process table's news of a process, as events of one capture of it.

Guarantees: changes nothing but the recorder that it is given; an event about another capture's order means nothing.
"""

from typing import Any

from fleetprof_api.ledger import Reason
from fleetprof_api.quantities import size

from fleetprof_sidecar.capture.events import (
    AgentCancelled,
    AgentDropping,
    AgentEnding,
    Cancel,
    Event,
    MemoryMeasured,
    Tick,
)
from fleetprof_sidecar.processes.events import (
    AgentMessage,
    BusyChanged,
    Delivered,
    Expired,
    Gone,
    OwnProfileBegan,
    ProcessEvent,
)
from fleetprof_sidecar.processes.views import ProcessView
from fleetprof_sidecar.samples.rank_samples import RankRecorder


def translate(
    event: ProcessEvent, capture_id: str, recorder: RankRecorder | None, now_unix_ns: int, *, has_order: bool
) -> list[Event]:
    """The capture's events. `has_order`: the process's latest order is this capture's; `recorder` gets the samples."""
    match event:
        case Delivered() | Expired() | OwnProfileBegan() if has_order:
            return [event]
        case BusyChanged() | Gone():
            return [event]
        case AgentMessage():
            return _hear_agent(event, capture_id, recorder, now_unix_ns)
    return []


def make_tick(view: ProcessView | None, hint: str, now_unix_ns: int) -> Tick:
    """The sight of a capture's process now, if it is there. `hint`: what stands in the capture's way."""
    if view is None:
        return Tick(now_unix_ns, hint=hint)
    return Tick(
        at_unix_ns=now_unix_ns,
        step=view.step.step if view.step is not None else None,
        busy=view.busy,
        last_poll_unix_ns=view.last_poll_unix_ns,
        profiles_itself=view.profiles_itself,
        hint=hint,
    )


def _hear_agent(message: AgentMessage, capture_id: str, recorder: RankRecorder | None, now_unix_ns: int) -> list[Event]:
    fields = message.fields
    kind, mine = fields["t"], fields.get("capture") == capture_id
    if kind == "bye":
        return [Gone(message.process_id, now_unix_ns, orderly_end=True)]
    if kind == "dropping" and mine:
        return [AgentDropping(now_unix_ns)]
    if kind == "ending" and mine:
        return [AgentEnding(now_unix_ns)]
    if kind == "cancelled" and mine:
        return [AgentCancelled(now_unix_ns)]
    if kind == "short" and mine:
        return [Cancel(Reason.NO_MEMORY, _say_shortage(fields), now_unix_ns)]
    if kind == "memory" and mine:
        return [MemoryMeasured(fields["before_bytes"], fields["peak_bytes"], fields["after_bytes"], now_unix_ns)]
    if recorder is not None and kind == "times" and mine:
        recorder.add_steps(fields["step"], fields["end_unix_ns"])
    if recorder is not None and kind == "device":
        recorder.add_device(fields)
    if recorder is not None and kind in ("places", "stacks", "thread", "collections", "held") and mine:
        recorder.thread.add(kind, fields)
    if recorder is not None and kind == "modules" and mine:
        recorder.modules.add(fields)
    return []


def _say_shortage(fields: dict[str, Any]) -> str:
    left, needed = size(fields["headroom_bytes"]), size(fields["needed_bytes"])
    when = "while it recorded, the process could" if fields["recording"] else "before it recorded, the process could"
    return f"{when} take {left} more, and the trace would need {needed}; capture fewer iterations or less of collect"
