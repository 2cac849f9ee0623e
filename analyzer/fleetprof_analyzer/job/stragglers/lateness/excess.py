"""Tests whether a rank's own time exceeds that of its peers: always, in the mean, or again and again.

Robust statistics throughout (medians, median absolute deviations), so that one fault does not widen the measure of
the others. Formulas: docs/measures.md#stragglers. Guarantees: pure; the same table gives the same candidates.
"""

from math import ceil
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.leads import may_be_chance_of_leads
from fleetprof_analyzer.job.stragglers.lateness.margins import UNSURE, Margins, measure_margins, stand_out
from fleetprof_analyzer.job.stragglers.lateness.outliers import binomial_tail, find_outliers, measure_deviation
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.thresholds import (
    CLEARLY,
    FEW_ITERATIONS,
    FEW_RANKS,
    FEWEST,
    LEAST,
    LEAST_ON_HOST,
    MOST,
    RARE,
    SIGMA,
)
from fleetprof_analyzer.trace.trace import Bools, Int64s

_MEDIAN_ERROR: Final = 1.2533  # standard error of a median, over that of a mean
_LEAST_SPREAD: Final = 0.003
USUAL_SPREAD: Final = 0.008  # of GPUs of one kind; counts like three ranks
_USUAL_WEIGHT: Final = 3
_MANY: Final = 6  # ranks; a second fault among them is not yet within three quarters
_SIGMA_OF_MOST: Final = 1 / 1.1503  # of a normal distribution, over what three quarters do not exceed
_LEAST_Z: Final = 5.0
_FEW: Final = 0.4


def measures_of(table: OwnTime) -> list[Int64s]:
    """The tested quantities, shapes (R, K): the own time first, its parts, the hosts' own time and their loading."""
    parts = table.parts_ns
    of_parts = [parts["busy"], parts["data"], parts["host"] + parts["collection"]]
    return [table.own_ns, *of_parts, table.host_ns, table.host_parts_ns["data"]]


def relative_excess(table: OwnTime, values: Int64s | Floats) -> tuple[Floats, Bools]:
    """(x, has peers): values, shape (R, K), over those of the peers, as share of the role's own time.

    A rank without peers is measured by its own median over the iterations: only what comes and goes shows.
    """
    excess = np.zeros(values.shape)
    has_peers = np.zeros(len(values), np.bool_)
    for rank in range(len(values)):
        peers = table.peers(rank)
        level = _level(table, rank)
        has_peers[rank] = len(peers) > 0
        reference = np.median(values[peers], axis=0) if len(peers) else np.median(values[rank])
        excess[rank] = (values[rank] - reference) / level
    return excess, has_peers


def find_candidates(table: OwnTime) -> list[Candidate]:
    """Candidates of both patterns, each rank once, the largest excess first.

    The own time is tested as a whole and by its parts: where kernels differ by some percent from device to device, a
    loader that takes as long shows among the loaders. The hosts' own time and their loading are tested as well: gaps of
    the device show only where a host is late, which depends on what lead it had, and not before the first collective.
    """
    whole, has_peers = relative_excess(table, table.own_ns)
    tested = [relative_excess(table, values)[0] for values in measures_of(table)]
    best: dict[int, Candidate] = {}
    for excess in tested:
        for candidate in _persistent(table, excess, has_peers):
            known = best.get(candidate.rank)
            if known is None or candidate.excess > known.excess:
                best[candidate.rank] = candidate
    for candidate in _in_the_mean(table, whole):
        best.setdefault(candidate.rank, candidate)
    for rank, late, share in find_outliers(tested):
        if _takes_longer(whole[rank], late) and not may_be_chance_of_leads(table, rank, late):
            best.setdefault(rank, Candidate(rank, LatePattern.INTERMITTENT, share, late))
    return sorted(best.values(), key=lambda candidate: -float(whole[candidate.rank].mean()))


def _takes_longer(whole: Floats, late: Bools) -> bool:
    """Tells whether the time of a host in its late iterations, shape (K,), shows in the rank's own time."""
    return float(whole[late].mean()) > LEAST


def _persistent(table: OwnTime, excess: Floats, has_peers: Bools) -> list[Candidate]:
    ranks = np.flatnonzero(has_peers)
    if len(ranks) < 2:
        return []
    x = excess[ranks]
    middle = np.median(x, axis=1)
    sigma = SIGMA * np.median(np.abs(x - middle[:, None]), axis=1)
    cap = 3 * float(np.median(sigma))
    pooled = float(np.sqrt(np.mean(np.minimum(sigma, cap) ** 2)))
    error = _MEDIAN_ERROR * np.maximum(sigma, pooled) / np.sqrt(x.shape[1])
    spread = np.array([_spread(middle, table.role[ranks], n) for n in range(len(ranks))])
    z = (middle - np.median(middle)) / np.sqrt(error**2 + spread**2)
    if not table.on_host:  # waits for a core come in spells, so that one rank has most of them for a while
        low = np.quantile(x, 1 - MOST, axis=1)
        z = np.where(are_largest(x), np.maximum(z, (low - np.median(middle)) / spread), z)
    above = x > np.maximum(LEAST, middle / 2)[:, None]
    # Deviations of a few iterations are small by chance now and then: the mean must stand out as well.
    chosen = (z > least_z(len(ranks) - 1)) & stand_out(x) | are_apart(x)
    chosen &= (middle > LEAST) & (above.mean(axis=1) >= MOST)
    return [
        Candidate(int(ranks[n]), LatePattern.PERSISTENT, float(middle[n]), above[n]) for n in np.flatnonzero(chosen)
    ]


