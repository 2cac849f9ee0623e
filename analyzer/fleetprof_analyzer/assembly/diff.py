"""The comparison of two reports: what changed, and its sentences.

Guarantees: pure and deterministic.
"""

import msgspec
from fleetprof_api.report.diff import Diff
from fleetprof_api.report.report import Report

from fleetprof_analyzer.comparison.comparison import find_changes
from fleetprof_analyzer.words.comparison import say_circumstance, say_obstacle
from fleetprof_analyzer.words.methods import METHOD_OF_COMPARISON


def compare(before: Report, after: Report) -> Diff:
    """The differences between two reports of a job."""
    found = find_changes(before, after)
    return msgspec.structs.replace(
        found.diff,
        reasons=[say_obstacle(one) for one in found.obstacles],
        notes=[say_circumstance(one) for one in found.circumstances],
        method=METHOD_OF_COMPARISON if found.diff.comparable else "",
    )
