"""Orders to a sidecar that is run as a process, and how far they have come."""

import time
from collections.abc import Callable
from typing import Any

from fleetprof_api.hub import hub_pb2

from harness.hub.scripted_hub import ScriptedHub

NS = 10**9
Await = Callable[..., Any]


def arm(hub: ScriptedHub, capture_id: str = "cap-1", iterations: int = 5, lead: int = 100, **more: Any) -> int:
    """Arms every trainer that the hub knows with one first step ahead of all, and returns that step."""
    processes = [p for p in hub.processes() if p.role == hub_pb2.TRAINER and p.HasField("step")]
    assert processes
    first_step = max(p.step.step for p in processes) + lead
    now = time.time_ns()
    message = {
        "capture_id": capture_id,
        "orders": [hub_pb2.Order(process_id=p.process_id, rank=p.rank) for p in processes],
        "window": hub_pb2.Window(iterations=iterations),
        "first_step": first_step,
        "deliver_until_unix_ns": now + 20 * NS,
        "give_up_unix_ns": now + 60 * NS,
        **more,
    }
    hub.send(arm=hub_pb2.Arm(**message))
    return first_step


def known_trainers(hub: ScriptedHub, count: int) -> Callable[[], bool]:
    def are_known() -> bool:
        ready = [p for p in hub.processes() if p.role == hub_pb2.TRAINER and p.HasField("step") and p.polls_kineto]
        return len(ready) == count

    return are_known


def reached(hub: ScriptedHub, capture_id: str, rank: int, *states: str) -> Callable[[], bool]:
    return lambda: hub.state(capture_id, rank) in states
