"""The rules of all findings, and the list of what is worth doing (docs/measures.md#findings).

Guarantees: pure; silent where there is nothing to say; every finding passes its guard, and its gain is an upper bound
that the report's own numbers prove; at most `_MOST`.
"""

from typing import Final

from fleetprof_api.report.findings import Finding
from fleetprof_api.report.report import Report

from fleetprof_analyzer.findings import (
    allocation,
    cpu_contention,
    data_loading,
    exposed_communication,
    exposed_copies,
    growing_memory,
    known_causes,
    launch_bound,
    long_iterations,
    optimizer,
    python,
    synchronization,
    tiny_launches,
    waiting,
)
from fleetprof_analyzer.findings.finding import FindingRule, MeasuredFinding, RanksOfKind
from fleetprof_analyzer.findings.held_up import find_held_up
from fleetprof_analyzer.job.stragglers.sampled_device import SampledDevice

RULES: Final[tuple[FindingRule, ...]] = (
    data_loading.IDLE,
    synchronization.RULE,
    launch_bound.RULE,
    python.IDLE,
    allocation.RULE,
    optimizer.RULE,
    waiting.RULE,
    exposed_communication.RULE,
    exposed_copies.RULE,
    long_iterations.RULE,
    data_loading.ON_HOST,
    python.ON_HOST,
    cpu_contention.RULE,
    growing_memory.RULE,
    tiny_launches.RULE,
    *known_causes.RULES,
)
"""All but the finding of the straggler verdict, which is one of the report and not of a kind of ranks."""
_MOST: Final = 6


def find_findings(report: Report, loading_gain: float = 0.0, late_device: SampledDevice | None = None) -> list[Finding]:
    """The findings of a report, the largest gain first; `report.stragglers` has its reason in words.

    `loading_gain` as `RanksOfKind` has it; `late_device`: what was sampled of the GPU that the others wait for.
    """
    held_up = find_held_up(report, late_device)
    found = [] if held_up is None else [held_up]
    for total in report.totals:
        ranks = [rank for rank in report.ranks if rank.kind == total.kind]
        found += _find_in(RanksOfKind(report, total, ranks, held_up, loading_gain))
    found.sort(key=lambda finding: (-finding.gain_permille, finding.kind))
    return [one.tell() for one in found[:_MOST]]


def _find_in(view: RanksOfKind) -> list[MeasuredFinding]:
    found = [one for rule in RULES if (one := rule.find(view)) is not None]
    return known_causes.leave_out_explained(long_iterations.leave_out_told(found, view.ranks))
