"""Memory that grows from iteration to iteration: it costs no time until there is none left.

Guarantees: pure; of the rank whose memory grows most, and silent where it grows in too few of the known steps; says
what grew and never that it is a leak: a cache that fills looks the same.
"""

from dataclasses import dataclass
from typing import Final

from fleetprof_api.quantities import size
from fleetprof_api.report.rank_tables import MemoryGrowth

from fleetprof_analyzer.findings.finding import MOST_RANKS, FindingRule, MeasuredFinding, RanksOfKind
from fleetprof_analyzer.job.sentence_guard import SentenceGuard

_KIND: Final = "memory_growth"
_KEPT: Final = (
    "keep numbers of past iterations (loss.item(), .detach()) and not tensors, each of which keeps its graph, and "
    "bound caches and lists; "
)
GROWING_MEMORY: Final = SentenceGuard(
    place="finding memory_growth",
    figure="ranks.memory_growth.grown_steps",
    whole="ranks.memory_growth.steps",
    least_permille=750,
    words="memory of … grows by N MiB an iteration",
    part="memory",
)


@dataclass(frozen=True, slots=True)
class GrowingMemory:
    """Memory grows from iteration to iteration: that of the rank with the most."""

    growth: MemoryGrowth

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        growth = self.growth
        of_process = growth.of == "process"
        when = " before the recording" if of_process else ""
        whose = "the training process" if of_process else f"PyTorch's allocator on {growth.of}"
        message = (
            f"memory of {whose} grows by {size(growth.bytes_per_iteration)} an iteration{when}: "
            f"from {size(growth.first_bytes)} to {size(growth.last_bytes)}"
        )
        if growth.of not in ("process", "cpu"):
            history = "torch.cuda.memory._record_memory_history()"
            return message, f"{_KEPT}{history} shows the lines that allocated what is held"
        return message, f"{_KEPT}tracemalloc shows the lines that allocated what Python holds"


def _find(view: RanksOfKind) -> MeasuredFinding | None:
    """Its `ranks` are those that memory grows on, where that of others does not."""
    grown = [
        (one.bytes_per_iteration, one, rank.rank)
        for rank in view.ranks
        if (one := rank.memory_growth) is not None and GROWING_MEMORY.allows(one.grown_steps, one.steps)
    ]
    if not grown:
        return None
    _, most, _ = max(grown, key=lambda one: one[0])
    numbers = sorted(rank for _, _, rank in grown if rank is not None)
    return MeasuredFinding(
        kind=_KIND,
        facts=GrowingMemory(most),
        guard=GROWING_MEMORY,
        gain_permille=0,
        measure="ranks.memory_growth",
        ranks=numbers[:MOST_RANKS] if len(numbers) < len(view.ranks) else [],
    )


RULE: Final = FindingRule(_KIND, (GROWING_MEMORY,), _find)
