"""The result of `fleetprof.load`: one report, its tables, and the way to its traces.

Guarantees: it shows the report's answer first; nothing is computed anew: every number is the report's; text of traces
is shown without control characters, and as text in a notebook.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fleetprof_analyzer.views.answer.headline import describe
from fleetprof_analyzer.words.findings import say_finding
from fleetprof_analyzer.words.text import plain
from fleetprof_api.quantities import share
from fleetprof_api.report.report import Report

from fleetprof.places import Place
from fleetprof.tables import Tables

if TYPE_CHECKING:
    from hta.trace_analysis import TraceAnalysis

_MOST_FINDINGS: Final = 5


class Profile:
    """One report. `report` is it whole, `tables` are its tables, `place` is where its traces lie."""

    def __init__(self, report: Report, place: Place) -> None:
        self.report = report
        self.place = place
        self.tables = Tables(report)

    @property
    def findings(self) -> Any:
        """The findings, the largest gain first: a DataFrame, docs/tables.md."""
        return self.tables["findings"]

    @property
    def stragglers(self) -> Any:
        """The ranks that the others wait for, in order: a DataFrame, docs/tables.md.

        Whether there are any, and what else there is, tells `report.stragglers.verdict`.
        """
        return self.tables["stragglers"]

    def write_tables(self, folder: str | Path) -> list[Path]:
        """Writes the tables as Parquet files, `<table>.parquet`; the files. Raises PyArrowMissing, OSError."""
        from fleetprof_analyzer.views.parquet import write_tables

        return write_tables(self.report, Path(folder))

    def to_hta(self, folder: str | Path) -> dict[int, Path]:
        """Makes a folder that HTA opens as it is: one trace per rank, linked or copied; the files by rank.

        See `fleetprof.hta.export_traces` for what is left out, and what is raised.
        """
        from fleetprof.hta import export_traces

        return export_traces(self.report, self.place, Path(folder))

    def open_in_hta(
        self, folder: str | Path | None = None, *, include_last_profiler_step: bool = True
    ) -> TraceAnalysis:
        """These traces in Meta's HTA. `folder` keeps what HTA reads; by default it goes with the returned object.

        HTA leaves out the last ProfilerStep unless told otherwise; here it is told. Raises as `to_hta`, and ImportError
        with what to install.
        """
        from fleetprof.hta import open_analysis

        where = None if folder is None else Path(folder)
        return open_analysis(self.report, self.place, where, include_last_profiler_step=include_last_profiler_step)

    def __repr__(self) -> str:
        answer = describe(self.report).answer
        lines = [self._title(), f"  {answer.sentence}", *(f"  - {sentence}" for sentence in answer.evidence)]
        lines += [f"  {gain:>7} at most: {message}" for gain, message in self._first_findings()]
        return "\n".join([*lines, f"  .tables: {', '.join(self._filled())}"])

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        parts = [f"<h4>{html.escape(self._title())}</h4>"]
        answer = describe(self.report).answer
        parts.append(f"<p><strong>{html.escape(answer.sentence)}</strong></p>")
        if answer.evidence:
            parts.append(f"<ul>{''.join(f'<li>{html.escape(sentence)}</li>' for sentence in answer.evidence)}</ul>")
        if answer.next_step:
            parts.append(f"<p>What to try: {html.escape(answer.next_step)}.</p>")
        rows = [
            f"<tr><td style='text-align: right'>{html.escape(gain)}</td><td style='text-align: left'>"
            f"{html.escape(message)}</td></tr>"
            for gain, message in self._first_findings()
        ]
        if rows:
            parts.append(f"<table><tr><th>at most</th><th>finding</th></tr>{''.join(rows)}</table>")
        tables = ", ".join(f"<code>{name}</code>" for name in self._filled())
        return "".join([*parts, f"<p><code>.tables</code>: {tables}</p>"])

    def _title(self) -> str:
        return f"{plain(self.report.title) or 'report'}: {len(self.report.ranks)} ranks, from {self.place.address}"

    def _first_findings(self) -> list[tuple[str, str]]:
        """(gain, message) of those worth most."""
        return [
            (share(finding.gain_permille, 1000) if finding.gain_permille else "-", say_finding(finding))
            for finding in self.report.findings[:_MOST_FINDINGS]
        ]

    def _filled(self) -> list[str]:
        return [name for name in self.tables if self.tables.rows(name)]
