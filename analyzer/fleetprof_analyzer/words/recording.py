"""The memory that recording took of the trainers, and whether the job is slower since, in words.

Guarantees: says only what agents measured; the rank with the most memory stands for all; an absence is stated only
where the measurement shows it.
"""

from dataclasses import dataclass
from typing import Final

from fleetprof_api.ledger import RecordingCost
from fleetprof_api.quantities import size
from fleetprof_api.report.capture_cost import CaptureCost
from fleetprof_api.report.recording import most_memory_bytes
from fleetprof_api.report.report import Report

_SMALL: Final = 0.02
"""A share of an iteration: differences below it do not matter to anybody."""


@dataclass(frozen=True, slots=True)
class MemoryCost:
    """The most that any rank took at its peak, and kept; both above what it had before."""

    peak: str
    peak_context: str
    kept: str
    kept_context: str


def describe_memory(report: Report) -> MemoryCost | None:
    """None where no agent measured anything."""
    known = [
        (e.rank, e.recording_cost) for e in report.ledger if e.recording_cost and e.recording_cost.memory_peak_bytes
    ]
    if not known:
        return None
    ranks = f"{len(known)} rank{'s' * (len(known) > 1)} measured"
    rank, cost = max(known, key=lambda entry: _grown(entry[1]))
    peak = f"rank {rank}: from {size(cost.memory_before_bytes)} to {size(cost.memory_peak_bytes)}"
    if cost.events:
        peak += f", for {cost.events:,} events"
    most = _most_bytes(report, cost)
    if most is not None and _grown(cost) > most:
        peak += f", which take {size(most)} at most: the rest is the job's own growth in that time"
    keeper, kept = max(known, key=lambda entry: _kept(entry[1]))
    return MemoryCost(
        peak=f"+{size(_grown(cost))}",
        peak_context=f"{peak}; {ranks}",
        kept=f"+{size(_kept(kept))}",
        kept_context=f"rank {keeper}: {size(kept.memory_after_bytes)} after the writing, with free memory given back",
    )


def _most_bytes(report: Report, cost: RecordingCost) -> int | None:
    """The memory that recording can have taken; None where its events or options are not known."""
    collect = None if report.request is None else report.request.collect
    return None if collect is None or not cost.events else most_memory_bytes(cost.events, collect)


def judge_residue(cost: CaptureCost) -> str:
    """Tells whether iterations take longer since the capture, as far as its interval tells."""
    within = cost.residue_interval
    if within is None:
        return "too few iterations to tell"
    if within.low > 0:
        return "iterations take longer than before"
    if within.high < 0:
        return "iterations take less time than before"
    if max(-within.low, within.high) <= _SMALL:
        return "none"
    return f"cannot be told from noise; {_what_decides(cost, max(-within.low, within.high))}"


def _what_decides(cost: CaptureCost, reach: float) -> str:
    """The number of iterations afterwards that would narrow the interval to what nobody would look for."""
    needed = round(cost.after.iterations * (reach / _SMALL) ** 2)
    return f"about {needed:,} iterations afterwards would tell" if cost.after.iterations else "too few iterations"


def _grown(cost: RecordingCost) -> int:
    return max(0, cost.memory_peak_bytes - cost.memory_before_bytes)


def _kept(cost: RecordingCost) -> int:
    return max(0, cost.memory_after_bytes - cost.memory_before_bytes)
