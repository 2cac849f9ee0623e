"""Tells sends and receives of the program, as a pipeline's, from those beside it: a logged value, a word to a peer.

A pipeline's pattern holds over the job: most ranks take part, in most iterations, with messages of a size. Guarantees:
pure; what does not say its size or its partner is no stray by that.
"""

from collections import Counter, defaultdict
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.replay.matching import Matched
from fleetprof_analyzer.job.stragglers.thresholds import HALF
from fleetprof_analyzer.rank.communication.operations import KINDS
from fleetprof_analyzer.trace.trace import Bools

_SEND: Final = KINDS.index("send")
_RECEIVE: Final = KINDS.index("receive")
_LEAST_ELEMENTS: Final = 1024  # of an edge in one iteration; activations are larger
_LEAST_OF_USUAL: Final = 0.01
Edge = tuple[int, int]


def find_strays(matched: Matched) -> list[Bools]:
    """Per rank, which of its operations are sends or receives that belong to no pattern of the job."""
    edges = [_edges(matched, number) for number in range(len(matched.ranks))]
    elements: dict[Edge, int] = {}
    for number, one in enumerate(matched.ranks):
        sums: Counter[Edge] = Counter()
        iterations: dict[Edge, set[int]] = defaultdict(set)
        for position, edge in edges[number].items():
            sums[edge] += max(int(one.columns.elements[position]), 0)
            iterations[edge].add(int(matched.iteration[number][position]))
            if one.columns.elements[position] < 0:
                sums[edge] += _LEAST_ELEMENTS * len(matched.iterations)
        for edge, total in sums.items():
            often = len(iterations[edge]) >= HALF * len(matched.iterations)
            elements[edge] = max(elements.get(edge, 0), total // max(len(iterations[edge]), 1) if often else 0)
    usual = float(np.median(list(elements.values()))) if elements else 0.0
    regular = {edge for edge, size in elements.items() if size >= max(_LEAST_ELEMENTS, _LEAST_OF_USUAL * usual)}
    taking_part = sum(any(edge in regular for edge in of_rank.values()) for of_rank in edges)
    if taking_part < HALF * len(matched.ranks):
        regular = set()
    strays = [np.zeros(len(one), np.bool_) for one in matched.ranks]
    for number, of_rank in enumerate(edges):
        strays[number][[position for position, edge in of_rank.items() if edge not in regular]] = True
    return strays


def _edges(matched: Matched, number: int) -> dict[int, Edge]:
    """(sender, receiver) of each send and receive of a rank in the common iterations, -1: unsaid."""
    one = matched.ranks[number]
    kind, peer = one.columns.kind, one.columns.peer
    mine = -1 if one.rank is None else one.rank
    chosen = np.flatnonzero(np.isin(kind, (_SEND, _RECEIVE)) & (matched.iteration[number] >= 0))
    return {int(at): (mine, int(peer[at])) if kind[at] == _SEND else (int(peer[at]), mine) for at in chosen}
