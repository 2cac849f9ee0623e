"""The GPU waits for memory to be allocated or freed."""

from dataclasses import dataclass
from typing import Final

from fleetprof_analyzer.findings.idle_device import IdleDevice, make_idle_rule
from fleetprof_analyzer.job.sentence_guard import SentenceGuard


@dataclass(frozen=True, slots=True)
class Allocation(IdleDevice):
    """Idle time in calls that allocate or free."""

    guard = SentenceGuard(
        place="finding allocation", figure="idle_ns.host_allocation", whole="the devices' time", least_permille=20,
        words="the GPU waits for memory to be allocated or freed", part="idle",
    )  # fmt: skip

    def advise(self) -> str:
        """See IdleDevice."""
        return (
            "keep shapes the same, leave out torch.cuda.empty_cache() in the loop, and try "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        )


RULE: Final = make_idle_rule("allocation", Allocation, lambda idle: idle.host_allocation)
