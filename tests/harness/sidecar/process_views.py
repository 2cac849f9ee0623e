"""Views of trainers as the process table shows them, with only what a test is about."""

from typing import Any

from fleetprof_sidecar.processes.roles import Role
from fleetprof_sidecar.processes.views import ProcessView, StepView

S = 10**9


def view(step: StepView | None = None, **fields: Any) -> ProcessView:
    empty: dict[str, Any] = dict.fromkeys(ProcessView.__slots__, 0)
    texts = dict.fromkeys(
        ["torch_version", "python_version", "device_kind", "device_name", "device_uuid", "host_name"], ""
    )
    given = {"process_id": "p", "role": Role.TRAINER, "rank_source": "RANK_AGENT", "own_profile": "", "step": step}
    return ProcessView(**(empty | texts | given | fields))


def steps(count: int, at_s: float, iteration_ns: int = S // 2, per_iteration: int = 1) -> StepView:
    return StepView(count, int(at_s * S), iteration_ns, per_iteration)
