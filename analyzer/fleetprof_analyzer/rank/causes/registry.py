"""The table of known causes: what proves each, and from which share of the iterations on it is a finding.

docs/measures.md#known-causes and the tests follow this table, and `words.known_causes` has a row for each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fleetprof_api.report.known_causes import KnownCause, KnownCauseName

from fleetprof_analyzer.rank.causes.collector import find_collector
from fleetprof_analyzer.rank.causes.iterations_seen import IterationsSeen


@dataclass(frozen=True, slots=True)
class CauseRule:
    """A cause, its evidence as docs say it, and its function.

    `program` below bench/real/programs has it planted. Findings of the kinds in `explains` are not told beside it where
    it takes half of what they do: their advice would be another.
    """

    name: KnownCauseName
    evidence: str
    find: Callable[[IterationsSeen], KnownCause | None]
    least_permille: int
    program: str
    explains: tuple[str, ...]


CAUSE_RULES: Final = (
    CauseRule(
        "garbage_collection",
        "runs of Python's collector of 1 ms and longer (`gc.callbacks` in the samples, or its frames)",
        find_collector,
        50,
        "causes/collector",
        ("python", "launch_bound", "optimizer", "data_loading", "long_iterations", "allocation"),
    ),
)


def find_known_causes(seen: IterationsSeen) -> list[KnownCause]:
    """What is proven on one rank, the most time first."""
    found = [cause for rule in CAUSE_RULES if (cause := rule.find(seen)) is not None and cause.time_ns > 0]
    return sorted(found, key=lambda cause: (-cause.time_ns, cause.cause))
