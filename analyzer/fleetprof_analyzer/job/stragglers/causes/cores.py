"""Tells whether a rank is late because it waits for a core: other processes on it, too many threads, a quota.

Guarantees: pure; says yes only where the thread was sampled and waits hold half of the excess. What a rank waits longer
because it has more to do is no wait of others' making.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
from fleetprof_api.report.stragglers import Evidence

from fleetprof_analyzer.job.stragglers.causes.peers import excess
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.thresholds import CLEARLY, HALF
from fleetprof_analyzer.rank.communication.core_waits import CoreWaits

_LONGER_TURNS: Final = 2.0


def find_contention(table: OwnTime, candidate: Candidate, total: float) -> list[Evidence] | None:
    """Evidence that the rank waits for a core; None where nothing does.

    `total`: the excess of its own time, ns per iteration.
    """
    waits = table.cores[candidate.rank] if table.cores else CoreWaits()
    center = np.median if candidate.pattern == LatePattern.PERSISTENT else np.mean
    waited, usually_waited = excess(table, candidate, table.waited_ns, center)
    evidence = _describe(table, candidate, waits)
    if np.isfinite(waited) and waited > 0:
        shown = Evidence(
            measure="ready to run and waiting for a core", value=round(waited), usual=round(usually_waited),
            unit="ns per iteration",
        )  # fmt: skip
        evidence = [shown, *evidence]
        if _made_by_others(table, candidate, center) >= HALF * total or _explained_by_limit(table, candidate):
            return evidence
    return None


def _made_by_others(table: OwnTime, candidate: Candidate, center: Callable[[Floats], Any]) -> float:
    """Its wait for a core beyond that of its peers, without what more work makes it wait, ns per iteration."""
    waited, usually_waited = excess(table, candidate, table.waited_ns, center)
    ran, usually_ran = excess(table, candidate, table.ran_ns, center)
    share = usually_waited / usually_ran if usually_ran > 0 else 0.0
    # Who runs longer is also taken off the core more often, and waits longer each time than who just woke up.
    longer = _LONGER_TURNS if ran >= CLEARLY * usually_ran else 1.0
    more_to_do = longer * max(ran - usually_ran, 0.0) * share if np.isfinite(ran) else 0.0
    return waited - usually_waited - more_to_do


def _explained_by_limit(table: OwnTime, candidate: Candidate) -> bool:
    """Tells whether it may use fewer cores than its peers, and its waits of all iterations hold half of its excess.

    A quota stops the process now and then, and whoever looks at it: of one iteration the waits say little.
    """
    cores, usual_cores = _cores_beside(table, candidate)
    if cores is None or usual_cores is None or cores >= usual_cores:
        return False
    everywhere = replace(candidate, iterations=np.ones_like(candidate.iterations))
    own, usually_own = excess(table, everywhere, table.own_ns.astype(np.float64))
    return _made_by_others(table, everywhere, np.mean) >= HALF * (own - usually_own)


def _cores(waits: CoreWaits) -> float | None:
    limits = [float(waits.usable_cores)] if waits.usable_cores else []
    limits += [waits.cpu_limit_millicores / 1000] if waits.cpu_limit_millicores else []
    return min(limits) if limits else None


def _cores_beside(table: OwnTime, candidate: Candidate) -> tuple[float | None, float | None]:
    """(how many cores it may use, how many its peers: their median); None where nobody said."""
    if not table.cores:
        return None, None
    usual = [found for peer in table.peers(candidate.rank).tolist() if (found := _cores(table.cores[peer])) is not None]
    return _cores(table.cores[candidate.rank]), float(np.median(usual)) if usual else None


def _describe(table: OwnTime, candidate: Candidate, waits: CoreWaits) -> list[Evidence]:
    """Figures beside the wait: switches, threads and cores, the quota."""
    evidence = []
    switches, usually = excess(table, candidate, table.involuntary_switches)
    if np.isfinite(switches) and switches > usually:
        evidence.append(
            Evidence(
                measure="taken off its core", value=round(switches, 1), usual=round(usually, 1), unit="per iteration"
            )
        )
    peers = [table.cores[peer] for peer in table.peers(candidate.rank).tolist()] if table.cores else []
    cores, usual_cores = _cores_beside(table, candidate)
    if cores is not None:
        evidence.append(
            Evidence(
                measure="cores that it may use", value=cores,
                usual=cores if usual_cores is None else usual_cores, unit="cores",
            )
        )  # fmt: skip
    if waits.torch_threads:
        threads = [peer.torch_threads for peer in peers if peer.torch_threads]
        evidence.append(
            Evidence(
                measure="threads of PyTorch", value=waits.torch_threads,
                usual=float(np.median(threads)) if threads else waits.torch_threads, unit="threads",
            )
        )  # fmt: skip
    return evidence
