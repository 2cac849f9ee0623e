"""Ranks that are at the same place: their main threads' stacks as a tree, the outermost frame first.

Guarantees: pure; each rank is in one group; groups are in the order of their size, then of their first rank.
"""

from collections import defaultdict
from collections.abc import Sequence

from fleetprof_api.stalls import StackGroup

from fleetprof_analyzer.stalls.ranks import StalledRank


def group_ranks(ranks: Sequence[StalledRank]) -> list[StackGroup]:
    """The groups of equal stacks."""
    found: dict[tuple[tuple[str, str, int], ...], list[StalledRank]] = defaultdict(list)
    for rank in ranks:
        found[tuple((place.file, place.function, place.line) for place in rank.frames)].append(rank)
    groups = [
        StackGroup(tuple(r.number for r in members), tuple(members[0].frames), members[0].own_line)
        for members in found.values()
    ]
    return sorted(groups, key=lambda group: (-len(group.ranks), group.ranks))
