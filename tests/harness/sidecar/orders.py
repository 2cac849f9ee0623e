"""A hub's orders to one trainer, and the sidecar's view of that trainer."""

from typing import Any

from fleetprof_api.hub import hub_pb2
from fleetprof_sidecar.processes.views import ProcessView, StepView

from harness.sidecar.captures_in_memory import S, view

ARM: dict[str, Any] = {
    "capture_id": "cap",
    "window": hub_pb2.Window(iterations=5, warmup_iterations=1),
    "first_step": 100,
    "deliver_until_unix_ns": 50 * S,
    "give_up_unix_ns": 90 * S,
    "collect": ["Shapes"],
}
ORDER = hub_pb2.Order(process_id="p", rank=1)


def trainer_view(**more: Any) -> ProcessView:
    """Rank 1 of two, with two optimizer steps per iteration."""
    steps = StepView(step=50, at_unix_ns=1, iteration_ns=S, steps_per_iteration=2)
    return view(**{"rank": 1, "local_rank": 1, "world_size": 2, "step": steps, **more})
