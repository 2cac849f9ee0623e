"""Why a rank is late: which part of its own time exceeds that of its peers, and what else bears witness.

Guarantees: pure; a cause is named only where one part holds half of the excess, else it is "mixed" with its parts; a
clock that was not sampled is never blamed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from fleetprof_api.stragglers import Cause, Evidence

from fleetprof_analyzer.stragglers.excess import Candidate
from fleetprof_analyzer.stragglers.loaders import loading_ns
from fleetprof_analyzer.stragglers.own_time import Floats, OwnTime
from fleetprof_analyzer.trace import Bools

_MOST_OF: Final = 0.5
_PAUSE_SHARE: Final = 0.6
_QUIET_SHARE: Final = 0.8
_SLOWED_SHARE: Final = 0.15
_SLOWER_CLOCK: Final = 0.97
_LOW_SHARE: Final = 0.25
_CLEAR_SHARE: Final = 0.9
_GONE: Final = 0.2  # of the pauses
_LEAST_GONE: Final = 2
_LEAST_SWING: Final = 0.05
_PARTS: Final = {
    "busy": "work on the device",
    "data": "data loading",
    "collection": "garbage collection",
    "host": "time in which neither device nor data loader worked",
}
_WORK_ON_HOST: Final = "operators of the training thread"


@dataclass(frozen=True, slots=True)
class Explained:
    """A cause with what speaks for it."""

    cause: Cause
    evidence: list[Evidence]


def explain_device(table: OwnTime, candidate: Candidate) -> Explained:
    """The cause of a candidate that was found by its kernels: the same ones take longer than on the other ranks."""
    longer = Evidence(
        measure="the same kernels, over the other ranks",
        value=round(100 * (1 + candidate.excess), 1),
        usual=100,
        unit="%",
    )
    slower = _slower_clock(table, candidate)
    busy = table.parts_ns["busy"][candidate.rank].astype(np.float64)
    # Nobody does the same work, so its own fastest iterations tell.
    above = busy - busy.min()
    swings = float(np.median(above)) > _LEAST_SWING * busy.min() and _comes_and_goes(above, candidate)
    return Explained("throttling" if slower or swings else "slow_gpu", [longer, *slower])


def explain_loader(table: OwnTime, candidate: Candidate) -> Explained:
    """The cause of a candidate that was found by its data loading: it takes longer than on the other ranks."""
    loading = loading_ns(table)
    usual = np.median(np.delete(loading, candidate.rank, axis=0), axis=1)
    longer = Evidence(
        measure="data loading, beside all other ranks that load", value=round(float(loading[candidate.rank].mean())),
        usual=round(float(np.median(usual[usual > 0]))), unit="ns per iteration",
    )  # fmt: skip
    return Explained("data_loading", [longer])


def explain(table: OwnTime, candidate: Candidate, *, on_gpu: bool, indices: list[int]) -> Explained:
    """The cause of one candidate; `indices` name the iterations."""
    rank, late = candidate.rank, candidate.iterations
    peers = table.peers(rank)

    def reference(values: Floats) -> Floats:
        """What is usual: the median of the peers, or of the rank's other iterations."""
        if len(peers):
            return np.asarray(np.median(values[peers], axis=0))
        return np.full(values.shape[1], np.median(values[rank]))

    own = {name: table.parts_ns[name].astype(np.float64) for name in _PARTS}
    usual = {name: reference(values) for name, values in own.items()}
    mine = {name: float(values[rank][late].mean()) for name, values in own.items()}
    theirs = {name: float(usual[name][late].mean()) for name in own}
    excess = {name: mine[name] - theirs[name] for name in own}
    excess |= _by_host(table, candidate, excess, reference)
    total = sum(max(value, 0.0) for value in excess.values()) or 1.0
    evidence = [
        Evidence(
            measure=_WORK_ON_HOST if name == "busy" and not on_gpu else words,
            value=round(mine[name]),
            usual=round(theirs[name]),
            unit="ns per iteration",
        )
        for name, words in _PARTS.items()
        if excess[name] > 0.1 * total
    ]
    evidence.append(
        Evidence(
            measure="late iterations", value=int(late.sum()), usual=0, unit=f"of {len(late)}",
            iterations=[index for index, here in zip(indices, late, strict=True) if here],
        )
    )  # fmt: skip
    operators = 0.0 if on_gpu else max(excess["busy"], 0.0)
    host = max(excess["host"], 0.0) + max(excess["collection"], 0.0) + operators
    cause: Cause = "mixed"
    if excess["data"] >= _MOST_OF * total:
        cause = "data_loading"
    elif host >= _MOST_OF * total:
        cause = "host"
        collected = _collected(table, candidate, excess["collection"], operators, host)
        if collected is not None:
            cause = "garbage_collection"
            evidence.append(collected)
    elif excess["busy"] >= _MOST_OF * total:
        slower = _slower_clock(table, candidate)
        evidence += slower
        throttled = bool(slower) or _comes_and_goes(own["busy"][rank] - usual["busy"], candidate)
        cause = "throttling" if throttled else "slow_gpu"
    return Explained(cause, evidence)


