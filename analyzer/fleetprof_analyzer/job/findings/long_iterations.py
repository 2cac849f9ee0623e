"""Iterations that are long on all ranks alike: what the loop does now and then beside training.

Guarantees: pure; an iteration counts where it stands apart on every rank; on ranks with GPUs only the idle time of
their devices counts, since a host that runs ahead of its device waits in one iteration for the work of many.
"""

import itertools
from collections.abc import Sequence
from statistics import median, median_low
from typing import Final

from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import LongIterations, Stages

from fleetprof_analyzer.job.findings.found import MeasuredFinding, SomeLongIterations
from fleetprof_analyzer.job.findings.guards import LONG_ITERATIONS

# Where ranks wait for each other; a wait that lies in several stages has none.
_WAITING: Final = ("backward", "optimizer", None)


def find_long_iterations(ranks: Sequence[Rank]) -> MeasuredFinding | None:
    """Of all ranks of one kind. Rule: docs/measures.md#long-iterations."""
    known = [(rank, found) for rank in ranks if (found := (rank.stages or Stages()).long_iterations) is not None]
    if not ranks or len(known) < len(ranks):
        return None
    numbers = set.intersection(*(_numbers(rank, found) for rank, found in known))
    if not numbers:
        return None
    longer = [_longer_ns(rank, found, numbers) for rank, found in known]
    spans = [sum(one.duration_ns for one in rank.iterations) for rank, _ in known]
    permille = median_low([1000 * time // max(1, span) for time, span in zip(longer, spans, strict=True)])
    if not LONG_ITERATIONS.allows(permille, 1000):
        return None
    # Where one rank pauses the others are long too, in the collective that they wait in.
    rank, found = max(zip(longer, known, strict=True), key=lambda one: (one[1][1].stage not in _WAITING, one[0]))[1]
    lengths = [one.duration_ns for one in rank.iterations if one.index in numbers]
    return MeasuredFinding(
        kind="long_iterations",
        facts=SomeLongIterations(
            numbers=sorted(numbers),
            of=len(rank.iterations),
            times=median(lengths) / max(1, found.usual_ns),
            every=_find_distance(sorted(numbers), [one.index for one in rank.iterations]),
            stage=found.stage,
        ),
        guard=LONG_ITERATIONS,
        gain_permille=permille,
        measure="ranks.stages.long_iterations",
        value_ns=sum(longer),
        place=found.place,
    )


def _numbers(rank: Rank, found: LongIterations) -> set[int]:
    """A stored summary may name positions that its rank does not have."""
    return {rank.iterations[at].index for at in found.positions if 0 <= at < len(rank.iterations)}


def _longer_ns(rank: Rank, found: LongIterations, numbers: set[int]) -> int:
    """What these iterations take longer than the others; of devices, for how much longer they are idle."""
    chosen = [one for one in rank.iterations if one.index in numbers]
    if rank.kind == "cpu":
        return sum(one.duration_ns - found.usual_ns for one in chosen)
    idle = {one.index: one.time_ns.idle for one in rank.iterations if one.time_ns is not None}
    usual = median([idle[index] for index in idle if index not in numbers] or [0])
    devices = max(1, len(rank.devices))
    return round(sum(max(0, idle.get(one.index, 0) - usual) for one in chosen) / devices)


def _find_distance(numbers: Sequence[int], all_numbers: Sequence[int]) -> int:
    """n where every n-th iteration is one of these, as far as the window shows; else 0."""
    distances = {later - earlier for earlier, later in itertools.pairwise(numbers)}
    if len(distances) != 1:
        return 0
    (distance,) = distances
    outside = numbers[0] - distance < all_numbers[0] and numbers[-1] + distance > all_numbers[-1]
    return distance if outside else 0
