"""Iterations that are long on all ranks alike: what the loop does now and then beside training.

Guarantees: pure; an iteration counts where it stands apart on every rank; on ranks with GPUs only the idle time of
their devices counts, since a host that runs ahead of its device waits in one iteration for the work of many.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, median_low
from typing import Final

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import LongIterations, StageName, Stages

from fleetprof_analyzer.findings.finding import FindingRule, MeasuredFinding, RanksOfKind
from fleetprof_analyzer.job.sentence_guard import SentenceGuard
from fleetprof_analyzer.words.code import name_code_place
from fleetprof_analyzer.words.ranks import name_numbers, say_ordinal

_KIND: Final = "long_iterations"
_MOST_OF_IT: Final = 0.5
_UNEXPLAINED: Final = 1.5  # times what a named rank costs
LONG_ITERATIONS: Final = SentenceGuard(
    place="finding long_iterations", figure="what they take longer", whole="the median rank's iterations",
    least_permille=100, words="N of M iterations take K times as long as the others", part="iterations",
)  # fmt: skip
# Where ranks wait for each other; a wait that lies in several stages has none.
_WAITING: Final = ("backward", "optimizer", None)


@dataclass(frozen=True, slots=True)
class SomeLongIterations:
    """Some iterations are long on all ranks alike.

    `times`: the others' length; `every`: the distance of their numbers, 0 where it is not always the same.
    """

    numbers: Sequence[int]
    of: int
    times: float
    every: int
    stage: StageName | None
    place: PlaceInCode | None = None

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        rhythm = f" (every {say_ordinal(self.every)})" if self.every else ""
        verb = "take" if len(self.numbers) > 1 else "takes"
        stage = "" if self.stage is None else f", most of it {_say_stage(self.stage)}"
        longer = f"{self.times:.0f} times as long as the others"
        where = name_numbers("iteration", self.numbers)
        what, it = f"look at what the loop does in {where} only", "that"
        if self.place is not None:
            what, it = f"look at {name_code_place(self.place)}", "it"
        return (
            f"{len(self.numbers)} of {self.of} iterations{rhythm} {verb} {longer}{stage}",
            f"{what} (evaluation, a checkpoint, logging?): do {it} less often, or on another thread or in another "
            "process",
        )


def _say_stage(stage: StageName) -> str:
    match stage:
        case "host":
            return "on the host between stages"
        case "other":
            return "in operators outside of all stages"
        case _:
            return f"in the stage {stage.replace('_', ' ')}"


def _find(view: RanksOfKind) -> MeasuredFinding | None:
    """None where a rank is named whose pauses explain most of it: they make iterations of all ranks long."""
    found = _measure(view.ranks)
    explained = 0 if view.held_up is None else view.held_up.gain_permille
    return None if found is None or found.gain_permille <= _UNEXPLAINED * explained else found


def _measure(ranks: Sequence[Rank]) -> MeasuredFinding | None:
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
        kind=_KIND,
        facts=SomeLongIterations(
            numbers=sorted(numbers),
            of=len(rank.iterations),
            times=median(lengths) / max(1, found.usual_ns),
            every=_find_distance(sorted(numbers), [one.index for one in rank.iterations]),
            stage=found.stage,
            place=found.place,
        ),
        guard=LONG_ITERATIONS,
        gain_permille=permille,
        measure="ranks.stages.long_iterations",
        value_ns=sum(longer),
        place=found.place,
    )


def leave_out_told(found: Sequence[MeasuredFinding], ranks: Sequence[Rank]) -> list[MeasuredFinding]:
    """The findings without those whose time lies in the long iterations, where there are some: it makes these long."""
    long = next((one for one in found if isinstance(one.facts, SomeLongIterations)), None)
    if long is None or not isinstance(long.facts, SomeLongIterations):
        return list(found)
    numbers = set(long.facts.numbers)
    return [
        one
        for one in found
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
    """The time that these iterations take longer than the others; of devices, for how much longer they are idle."""
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


RULE: Final = FindingRule(_KIND, (LONG_ITERATIONS,), _find)
