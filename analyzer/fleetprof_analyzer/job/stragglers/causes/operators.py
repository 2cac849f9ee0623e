"""Evidence of a rank's operators beside its peers': more work, a core that others use, operators that peers do not run.

The median of an operator's name stands for its work: what takes the core away lengthens a few runs of it, more work all
of them. Operators of the model's parameters (the optimizer's, gradient buckets') have the same to do whatever the
batch, so a slow core shows in them too, and a larger batch does not. Where traces say what operators were given, the
sizes of their tensors decide instead of these times. Guarantees: pure; at most `MOST_SHOWN` names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from statistics import median
from typing import Final

from fleetprof_api.report.stragglers import Evidence

from fleetprof_analyzer.job.stragglers.causes.tensor_sizes import (
    MOST_SHOWN,
    Sizes,
    compare_sizes,
    describe_sizes,
)
from fleetprof_analyzer.job.stragglers.thresholds import LEAST_ON_HOST, MUCH_MORE, SAME_COUNT
from fleetprof_analyzer.rank.communication.operator_use import OperatorUse

_MOST_OF_PARAMETERS: Final = 0.35  # of that, in operators of the parameters
_LEAST_SHARED: Final = 4  # names of operators


@dataclass(frozen=True, slots=True)
class OperatorWork:
    """A rank's work over that of its peers, everything at the operators' medians.

    `batch` and `parameters` are ratios of operators that all run equally often, nan where too few are shared to tell;
    `more_ns` is what it takes longer for the batch, beside `usual_ns`, what its peers take for all of their operators;
    per iteration.
    """

    batch: float
    parameters: float
    more_ns: float
    usual_ns: float
    sizes: Sizes | None = None  # where traces say what operators were given: then `more_ns` is what sizes explain

    @property
    def is_more(self) -> bool:
        """Tells whether it was given more to do of the same, and is not just slower."""
        if self.sizes is not None:
            return bool(self.sizes.larger)
        return self.batch - 1 >= MUCH_MORE and self.parameters - 1 <= _MOST_OF_PARAMETERS * (self.batch - 1)


def compare_work(
    mine: Sequence[OperatorUse], peers: Sequence[Sequence[OperatorUse]], iterations: int
) -> OperatorWork | None:
    """None where the rank or its peers do not say their operators."""
    tables = [_by_name(one) for one in peers if one]
    if not mine or not tables:
        return None
    ratios: dict[bool, list[tuple[float, float]]] = {True: [], False: []}  # with the usual time
    more_ns = 0.0
    for use in mine:
        others = [table.get((use.name, use.of_parameters), _none_of(use)) for table in tables]
        usual_ns = median(other.median_ns for other in others)
        if all(abs(other.count - use.count) <= SAME_COUNT * use.count for other in others):
            ratios[use.of_parameters].append((use.median_ns / max(usual_ns, 1), use.count * usual_ns))
            more_ns += 0 if use.of_parameters else use.count * (use.median_ns - usual_ns)
    is_explained = len(ratios[False]) >= _LEAST_SHARED and ratios[True]
    sizes = compare_sizes(mine, peers)
    return OperatorWork(
        batch=_weighted_median(ratios[False]) if is_explained else nan,
        parameters=_weighted_median(ratios[True]) if is_explained else nan,
        more_ns=(more_ns if sizes is None else sizes.more_ns) / max(iterations, 1),
        usual_ns=median(sum(one.count * one.median_ns for one in peer) for peer in peers if peer) / max(iterations, 1),
        sizes=sizes,
    )


def _weighted_median(pairs: list[tuple[float, float]]) -> float:
    """The weighted median of (value, weight), at least one."""
    ordered = sorted(pairs)
    half, reached = sum(weight for _, weight in ordered) / 2, 0.0
    for value, weight in ordered:
        reached += weight
        if reached >= half:
            return value
    return ordered[-1][0]


def _none_of(use: OperatorUse) -> OperatorUse:
    return OperatorUse(use.name, use.of_parameters, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Exceeding:
    """An operator that takes longer than on the peers; per iteration, `usual_*` is 0 where they have none."""

    name: str
    time_ns: float
    usual_ns: float
    calls: float
    usual_calls: float

    @property
    def more_ns(self) -> float:
        """The time that it takes longer."""
        return self.time_ns - self.usual_ns


def find_exceeding(
    mine: Sequence[OperatorUse], peers: Sequence[Sequence[OperatorUse]], iterations: int, excess_ns: float
) -> list[Exceeding]:
    """The operators, whatever their place in the loop, with a tenth of the excess or more; the most first."""
    own, tables = _sums(mine), [_sums(one) for one in peers if one]
    found = []
    for name, (time_ns, calls) in own.items() if tables else ():
        others = [table.get(name, (0, 0)) for table in tables]
        usual_ns, usual_calls = (median(column) for column in zip(*others, strict=True))
        found.append(
            Exceeding(name, *(value / max(iterations, 1) for value in (time_ns, usual_ns, calls, usual_calls)))
        )
    found = [one for one in found if one.more_ns >= max(LEAST_ON_HOST * excess_ns, 1)]
    return sorted(found, key=lambda one: -one.more_ns)[:MOST_SHOWN]


def describe_exceeding(found: Sequence[Exceeding]) -> list[Evidence]:
    """Calls where they differ, else the time."""
    evidence = []
    for one in found:
        if abs(one.calls - one.usual_calls) > SAME_COUNT * max(one.calls, 1):
            shown = (round(one.calls, 1), round(one.usual_calls, 1), "calls per iteration")
        else:
            shown = (round(one.time_ns), round(one.usual_ns), "ns per iteration")
        value, usual, unit = shown
        evidence.append(Evidence(measure=f"operator {one.name}", value=value, usual=usual, unit=unit))
    return evidence


def describe_work(work: OperatorWork) -> list[Evidence]:
    """The larger tensors, or else the two ratios that tell more work from a slow core."""
    if work.sizes is not None:
        return describe_sizes(work.sizes)
    return [
        Evidence(
            measure="the same operators of the batch, at their medians", value=round(100 * work.batch, 1), usual=100,
            unit="%",
        ),
        Evidence(
            measure="operators of the parameters, at their medians", value=round(100 * work.parameters, 1), usual=100,
            unit="%",
        ),
    ]  # fmt: skip


def _by_name(uses: Sequence[OperatorUse]) -> dict[tuple[str, bool], OperatorUse]:
    return {(use.name, use.of_parameters): use for use in uses}


def _sums(uses: Sequence[OperatorUse]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for use in uses:
        time_ns, calls = found.get(use.name, (0, 0))
        found[use.name] = (time_ns + use.time_ns, calls + use.count)
    return found