def _by_host(
    table: OwnTime, candidate: Candidate, excess: dict[str, float], reference: Callable[[Floats], Floats]
) -> dict[str, float]:
    """The excess of the device's gaps, by what the host itself took longer for.

    What the gaps show besides was there before, and hidden as long as the host was ahead.
    """
    rank, late = candidate.rank, candidate.iterations
    longer = {}
    for name, values in table.host_parts_ns.items():
        own = values.astype(np.float64)
        longer[name] = max(float((own[rank] - reference(own))[late].mean()), 0.0)
    gaps = sum(max(excess[name], 0.0) for name in longer)
    total = sum(longer.values())
    return {name: gaps * value / total for name, value in longer.items()} if total > 0 else {}


def _collected(
    table: OwnTime, candidate: Candidate, collection: float, operators: float, host: float
) -> Evidence | None:
    """Pauses of the garbage collector: its own frames, else a few long silences that come and go.

    A collection leaves the operators around it as they are. Where they take longer too, the silences are the core's.
    """
    rank, late = candidate.rank, candidate.iterations
    if collection >= _MOST_OF * host:
        return Evidence(measure="frames of the collector", value=round(collection), usual=0, unit="ns per iteration")
    if operators >= _SLOWED_SHARE * host:
        return None
    pause = float(table.pause_ns[rank][late].mean())
    quiet = float(table.quiet_ns[rank][late].mean())
    goes = candidate.pattern == "intermittent" or int((table.pause_ns[rank] < _GONE * pause).sum()) >= _LEAST_GONE
    if goes and pause >= _PAUSE_SHARE * host and quiet >= _QUIET_SHARE * pause:
        return Evidence(
            measure="pauses in which no thread of the host did anything", value=round(quiet), usual=0,
            unit="ns per iteration",
        )  # fmt: skip
    return None


def _slower_clock(table: OwnTime, candidate: Candidate) -> list[Evidence]:
    """The device's clock in the late iterations, where it was sampled and lower than usual."""
    rank, late = candidate.rank, candidate.iterations
    mine = table.clock_megahertz[rank]
    others = table.clock_megahertz[table.peers(rank)]
    if len(others) == 0:
        others = np.delete(table.clock_megahertz, rank, axis=0)
    usual = np.nanmedian(others) if np.isfinite(others).any() else np.nan
    rest = mine[~late & np.isfinite(mine)]
    usual = usual if np.isfinite(usual) else float(np.median(rest)) if len(rest) else np.nan
    sampled = mine[late & np.isfinite(mine)]
    if len(sampled) == 0 or not np.isfinite(usual) or float(np.median(sampled)) > _SLOWER_CLOCK * usual:
        return []
    return [
        Evidence(
            measure="clock of the device", value=round(float(np.median(sampled))), usual=round(float(usual)), unit="MHz"
        )
    ]


def _comes_and_goes(excess: Floats, candidate: Candidate) -> bool:
    """Whether a device was slow in one part of the window, or clearly either slow or not: clocks, not the chip."""
    late: Bools = candidate.iterations & (excess > 0)
    if not late.any():
        return False
    high = float(np.median(excess[late]))
    slow = excess > _MOST_OF * high
    fast = excess < _LOW_SHARE * high
    edges = int(np.abs(np.diff(slow.astype(np.int8))).sum())
    return bool(fast.sum() >= _LEAST_GONE and (edges <= 2 or (fast | slow).mean() >= _CLEAR_SHARE))
