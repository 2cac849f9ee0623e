"""The page of results that were fetched into a folder: made anew, for the stored one lay apart from the traces.

Guarantees: only traces that are in the folder are linked; where report.json cannot be read the page stays as it is.
"""

from pathlib import Path

from fleetprof_analyzer.page.page import render_page
from fleetprof_api.report.report import UnreadableReport, read_report


def link_traces(folder: Path) -> None:
    """Writes `report.html` anew from the `report.json` beside it. Raises OSError."""
    file = folder / "report.json"
    try:
        report = read_report(file.read_bytes())
    except (FileNotFoundError, UnreadableReport):
        return
    here = [rank.source for rank in report.ranks if (folder / rank.source).is_file()]
    (folder / "report.html").write_text(render_page(report, traces="", kept=here), "utf-8")
