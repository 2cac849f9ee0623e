"""Operations that some members of a group lack: which ones, their order does not say, but when they ended does.

A recording loses rows, or begins late. Counted by order alone, all that follow would be taken for others, and ranks
would seem to wait for each other in a circle. Guarantees: pure; clocks are put onto one by operations that no rank
lacks (alignment.py); what cannot be placed has no key.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.keys import ORDER, PAIR, Key
from fleetprof_analyzer.rank.communication.operations import RankOperations
from fleetprof_analyzer.trace.trace import Int64s

_MOST_PLACED: Final = 2_000  # of one kind in one iteration
What = tuple[Hashable, ...]
Offsets = tuple[Int64s, Sequence[bool]]


def drop_uneven(keys: list[list[Key]]) -> dict[What, dict[int, list[int]]]:
    """Takes the keys of what ranks have different numbers of; returns their positions by rank."""
    counts: dict[What, Counter[int]] = defaultdict(Counter)
    for number, of_rank in enumerate(keys):
        counts_of_rank = Counter(key[0] for key in of_rank if key is not None and key[0][0] in (ORDER, PAIR))
        for what, count in counts_of_rank.items():
            counts[what][number] = count
    uneven = {what for what, of_ranks in counts.items() if len(set(of_ranks.values())) > 1}
    dropped: dict[What, dict[int, list[int]]] = {what: defaultdict(list) for what in uneven}
    if uneven:
        for number, of_rank in enumerate(keys):
            for position, key in enumerate(of_rank):
                if key is not None and key[0] in uneven:
                    dropped[key[0]][number].append(position)
                    of_rank[position] = None
    return dropped


def place_dropped(
    ranks: list[RankOperations], keys: list[list[Key]], dropped: dict[What, dict[int, list[int]]], offsets: Offsets
) -> None:
    """Gives them keys again, by their ends: on each rank those of the rank that has most."""
    offset_ns, aligned = offsets
    for what, of_ranks in dropped.items():
        known = {number: positions for number, positions in of_ranks.items() if aligned[number]}
        if len(known) < 2 or max(map(len, known.values())) > _MOST_PLACED:
            continue
        ends = {
            number: (ranks[number].columns.start_ns + ranks[number].columns.duration_ns)[positions] + offset_ns[number]
            for number, positions in known.items()
        }
        most = max(known, key=lambda number: len(known[number]))
        for number, positions in known.items():
            for position, place in zip(positions, place_in_order(ends[number], ends[most]).tolist(), strict=True):
                keys[number][position] = (what, place + 1)


def place_in_order(ends_ns: Int64s, others_ns: Int64s) -> Int64s:
    """Which of the others each is, in order, so that their ends differ least in sum; there are at least as many."""
    count, spare = len(ends_ns), len(others_ns) - len(ends_ns)
    # cost[k]: of the operations so far with k of the others left out.
    cost, choices = np.zeros(spare + 1), []
    for number in range(count):
        # Leaving out one more before this one is a choice too.
        best = np.minimum.accumulate(cost)
        left_out = np.maximum.accumulate(np.where(cost <= best, np.arange(spare + 1), 0))
        choices.append(left_out)
        cost = best + np.abs(others_ns[number : number + spare + 1] - ends_ns[number])
    places = np.zeros(count, np.int64)
    skipped = int(cost.argmin()) if count else 0
    for number in range(count - 1, -1, -1):
        places[number] = number + skipped
        skipped = int(choices[number][skipped])
    return places
