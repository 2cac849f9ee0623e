"""The text of a report's page, for tests that ask whether it says something."""

from fleetprof_analyzer.slices.writer import encode_slice
from fleetprof_api.report.report import Report
from fleetprof_api.slices.table import SLICES


def page_text(report: Report) -> str:
    """All slices of a report, as JSON one after the other."""
    return "\n".join(encode_slice(report, name).decode() for name in SLICES)
