"""The two runs that are compared: the same ranks of both, and whether they can be compared at all.

Guarantees: pure; finds every reason against a comparison, and whatever else differs and may explain a change; ranks
that one side lacks are left out on both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetprof_api.report.report import Rank, Report

from fleetprof_analyzer.comparison.obstacles import (
    Circumstance,
    Differs,
    FewIterations,
    FewShared,
    LeftOut,
    NoIterations,
    Obstacle,
    OtherCollection,
    OtherKind,
    OtherTarget,
    OtherTorch,
    Property,
    RanksNotKnown,
    SameCapture,
    Sampled,
    Side,
    Truncated,
    WarmingUp,
)
from fleetprof_analyzer.comparison.significance import FEWEST

_FEWEST_SHARED_PERMILLE: Final = 900
_SAMPLED_PERMILLE: Final = 500
_WARM_UP: Final = 10
_SIDES: Final[tuple[Side, Side]] = ("before", "after")


@dataclass(frozen=True, slots=True)
class Runs:
    """Ranks of equal place in `before` and `after` are the same rank."""

    before: list[Rank]
    after: list[Rank]
    obstacles: list[Obstacle] = field(default_factory=list)
    circumstances: list[Circumstance] = field(default_factory=list)


def choose_runs(before: Report, after: Report) -> Runs:
    """The ranks to compare, of one kind: those with devices where there are any."""
    first, second = _of_main_kind(before), _of_main_kind(after)
    for side, ranks in zip(_SIDES, (first, second), strict=True):
        if not ranks:
            return Runs([], [], [NoIterations(side)])
    if first[0].kind != second[0].kind:
        return Runs([], [], [OtherKind(first[0].kind, second[0].kind)])
    shared = _pair(first, second)
    if shared is None:
        return Runs([], [], [RanksNotKnown()])
    kept_before, kept_after = shared
    runs = Runs(kept_before, kept_after)
    runs.circumstances.extend(_left_out(first, second, kept_before))
    if 1000 * len(kept_before) < _FEWEST_SHARED_PERMILLE * max(len(first), len(second)):
        runs.obstacles.append(FewShared(len(kept_before), len(first), len(second)))
    if kept_before:
        runs.obstacles.extend(_contradictions(before, after, runs))
        runs.circumstances.extend(_circumstances(before, after, runs))
    return runs


def _of_main_kind(report: Report) -> list[Rank]:
    for kind in ("gpu", "cpu"):
        chosen = [rank for rank in report.ranks if rank.kind == kind and rank.iterations]
        if chosen:
            return chosen
    return []


def _pair(first: Sequence[Rank], second: Sequence[Rank]) -> tuple[list[Rank], list[Rank]] | None:
    by_number = [{rank.rank: rank for rank in ranks if rank.rank is not None} for ranks in (first, second)]
    if len(by_number[0]) == len(first) and len(by_number[1]) == len(second):
        shared = sorted(by_number[0].keys() & by_number[1].keys())
        return [by_number[0][rank] for rank in shared], [by_number[1][rank] for rank in shared]
    return (list(first), list(second)) if len(first) == len(second) else None


def _left_out(first: Sequence[Rank], second: Sequence[Rank], kept: Sequence[Rank]) -> list[LeftOut]:
    numbers = {rank.rank for rank in kept}
    return [
        LeftOut(other, missing)
        for ranks, other in zip((first, second), reversed(_SIDES), strict=True)
        if len(ranks) > len(kept) and (missing := [rank.rank for rank in ranks if rank.rank not in numbers])
    ]


# What must be the same on both sides. None and "" are not known, and no reason.
_SAME: Final[Sequence[tuple[Property, Callable[[Rank], object]]]] = (
    (Property.WORLD_SIZE, lambda rank: rank.world_size),
    (Property.DEVICE, lambda rank: rank.device_name or None),
    (Property.DEVICES_PER_RANK, lambda rank: len(rank.devices)),
    (Property.ITERATION_MARKS, lambda rank: rank.iterations_from),
    (Property.STEPS_PER_ITERATION, lambda rank: rank.steps_per_iteration),
)


def _contradictions(before: Report, after: Report, runs: Runs) -> list[Obstacle]:
    found: list[Obstacle] = []
    for what, read in _SAME:
        values = [_values(ranks, read) for ranks in (runs.before, runs.after)]
        if values[0] and values[1] and values[0] != values[1]:
            found.append(Differs(what, *values))
    collected = [_collected(report) for report in (before, after)]
    if collected[0] is not None and collected[1] is not None and collected[0] != collected[1]:
        found.append(OtherCollection(collected[0], collected[1]))
    for side, ranks in zip(_SIDES, (runs.before, runs.after), strict=True):
        if any(rank.recorded_permille is not None and rank.recorded_permille < _SAMPLED_PERMILLE for rank in ranks):
            found.append(Sampled(side))
    return found


def _values(ranks: Sequence[Rank], read: Callable[[Rank], object]) -> list[str]:
    """The known values of these ranks, each once."""
    return sorted({str(value) for rank in ranks if (value := read(rank)) is not None})


def _collected(report: Report) -> list[str] | None:
    collected = None if report.request is None else report.request.collect
    return None if collected is None else sorted(collected)


def _circumstances(before: Report, after: Report, runs: Runs) -> list[Circumstance]:
    found: list[Circumstance] = []
    if before.request is not None and after.request is not None:
        if before.request.uid == after.request.uid:
            found.append(SameCapture())
        elif before.request.target != after.request.target:
            found.append(OtherTarget(before.request.target, after.request.target))
    torch = [_values(ranks, lambda rank: rank.torch_version or None) for ranks in (runs.before, runs.after)]
    if torch[0] and torch[1] and torch[0] != torch[1]:
        found.append(OtherTorch(*torch))
    for side, ranks in zip(_SIDES, (runs.before, runs.after), strict=True):
        first = min(rank.iterations[0].index for rank in ranks)
        if ranks[0].index_from == "agent" and first <= _WARM_UP:
            found.append(WarmingUp(side, first))
        cut = sum(rank.truncated for rank in ranks)
        if cut:
            found.append(Truncated(side, cut))
        fewest = min(len(rank.iterations) for rank in ranks)
        if fewest < FEWEST:
            found.append(FewIterations(side, fewest, FEWEST))
    return found
