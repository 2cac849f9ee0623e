"""Training threads of ranks without a GPU wait for a core, or their hosts are full and nobody sampled the threads."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Final

from fleetprof_api.report.report import Rank

from fleetprof_analyzer.findings.finding import FindingRule, MeasuredFinding, RanksOfKind
from fleetprof_analyzer.findings.host_time import median_permille, name_threads
from fleetprof_analyzer.job.sentence_guard import SentenceGuard

_KIND: Final = "cpu_contention"
OF_CORES: Final = "ranks.cores.waited_ns"
"""The measure of waits that were sampled, by which a headline knows them."""
_FEWEST_COMPARED: Final = 5  # iterations
WAITS_FOR_CORES: Final = SentenceGuard(
    place="finding cpu_contention", figure=OF_CORES, whole="the median rank's sampled time", least_permille=100,
    words="the training threads wait for a core, though ready to run", part="cores",
)  # fmt: skip
FULL_HOSTS: Final = SentenceGuard(
    place="finding cpu_contention, not sampled", figure="ranks.cores.host_busy_permille",
    whole="cores of the least busy host", least_permille=950, words="all cores of the ranks' hosts are busy (N %)",
    part="cores",
)  # fmt: skip
UNEVEN_ITERATIONS: Final = SentenceGuard(
    place="finding cpu_contention, not sampled: lengths", figure="what iterations take over the shortest",
    whole="the median rank's iterations", least_permille=100, words="and iterations differ in length",
    below="no finding", part="cores",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WaitsForCores:
    """The training threads of all of so many CPU-only ranks wait for a core."""

    ranks: int

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        return (
            f"{name_threads(self.ranks, 'wait')} for a core, though ready to run",
            "run fewer ranks, threads (OMP_NUM_THREADS) and other programs on these cores, or raise the CPU limit",
        )


@dataclass(frozen=True, slots=True)
class FullHosts:
    """All hosts of CPU-only ranks are full, and nobody sampled whether the training threads wait."""

    busy_permille: int
    ranks: int

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        whose = "the ranks' hosts" if self.ranks > 1 else "the rank's host"
        return (
            f"all cores of {whose} are busy ({self.busy_permille / 10:.0f} %), and iterations differ in "
            "length; whether the training threads wait for a core was not sampled",
            "run fewer ranks, threads (OMP_NUM_THREADS) and other programs on these cores; a capture of more "
            "iterations samples the training threads, unless it is told not to (--thread-samples Never)",
        )


def _find(view: RanksOfKind) -> MeasuredFinding | None:
    if view.total.kind != "cpu":
        return None
    ranks = view.ranks
    used = [rank.cores for rank in ranks if rank.cores is not None and rank.cores.waited_ns is not None]
    if not used or len(used) < len(ranks):
        return _find_full_hosts(ranks)
    waited = [one.waited_ns or 0 for one in used]
    permille = median_permille(waited, [one.sampled_ns for one in used])
    if not WAITS_FOR_CORES.allows(permille, 1000):
        return None
    return MeasuredFinding(
        kind=_KIND,
        facts=WaitsForCores(len(ranks)),
        guard=WAITS_FOR_CORES,
        gain_permille=permille,
        measure=OF_CORES,
        value_ns=sum(waited),
    )


def _find_full_hosts(ranks: Sequence[Rank]) -> MeasuredFinding | None:
    """Without samples of the threads: all hosts are full, and iterations that do the same differ in length."""
    busy = [rank.cores.host_busy_permille for rank in ranks if rank.cores is not None]
    known = [permille for permille in busy if permille is not None]
    if not known or len(known) < len(ranks) or not FULL_HOSTS.allows(min(known), 1000):
        return None
    lengths = [[one.duration_ns for one in rank.iterations if one.complete is not False] for rank in ranks]
    longer = [sum(each) - min(each) * len(each) if len(each) >= _FEWEST_COMPARED else 0 for each in lengths]
    permille = median_permille(longer, [sum(each) for each in lengths])
    if not UNEVEN_ITERATIONS.allows(permille, 1000):
        return None
    return MeasuredFinding(
        kind=_KIND,
        facts=FullHosts(median_low(known), len(ranks)),
        guard=UNEVEN_ITERATIONS,
        gain_permille=permille,
        measure="ranks.cores.host_busy_permille",
        value_ns=sum(longer),
    )


RULE: Final = FindingRule(_KIND, (WAITS_FOR_CORES, FULL_HOSTS, UNEVEN_ITERATIONS), _find)