def are_largest(x: Floats) -> Bools:
    """Ranks whose x, shape (R, K), is the largest in too many iterations for chance: what the ranks differ by remains.

    A loader varies more than its peers, which says nothing against its being late.
    """
    ranks, count = x.shape
    times = np.bincount(x.argmax(axis=0), minlength=ranks).tolist()
    chances = [ranks * binomial_tail(count, 1 / ranks, largest) for largest in times]
    return np.array(chances) <= RARE


def are_apart(x: Floats) -> Bools:
    """Ranks whose x, shape (R, K), is clearly above all values of all others: always, or mostly among many ranks."""
    ranks, count = x.shape
    apart = _are_apart_in(x, count)
    # Few ranks do not show how large chance becomes.
    return apart | _are_apart_in(x, ceil(MOST * count)) if ranks >= FEW_RANKS else apart


def _are_apart_in(x: Floats, late: int) -> Bools:
    """Ranks that in `late` iterations are clearly above all values of all others: too many of them for chance."""
    ranks, count = x.shape
    if ranks ** (1 - late) > RARE:
        return np.zeros(ranks, np.bool_)
    least, most = np.sort(x, axis=1)[:, count - late], x.max(axis=1)
    others = np.array([np.delete(most, rank).max() for rank in range(ranks)])
    return np.asarray(least > np.maximum(CLEARLY * others, LEAST_ON_HOST))


def _in_the_mean(table: OwnTime, excess: Floats) -> list[Candidate]:
    """Ranks that noise makes early in some iterations, and whose mean it does not explain: many iterations tell."""
    margins = measure_margins(table)
    if margins.iterations < FEW_ITERATIONS:
        return []
    low = margins.mean_ns - margins.reach_ns(UNSURE)
    found = []
    for rank in np.flatnonzero(low > least_excess_ns(table, margins)):
        level = float(margins.mean_ns[rank]) / _level(table, int(rank))
        late = excess[rank] > max(LEAST, level / 2)
        pattern = LatePattern.PERSISTENT if late.mean() >= MOST else LatePattern.INTERMITTENT
        if late.any():
            found.append(Candidate(int(rank), pattern, level, late))
    return found


def least_excess_ns(table: OwnTime, margins: Margins) -> Floats:
    """By how much a rank must exceed its peers to be more than one of a kind that differ a little, shape (R,)."""
    mean = table.own_ns.mean(axis=1)
    least = np.full(len(mean), np.inf)
    for rank in range(len(mean)):
        peers = table.peers(rank)
        if len(peers):
            level = _level(table, rank)
            deviation = _deviation_within_roles(mean, table.role, rank) * level
            # Of what the peers differ by, noise makes the part that their errors show.
            beyond_noise = max(deviation**2 - float(margins.error_ns[rank]) ** 2, 0.0) ** 0.5
            spread = max(beyond_noise / level, USUAL_SPREAD)
            least[rank] = max(LEAST, least_z(len(peers)) * spread) * level
    return least


def _deviation_within_roles(mean_ns: Floats, role: Int64s, rank: int) -> float:
    """The distance of other ranks from the middle of their role, as share of it; 0 where the rank has too few peers.

    Devices of one job differ as much in one role as in another, and three peers may resemble each other by chance. Both
    of shape (R,).
    """
    mine = role == role[rank]
    if mine.sum() <= FEWEST:
        return 0.0
    away: list[Floats] = []
    for one in np.unique(role):
        others = mean_ns[(role == one) & (np.arange(len(role)) != rank)]
        if len(others) >= FEWEST:
            middle = max(float(np.median(others)), 1.0)
            away.append(np.abs(others - middle) / middle)
    return SIGMA * float(np.median(np.concatenate(away)))


def _level(table: OwnTime, rank: int) -> float:
    """The usual own time of its role, ns."""
    return max(float(np.median(table.own_ns[table.role == table.role[rank]])), 1.0)


def least_z(others: int) -> float:
    """The number of spreads that a fault must stand out by; more where few others tell the spread."""
    return _LEAST_Z * (1 + _FEW / max(others, 1))


def _spread(middle: Floats, role: Int64s, number: int) -> float:
    """The spread of ranks without a fault, as the others show it, beside what is usual where few of them do.

    In a small role peers mirror a fault, so they are left out.
    """
    same = role == role[number]
    others = np.delete(middle, number) if same.sum() >= FEWEST else middle[~same]
    deviation = spread_of_many(others) if len(others) else 0.0
    weight = len(others) / (len(others) + _USUAL_WEIGHT)
    return max(float(np.sqrt(weight * deviation**2 + (1 - weight) * USUAL_SPREAD**2)), _LEAST_SPREAD)


def spread_of_many(values: Floats) -> float:
    """Their standard deviation, whatever a fault does to few of them.

    Half of some ranks resemble each other by chance, whose median deviation is far too small then: of many, three
    quarters tell as well.
    """
    most = 0.0
    if len(values) >= _MANY:
        most = _SIGMA_OF_MOST * float(np.quantile(np.abs(values - np.median(values)), MOST))
    return max(SIGMA * measure_deviation(values), most)
