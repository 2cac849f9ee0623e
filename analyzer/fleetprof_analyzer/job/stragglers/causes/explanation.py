"""Why a rank is late: which part of its own time exceeds that of its peers, and what else bears witness.

Guarantees: pure; a cause is named only where one part holds half of the excess, else it is "mixed" with its parts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np
from fleetprof_api.report.stragglers import Cause, Evidence

from fleetprof_analyzer.job.stragglers.causes.cores import find_contention
from fleetprof_analyzer.job.stragglers.causes.devices import (
    comes_and_goes,
    find_slower_clock,
    measure_noise,
    measure_slowness,
    time_by_slowness,
)
from fleetprof_analyzer.job.stragglers.causes.loaders import loading_ns
from fleetprof_analyzer.job.stragglers.causes.operators import (
    OperatorWork,
    describe_exceeding,
    describe_work,
    find_exceeding,
)
from fleetprof_analyzer.job.stragglers.causes.pauses import find_collections
from fleetprof_analyzer.job.stragglers.causes.rhythm import find_rhythm
from fleetprof_analyzer.job.stragglers.causes.tensor_sizes import describe_same_sizes
from fleetprof_analyzer.job.stragglers.causes.unequal_work import (
    compare_operators,
    find_more_on_device,
)
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.thresholds import HALF, SAME_COUNT
from fleetprof_analyzer.rank.communication.operator_use import OperatorUse

_PER_ITERATION: Final = "ns per iteration"
_LEAST_SWING: Final = 0.05
_MOST_OF_WORK: Final = 0.4  # of the excess: medians leave out what other processes add
PARTS: Final = {
    "busy": "work on the device",
    "data": "data loading",
    "collection": "garbage collection",
    "host": "time in which neither device nor data loader worked",
}
PARTS_ON_HOST: Final = {
    "busy": "operators of the training thread",
    "host": "time outside of operators and data loading",
}


@dataclass(frozen=True, slots=True)
class Explained:
    """A cause with what speaks for it."""

    cause: Cause
    evidence: list[Evidence]
    every: int = 0  # late in every so many iterations; 0: no such rhythm


def explain_device(table: OwnTime, candidate: Candidate) -> Explained:
    """The cause of a candidate that was found by its kernels: the same ones take longer than on the other ranks."""
    longer = Evidence(
        measure="the same kernels, over the other ranks",
        value=round(100 * (1 + candidate.excess), 1),
        usual=100,
        unit="%",
    )
    slower = find_slower_clock(table, candidate)
    slowness = measure_slowness(table, candidate.rank)
    late = replace(candidate, iterations=slowness > slowness.max() / 2)
    swings = float(slowness.max()) > _LEAST_SWING and comes_and_goes(
        slowness, late, beside_peers=len(table.peers(candidate.rank)) > 0, noise=measure_noise(table, candidate.rank)
    )
    return Explained("throttling" if slower or swings else "slow_gpu", [longer, *slower])


def explain_loader(table: OwnTime, candidate: Candidate) -> Explained:
    """The cause of a candidate that was found by its data loading: it takes longer than on the other ranks."""
    loading = loading_ns(table)
    usual = np.median(np.delete(loading, candidate.rank, axis=0), axis=1)
    longer = Evidence(
        measure="data loading, beside all other ranks that load", value=round(float(loading[candidate.rank].mean())),
        usual=round(float(np.median(usual[usual > 0]))), unit="ns per iteration",
    )  # fmt: skip
    return Explained("data_loading", [longer])


def explain_work(table: OwnTime, candidate: Candidate) -> Explained:
    """The cause of a candidate that was given more to do than its peers, with how much more."""
    work = compare_operators(table, candidate.rank)
    sized = describe_work(work) if work is not None and work.sizes is not None else []
    more = find_more_on_device(table, candidate)
    if more is not None:
        given = Evidence(
            measure="what its kernels were launched for, at the peers' pace",
            value=round(100 * (1 + more.share), 1), usual=100, unit="%",
        )  # fmt: skip
        ran = Evidence(
            measure="kernels", value=round(more.calls, 1), usual=round(more.usual_calls, 1), unit="calls per iteration"
        )
        differs = abs(more.calls - more.usual_calls) > SAME_COUNT * more.usual_calls
        return Explained("unequal_work", [*sized, given, *([ran] if differs else [])])
    return Explained("unequal_work", [] if work is None else describe_work(work))


def explain(table: OwnTime, candidate: Candidate, *, on_gpu: bool, indices: list[int]) -> Explained:
    """The cause of one candidate; `indices` name the iterations."""
    rank, late = candidate.rank, candidate.iterations
    peers = table.peers(rank)

    def usual_of(values: Floats) -> Floats:
        """The usual values: the median of the peers, or of the rank's other iterations."""
        if len(peers):
            return np.asarray(np.median(values[peers], axis=0))
        return np.full(values.shape[1], np.median(values[rank]))

    own = {name: table.parts_ns[name].astype(np.float64) for name in PARTS}
    usual = {name: usual_of(values) for name, values in own.items()}
    # One long pause of a full machine outweighs what is late in every iteration in the mean, not in the median.
    center = np.median if candidate.pattern == LatePattern.PERSISTENT and not on_gpu else np.mean
    mine = {name: float(center(values[rank][late])) for name, values in own.items()}
    theirs = {name: float(center(usual[name][late])) for name in own}
    excess = {name: mine[name] - theirs[name] for name in own}
    slowness = measure_slowness(table, rank)
    if on_gpu and len(peers):
        # What it was given more by chance is no fault of its device.
        excess["busy"] = float(center(time_by_slowness(own["busy"][rank], slowness)[late]))
    excess |= _by_host(table, candidate, excess, usual_of)
    total = sum(max(value, 0.0) for value in excess.values()) or 1.0
    evidence = [
        Evidence(
            measure=words if on_gpu else PARTS_ON_HOST.get(name, words),
            value=round(mine[name]),
            usual=round(theirs[name]),
            unit=_PER_ITERATION,
        )
        for name, words in PARTS.items()
        if excess[name] > 0.1 * total
    ]
    evidence.append(
        Evidence(
            measure="late iterations", value=int(late.sum()), usual=0, unit=f"of {len(late)}",
            iterations=[index for index, here in zip(indices, late, strict=True) if here],
        )
    )  # fmt: skip
    operators = 0.0 if on_gpu else max(excess["busy"], 0.0)
    host = max(excess["host"], 0.0) + max(excess["collection"], 0.0) + operators
    every = find_rhythm(late, indices) if candidate.pattern == LatePattern.INTERMITTENT else None
    if every:
        evidence.append(Evidence(measure="distance of the late iterations", value=every, usual=0, unit="iterations"))
    cause: Cause = "mixed"
    if excess["data"] >= HALF * total:
        cause = "data_loading"
    elif host >= HALF * total:
        collection = max(excess["collection"], 0.0)
        cause, shown = _explain_host(table, candidate, collection, operators, host, rhythm=bool(every), on_gpu=on_gpu)
        evidence += shown
    elif excess["busy"] >= HALF * total:
        slower = find_slower_clock(table, candidate)
        evidence += slower
        throttled = bool(slower) or comes_and_goes(
            slowness, candidate, beside_peers=len(peers) > 0, noise=measure_noise(table, rank)
        )
        cause = "throttling" if throttled else "slow_gpu"
    if candidate.pattern == LatePattern.INTERMITTENT:
        evidence = [_of_late_iterations(one) for one in evidence]
    return Explained(cause, evidence, every or 0)


