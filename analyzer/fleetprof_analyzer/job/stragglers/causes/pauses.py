"""Tells whether it is the garbage collector that pauses a rank.

Guarantees: pure; it is named for its own frames or marks. Where nothing listened to the collector, it is named for
silences that come and go while operators take as long as elsewhere; who samples the thread listens to it as well.
"""

from typing import Final

import numpy as np
from fleetprof_api.report.stragglers import Evidence

from fleetprof_analyzer.job.stragglers.causes.devices import NOTHING_LEFT
from fleetprof_analyzer.job.stragglers.causes.loaders import loading_ns
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.thresholds import HALF, MOST, SEVERAL, USUAL

_SLOWED_SHARE: Final = 0.15


def find_collections(
    table: OwnTime, candidate: Candidate, collection: float, operators: float, host: float
) -> Evidence | None:
    """Evidence that the garbage collector pauses the rank; ns per iteration of excess in its frames, in operators,
    and in all that the host does.

    A collection leaves the operators around it as they are. Where they take longer too, the silences are the core's.
    """
    rank, late = candidate.rank, candidate.iterations
    if collection >= HALF * host:
        return Evidence(measure="runs of the collector", value=round(collection), usual=0, unit="ns per iteration")
    if operators >= _SLOWED_SHARE * host or _is_heard(table, candidate) or not _says_what_it_does(table, rank):
        return None
    pause = float(table.pause_ns[rank][late].mean())
    quiet = float(table.quiet_ns[rank][late].mean())
    pauses = table.pause_ns[rank]
    goes = candidate.pattern == LatePattern.INTERMITTENT or int((pauses < USUAL * pause).sum()) >= SEVERAL
    goes = goes or bool((pauses[1:] < NOTHING_LEFT * pause).any())
    if goes and pause >= HALF * host and quiet >= MOST * pause:
        return Evidence(
            measure="pauses in which no thread of the host did anything", value=round(quiet), usual=0,
            unit="ns per iteration",
        )  # fmt: skip
    return None


def _says_what_it_does(table: OwnTime, rank: int) -> bool:
    """Tells if the rank's host has more rows than its launches: without operators and loading it is always silent."""
    return not table.operators or bool(table.operators[rank]) or bool(loading_ns(table)[rank].any())


def _is_heard(table: OwnTime, candidate: Candidate) -> bool:
    """Tells if the agent sampled the rank's thread in most late iterations: no run of the collector escapes it then."""
    if table.ran_ns.shape != table.own_ns.shape:
        return False
    sampled = np.isfinite(table.ran_ns[candidate.rank][candidate.iterations])
    return bool(sampled.mean() > HALF)
