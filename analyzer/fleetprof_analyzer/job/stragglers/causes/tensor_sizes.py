"""Tells whether a rank's operators were given larger tensors than those of its peers, where traces say their inputs.

Sizes are exact where durations are noise: they say who has more to do, and that nobody has. Only operators that all run
equally often count, and an operator is as much larger as the input that grew most, so that weights hide no batch.
Guarantees: pure; at most `MOST_SHOWN` operators.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from fleetprof_api.report.stragglers import Evidence

from fleetprof_analyzer.job.stragglers.thresholds import HALF, SAME_COUNT, SAME_SIZE
from fleetprof_analyzer.rank.communication.operator_use import OperatorUse

MOST_SHOWN: Final = 3
_MOST_SHAPE_CHARACTERS: Final = 80


@dataclass(frozen=True, slots=True)
class Larger:
    """An operator with larger tensors; elements of the input that grew most, per call."""

    name: str
    elements: int
    usual_elements: float
    inputs: str
    more_ns: float  # over all calls: what its size explains of how much longer it takes


@dataclass(frozen=True, slots=True)
class Sizes:
    """A rank's tensors beside those of its peers.

    `share` is how many more elements all of its operators have, as a share of the peers'.
    """

    larger: list[Larger]  # the most time first
    more_ns: float
    share: float


def compare_sizes(mine: Sequence[OperatorUse], peers: Sequence[Sequence[OperatorUse]]) -> Sizes | None:
    """None where the inputs of operators with half of the peers' time are not known on all of them."""
    tables = [{(use.name, use.of_parameters): use for use in peer} for peer in peers if peer]
    if not tables:
        return None
    larger = []
    told_ns = usual_ns = elements = usual_elements = 0.0
    for use, others in _of_the_batch(mine, tables):
        took = use.count * median(other.median_ns for other in others)
        usual_ns += took
        if not all(len(other.elements) == len(use.elements) > 0 for other in others):
            continue
        told_ns += took
        usual = [median(column) for column in zip(*(other.elements for other in others), strict=True)]
        grown = max(range(len(usual)), key=lambda place: use.elements[place] / max(usual[place], 1))
        ratio = use.elements[grown] / max(usual[grown], 1)
        elements += use.count * use.elements[grown]
        usual_elements += use.count * usual[grown]
        if ratio > 1 + SAME_SIZE:
            # No operator's work grows faster than with the square of an input.
            more_ns = min(use.count * use.median_ns - took, took * (ratio**2 - 1))
            larger.append(Larger(use.name, use.elements[grown], usual[grown], use.inputs, max(more_ns, 0.0)))
    if told_ns <= 0 or told_ns < HALF * usual_ns:
        return None
    larger.sort(key=lambda one: (-one.more_ns, -one.elements / max(one.usual_elements, 1)))
    share = elements / max(usual_elements, 1) - 1
    return Sizes(larger, sum(one.more_ns for one in larger), share)


def describe_sizes(sizes: Sizes) -> list[Evidence]:
    """The operators with larger tensors, both sizes, and the dimensions of one call."""
    return [
        Evidence(
            measure=f"operator {one.name} on {one.inputs[:_MOST_SHAPE_CHARACTERS]}", value=one.elements,
            usual=round(one.usual_elements), unit="elements of one input",
        )
        for one in sizes.larger[:MOST_SHOWN]
    ]  # fmt: skip


def describe_same_sizes(sizes: Sizes) -> list[Evidence]:
    """That it was given no more than its peers; empty where it was."""
    if sizes.larger:
        return []
    return [
        Evidence(
            measure="size of the tensors that its operators were given", value=round(100 * (1 + sizes.share), 1),
            usual=100, unit="%",
        )
    ]  # fmt: skip


def _of_the_batch(
    mine: Sequence[OperatorUse], tables: Sequence[dict[tuple[str, bool], OperatorUse]]
) -> Iterator[tuple[OperatorUse, list[OperatorUse]]]:
    """Operators that all run equally often, but those of the parameters; each with those of the same name."""
    for use in mine:
        others = [table[use.name, use.of_parameters] for table in tables if (use.name, use.of_parameters) in table]
        same = all(abs(other.count - use.count) <= SAME_COUNT * use.count for other in others)
        if not use.of_parameters and same and len(others) == len(tables):
            yield use, others
