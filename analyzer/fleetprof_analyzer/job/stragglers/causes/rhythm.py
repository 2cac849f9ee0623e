"""Ranks that pause in every n-th iteration: checkpoints, logging, evaluation on one rank only.

A rhythm tells more than so many outliers: chance hits any iteration. On a full machine waits for a core hide it, so it
is looked for in the time that a thread is blocked as well. Guarantees: pure; no rank is suspected for a rhythm that
others of its role have as well.
"""

from collections.abc import Iterator
from math import comb
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, FoundBy, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.excess import relative_excess
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime, among_all
from fleetprof_analyzer.job.stragglers.thresholds import CLEARLY, FEWEST, HALF, LEAST_ON_HOST, RARE
from fleetprof_analyzer.trace.trace import Bools

_SHORTEST: Final = 2
_CHANCE_OF_TURNS: Final = 0.05  # of it, by the iterations alone: a rank that is always late has no rhythm
_LEAST_SAMPLED: Final = 9  # iterations


def find_rhythm(late: Bools, numbers: list[int]) -> int | None:
    """n where the late iterations are each n-th one, n at least 2; None without such a rhythm.

    `numbers` of the iterations, shape (K,). Takes three late ones, and none that is missing or out of turn.
    """
    at = np.array(numbers)[late]
    if len(at) > FEWEST and late[0] and len(set(np.diff(at).tolist())) > 1:
        at = at[1:]  # the recording begins in the first one, which may make it late
    steps = np.diff(at)
    if len(at) < FEWEST or steps.min() < _SHORTEST or steps.min() != steps.max():
        return None
    every = int(steps[0])
    # Before the first and behind the last there is no room for another one; what lies before the window's first
    # collective was not recorded.
    return every if at[0] - numbers[0] <= every and numbers[-1] - at[-1] < every else None


def add_rhythmic(table: OwnTime, candidates: list[Candidate], numbers: list[int]) -> list[Candidate]:
    """The candidates; those that pause in a rhythm with it, and those that only their rhythm shows."""
    found: dict[int, tuple[int, Candidate]] = {}
    for rank, every, candidate in [
        *_find_blocked(table, numbers),
        *_find_late(table, numbers),
    ]:
        found.setdefault(rank, (every, candidate))
    alone = {
        rank: candidate
        for rank, (every, candidate) in found.items()
        if not any(
            other != rank and table.role[other] == table.role[rank] and found[other][0] == every for other in found
        )
    }
    kept = [alone.get(one.rank, one) for one in candidates]
    known = {candidate.rank for candidate in kept}
    return kept + [candidate for rank, candidate in alone.items() if rank not in known]


def _find_late(table: OwnTime, numbers: list[int]) -> Iterator[tuple[int, int, Candidate]]:
    """(rank, n, candidate) of ranks whose own time has a rhythm."""
    excess, has_peers = relative_excess(table, table.own_ns)
    for rank in np.flatnonzero(has_peers).tolist():
        found = _find_outstanding(excess, rank, numbers)
        if found is not None:
            every, late = found
            yield rank, every, Candidate(rank, LatePattern.INTERMITTENT, float(excess[rank][late].mean()), late)


def _find_blocked(table: OwnTime, numbers: list[int]) -> Iterator[tuple[int, int, Candidate]]:
    """The same of ranks that are blocked in a rhythm, by the iterations that were sampled on all ranks."""
    blocked, known = table.blocked_ns(), table.sampled()
    if blocked is None or known is None or known.sum() < _LEAST_SAMPLED:
        return
    excess, has_peers = relative_excess(table, blocked[:, known])
    sampled = [number for number, here in zip(numbers, known, strict=True) if here]
    for rank in np.flatnonzero(has_peers).tolist():
        found = _find_outstanding(excess, rank, sampled) or _find_among_strays(excess, rank, sampled)
        if found is None:
            continue
        every, late = found
        mean = float(excess[rank][late].mean())
        yield rank, every, Candidate(rank, LatePattern.INTERMITTENT, mean, among_all(late, known), by=FoundBy.BLOCKED)


def _find_outstanding(excess: Floats, rank: int, numbers: list[int]) -> tuple[int, Bools] | None:
    """n and the iterations of a rhythm in which a rank is late by far more than in its others, and than others are.

    However much the pauses differ: a disk is now fast and now slow.
    """
    mine, others = excess[rank], np.delete(excess, rank, axis=0).ravel()
    longest = np.sort(mine)[::-1]
    for count in range(len(mine) // _SHORTEST, FEWEST - 1, -1):
        late: Bools = np.asarray(mine >= max(float(longest[count - 1]), LEAST_ON_HOST))
        rest = np.concatenate((mine[~late], others))
        if late.sum() < FEWEST or float(mine[late].min()) < CLEARLY * float(rest.max(initial=0.0)):
            continue
        every = find_rhythm(late, numbers)
        if every is not None and mine[late].sum() >= HALF * mine[mine > 0].sum():
            return every, late
    return None


def _find_among_strays(excess: Floats, rank: int, numbers: list[int]) -> tuple[int, Bools] | None:
    """n and the iterations of a rhythm beside which ranks pause now and then as well; None where that may be chance.

    In each turn the rank is late, and by more than any other one. Chance gives that to one of the ranks with the
    same odds each time, and spreads its late iterations over all: the two are independent. What lies before the
    window's first collective was not recorded.
    """
    rhythm = np.array(numbers)
    mine, most = excess[rank], excess.max(axis=0)
    ranks, count = excess.shape
    recorded = np.arange(count) > 0
    tries = [(every, at) for every in range(_SHORTEST, count // FEWEST + 1) for at in range(every)]
    best: tuple[float, int, Bools] | None = None
    for every, at in tries:
        turns = (rhythm % every == at) & recorded
        if turns.sum() < FEWEST or (mine[turns] < most[turns]).any():
            continue
        late = mine > max(float(np.median(mine[turns])) / 2, LEAST_ON_HOST)
        if not late[turns].all():
            continue
        strays, room = int((late & ~turns & recorded).sum()), int(recorded.sum())
        hits = int(turns.sum())
        of_turns = len(tries) * comb(room - hits, strays) / comb(room, hits + strays)
        chance = of_turns * float(ranks) ** (1 - hits)
        if of_turns <= _CHANCE_OF_TURNS and chance <= RARE and (best is None or chance < best[0]):
            best = chance, every, turns
    return None if best is None else best[1:]