def _of_late_iterations(one: Evidence) -> Evidence:
    """Marks evidence that is a mean over the late iterations alone; operators are compared over all of them."""
    if one.unit != _PER_ITERATION or one.measure.startswith("operator "):
        return one
    return msgspec.structs.replace(one, unit="ns per late iteration")


def _explain_host(
    table: OwnTime,
    candidate: Candidate,
    collection: float,
    operators: float,
    host: float,
    *,
    rhythm: bool,
    on_gpu: bool,
) -> tuple[Cause, list[Evidence]]:
    """Which of the causes on the host; excess in runs of the collector, in operators, and in all, ns per iteration."""
    work = compare_operators(table, candidate.rank)
    sizes = None if work is None else work.sizes
    has_more = work is not None and _has_more_work(table, candidate, work, host, on_gpu=on_gpu)
    if work is not None and has_more and sizes is not None:
        # Sizes are certain, and who has more to do also waits longer for a core.
        return "unequal_work", describe_work(work)
    contention = find_contention(table, candidate, host)
    if contention is not None:
        return "cpu_contention", contention
    if work is not None and has_more:
        return "unequal_work", describe_work(work)
    mine, peers = _operators(table, candidate)
    iterations = table.own_ns.shape[1]
    if collection or not rhythm:
        collected = find_collections(table, candidate, collection, operators, host)
        if collected is not None:
            return "garbage_collection", [collected]
    exceeding = describe_exceeding(find_exceeding(mine, peers, iterations, host))
    return "host", exceeding + ([] if sizes is None else describe_same_sizes(sizes))


def _has_more_work(table: OwnTime, candidate: Candidate, work: OperatorWork, host: float, *, on_gpu: bool) -> bool:
    """Tells if the rank has more to do in all iterations, worth enough of its excess on the host, ns per iteration.

    Beside a device operators take what launching and waiting takes, however much work they are given.
    """
    if on_gpu or candidate.pattern != LatePattern.PERSISTENT or not work.is_more:
        return False
    # Both in proportion to what is usual: other processes on the cores make all of it longer.
    usual = max(float(np.median(table.own_ns[table.peers(candidate.rank)])), 1.0)
    return work.more_ns >= _MOST_OF_WORK * host * work.usual_ns / usual


def _operators(table: OwnTime, candidate: Candidate) -> tuple[Sequence[OperatorUse], list[Sequence[OperatorUse]]]:
    if not table.operators:
        return [], []
    return table.operators[candidate.rank], [table.operators[peer] for peer in table.peers(candidate.rank).tolist()]


def _by_host(
    table: OwnTime, candidate: Candidate, excess: dict[str, float], usual_of: Callable[[Floats], Floats]
) -> dict[str, float]:
    """The excess of the device's gaps, by what the host itself took longer for.

    What the gaps show besides was there before, and hidden as long as the host was ahead.
    """
    rank, late = candidate.rank, candidate.iterations
    longer = {}
    for name, values in table.host_parts_ns.items():
        own = values.astype(np.float64)
        longer[name] = max(float((own[rank] - usual_of(own))[late].mean()), 0.0)
    gaps = sum(max(excess[name], 0.0) for name in longer)
    total = sum(longer.values())
    return {name: gaps * value / total for name, value in longer.items()} if total > 0 else {}
