"""Puts the chosen ranks onto one clock, by the collectives that all members leave together, and says how well.

Guarantees: pure; a rank whose clock cannot be tied to the others' keeps its own, with the reason.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from fleetprof_analyzer.communication.operations import RankOperations, UnreadableOperations, decode
from fleetprof_analyzer.stragglers.alignment import align_clocks, ends_together
from fleetprof_analyzer.stragglers.matching import Matched, match


@dataclass(frozen=True, slots=True)
class Clocks:
    """`offset_ns` by source is to be added to a rank's own times; `apart` holds the reason of each that has none."""

    offset_ns: dict[str, int] = field(default_factory=dict)
    apart: dict[str, str] = field(default_factory=dict)
    residual_median_ns: int = 0
    residual_most_ns: int = 0
    matched_by: str = ""
    matched: Matched | None = None


def tie_clocks(encoded: Sequence[tuple[str, bytes]], sources: Sequence[str]) -> Clocks:
    """`encoded` are (source, operations) of all ranks that there are; `sources` the chosen ones."""
    operations, unknown = _decode(encoded, sources)
    if len(sources) < 2:
        return Clocks(offset_ns=dict.fromkeys(sources, 0))
    if len(operations) < 2:
        words = "the collectives of no other rank are known"
        return Clocks(apart={source: unknown.get(source, words) for source in sources})
    matched = match(operations)
    reason = matched.reason
    if not reason and matched.guessed and not ends_together(matched):
        reason = "the traces do not say which process group an operation belongs to, and the ranks are in several"
    if reason:
        return Clocks(apart={source: unknown.get(source, reason) for source in sources})
    found = align_clocks(matched)
    offset = {
        one.source: int(offset)
        for one, offset, aligned in zip(matched.ranks, found.offset_ns, found.aligned, strict=True)
        if aligned and one.source in sources
    }
    if len(offset) < 2:
        offset = {}
    words = "it shares no collective that all leave together with the other ranks"
    return Clocks(
        offset_ns=offset,
        apart={source: unknown.get(source, words) for source in sources if source not in offset},
        residual_median_ns=found.residual_median_ns,
        residual_most_ns=found.residual_most_ns,
        matched_by=matched.method,
        matched=matched,
    )


def _decode(
    encoded: Sequence[tuple[str, bytes]], sources: Sequence[str]
) -> tuple[list[RankOperations], dict[str, str]]:
    """(operations of distinct ranks, why the others have none)."""
    read: list[RankOperations] = []
    unknown = dict.fromkeys(sources, "its trace holds no collective")
    for source, data in encoded:
        try:
            if data:
                read.append(decode(data))
                unknown.pop(source, None)
        except UnreadableOperations as error:
            unknown[source] = str(error)
    count = Counter(one.rank for one in read)
    for one in read:
        if one.rank is None:
            unknown[one.source] = "its trace does not say which rank it is"
        elif count[one.rank] > 1:
            unknown[one.source] = f"{count[one.rank]} traces claim rank {one.rank}"
        elif not one.iterations:
            unknown[one.source] = "its trace holds no whole iteration"
    return [one for one in read if one.source not in unknown], unknown
