"""Iterations that are long on all ranks alike: what the loop does now and then beside training.

Guarantees: pure; an iteration counts where it stands apart on every rank; on ranks with GPUs only the idle time of
their devices counts, since a host that runs ahead of its device waits in one iteration for the work of many.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from statistics import median, median_low
from typing import Final

from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import LongIterations, StageName, Stages

from fleetprof_analyzer.job.findings.found import MeasuredFinding, SomeLongIterations
from fleetprof_analyzer.job.findings.guards import LONG_ITERATIONS

_MOST_OF_IT: Final = 0.5
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


def leave_out_told(
    others: Sequence[MeasuredFinding], long: MeasuredFinding, ranks: Sequence[Rank]
) -> list[MeasuredFinding]:
    """The other findings without those whose time lies in the long iterations: it is what makes these long."""
    assert isinstance(long.facts, SomeLongIterations)
    numbers = set(long.facts.numbers)
    return [
        one
        for one in others
        if one.kind not in _TIMES
        or long.gain_permille < _MOST_OF_IT * one.gain_permille
        or _share_in(numbers, ranks, _TIMES[one.kind]) < _MOST_OF_IT
    ]


def _exposed(rank: Rank) -> dict[int, int]:
    return {one.index: one.time_ns.exposed_communication for one in rank.iterations if one.time_ns is not None}


def _of_stage(name: StageName) -> Callable[[Rank], dict[int, int]]:
    def read(rank: Rank) -> dict[int, int]:
        stages = [] if rank.stages is None else rank.stages.stages
        times = next((one.iterations_ns for one in stages if one.stage == name), [])
        return {one.index: time for one, time in zip(rank.iterations, times, strict=False)}

    return read


_TIMES: Final[Mapping[str, Callable[[Rank], dict[int, int]]]] = {
    "exposed_communication": _exposed,
    "python": _of_stage("host"),
    "data_loading": _of_stage("data_loading"),
}
"""Of findings that may be about the same pauses: their time by iteration."""


def _share_in(numbers: set[int], ranks: Sequence[Rank], times: Callable[[Rank], dict[int, int]]) -> float:
    each = [times(rank) for rank in ranks]
    whole = sum(sum(one.values()) for one in each)
    inside = sum(time for one in each for number, time in one.items() if number in numbers)
    return inside / whole if whole else 0.0


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
