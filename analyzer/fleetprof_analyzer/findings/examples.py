"""The place in time at which a finding is best seen: a gap of its cause, else the iteration that has most of it.

Guarantees: pure; none where no iteration tells.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from fleetprof_api.report.findings import Example, Finding
from fleetprof_api.report.report import Iteration, Rank

_Amount = Callable[[Iteration], int]


def _length(iteration: Iteration) -> int:
    return iteration.duration_ns


_AMOUNTS: Final[Mapping[str, _Amount]] = {
    "communication": lambda one: 0 if one.time_ns is None else one.time_ns.exposed_communication,
    "copies": lambda one: 0 if one.time_ns is None else one.time_ns.exposed_memory,
    "idle": lambda one: 0 if one.time_ns is None else one.time_ns.idle,
    "host": lambda one: 0 if one.time_ns is None else one.time_ns.idle,
}
"""By the part of the time that a finding is about: how much of it an iteration has. All others: the length."""


def give_examples(findings: Sequence[Finding], ranks: Sequence[Rank]) -> list[Finding]:
    """The findings, each with its example on the ranks that it names, else on any."""
    return [msgspec.structs.replace(one, example=_find_example(one, ranks)) for one in findings]


def _find_example(finding: Finding, ranks: Sequence[Rank]) -> Example | None:
    named = [rank for rank in ranks if rank.rank in finding.ranks] or ranks
    gaps = [
        (place.time_ns, Example(rank=rank.rank, start_ns=place.start_ns, duration_ns=place.duration_ns))
        for rank in named
        for place in rank.idle_places
        if place.kind == finding.kind and rank.rank is not None and place.start_ns is not None
    ]
    if gaps:
        return max(gaps, key=lambda gap: gap[0])[1]
    amount = _AMOUNTS.get(finding.part, _length)
    iterations = [
        (amount(one), Example(rank=rank.rank, start_ns=one.start_ns, duration_ns=one.duration_ns))
        for rank in named
        if rank.rank is not None
        for one in rank.iterations
        if one.complete is not False
    ]
    most, example = max(iterations, key=lambda one: one[0], default=(0, None))
    return example if most > 0 else None
