"""The two runs that are compared: the same ranks of both, and whether they can be compared at all.

Guarantees: pure; says every reason against a comparison, and whatever else differs and may explain a change; ranks that
one side lacks are left out on both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetprof_api.report.report import Rank, Report

from fleetprof_analyzer.comparison.significance import FEWEST

_FEWEST_SHARED_PERMILLE: Final = 900
_SAMPLED_PERMILLE: Final = 500
_MOST_NAMED: Final = 8
_WARM_UP: Final = 10


@dataclass(frozen=True, slots=True)
class Runs:
    """Ranks of equal place in `before` and `after` are the same rank."""

    before: list[Rank]
    after: list[Rank]
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def choose_runs(before: Report, after: Report) -> Runs:
    """The ranks to compare, of one kind: those with devices where there are any."""
    first, second = _of_main_kind(before), _of_main_kind(after)
    for name, ranks in (("before", first), ("after", second)):
        if not ranks:
            return Runs([], [], [f"no rank of the report {name} lists an iteration: nothing marks them in its traces"])
    if first[0].kind != second[0].kind:
        return Runs([], [], [f"before it ran on {_WHERE[first[0].kind]}, after on {_WHERE[second[0].kind]}"])
    shared = _pair(first, second)
    if shared is None:
        return Runs([], [], ["traces do not say which rank they are, and their number differs"])
    kept_before, kept_after = shared
    runs = Runs(kept_before, kept_after)
    runs.notes.extend(_left_out(first, second, kept_before))
    if 1000 * len(kept_before) < _FEWEST_SHARED_PERMILLE * max(len(first), len(second)):
        runs.reasons.append(
            f"only {len(kept_before)} ranks are in both ({len(first)} before, {len(second)} after): "
            "capture the same ranks of a job of the same size"
        )
    if kept_before:
        runs.reasons.extend(_contradictions(before, after, runs))
        runs.notes.extend(_circumstances(before, after, runs))
    return runs


_WHERE: Final = {"gpu": "GPUs", "cpu": "CPUs only"}


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


def _left_out(first: Sequence[Rank], second: Sequence[Rank], kept: Sequence[Rank]) -> list[str]:
    numbers = {rank.rank for rank in kept}
    return [
        f"left out, since the report {other} lacks them: ranks {_some(missing)}"
        for ranks, other in ((first, "after"), (second, "before"))
        if len(ranks) > len(kept) and (missing := [rank.rank for rank in ranks if rank.rank not in numbers])
    ]


def _some(numbers: Sequence[object]) -> str:
    more = len(numbers) - _MOST_NAMED
    return ", ".join(map(str, numbers[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")


# What must be the same on both sides, and what it means where it is not. None and "" are not known, and no reason.
_SAME: Final[Sequence[tuple[str, Callable[[Rank], object]]]] = (
    ("the size of the job", lambda rank: rank.world_size),
    ("the device", lambda rank: rank.device_name or None),
    ("the number of devices per rank", lambda rank: len(rank.devices)),
    ("what bounds an iteration", lambda rank: rank.iterations_from),
    ("optimizer steps per iteration", lambda rank: rank.steps_per_iteration),
)


def _contradictions(before: Report, after: Report, runs: Runs) -> list[str]:
    said = []
    for words, read in _SAME:
        values = [
            sorted({str(v) for rank in ranks if (v := read(rank)) is not None}) for ranks in (runs.before, runs.after)
        ]
        if values[0] and values[1] and values[0] != values[1]:
            said.append(f"{words} differs: {_some(values[0])} before, {_some(values[1])} after")
    collected = [_collected(report) for report in (before, after)]
    if None not in collected and collected[0] != collected[1]:
        shown = [" and ".join(what) or "nothing more" for what in collected if what is not None]
        said.append(
            "the captures recorded different things, which costs different time: "
            f"{shown[0]} before, {shown[1]} after; capture with the same --collect"
        )
    for name, ranks in (("before", runs.before), ("after", runs.after)):
        if any(rank.recorded_permille is not None and rank.recorded_permille < _SAMPLED_PERMILLE for rank in ranks):
            said.append(f"the traces {name} hold a sample of what ran")
    return said


def _values(ranks: Sequence[Rank], read: Callable[[Rank], object]) -> list[str]:
    """What is known of these ranks, each value once."""
    return sorted({str(value) for rank in ranks if (value := read(rank)) is not None})


def _collected(report: Report) -> list[str] | None:
    collected = None if report.request is None else report.request.collect
    return None if collected is None else sorted(collected)


def _circumstances(before: Report, after: Report, runs: Runs) -> list[str]:
    notes = []
    if before.request is not None and after.request is not None:
        if before.request.uid == after.request.uid:
            notes.append("both are the same capture")
        elif before.request.target != after.request.target:
            notes.append(f"the targets differ: {before.request.target} before, {after.request.target} after")
    torch = [
        sorted({rank.torch_version for rank in ranks if rank.torch_version}) for ranks in (runs.before, runs.after)
    ]
    if torch[0] and torch[1] and torch[0] != torch[1]:
        notes.append(f"PyTorch {_some(torch[0])} before, {_some(torch[1])} after")
    for name, ranks in (("before", runs.before), ("after", runs.after)):
        first = min(rank.iterations[0].index for rank in ranks)
        if ranks[0].index_from == "agent" and first <= _WARM_UP:
            notes.append(f"the capture {name} begins at iteration {first}: the job may still have been warming up")
        cut = sum(rank.truncated for rank in ranks)
        if cut:
            notes.append(f"{cut} trace{'s' * (cut > 1)} {name} end in the middle")
        fewest = min(len(rank.iterations) for rank in ranks)
        if fewest < FEWEST:
            notes.append(f"{fewest} iterations {name}, at least {FEWEST} are needed for a verdict: capture more")
    return notes
