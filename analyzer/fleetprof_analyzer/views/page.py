"""The report as one HTML page: no script, no style attribute, nothing from elsewhere, light and dark.

Guarantees: everything of a trace or request is escaped (jinja2 autoescape, svg.py); the content policy allows only this
page's own style sheet, by its hash; each chart has a text alternative, and its numbers stand in a table.
"""

import base64
import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Final

from fleetprof_api.ledger import LedgerEntry
from fleetprof_api.report import Rank, Report, Series
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from fleetprof_analyzer.views import bars, differences, distributions, plots, straggler_words
from fleetprof_analyzer.views.causes_text import CAUSES, add_iterations, add_stages, list_causes, list_silences
from fleetprof_analyzer.views.headline import describe
from fleetprof_analyzer.views.launches_text import add_copies, find_sampled
from fleetprof_analyzer.views.recording_words import describe_memory, judge_residue
from fleetprof_analyzer.views.tables_text import sort_peaks
from fleetprof_analyzer.views.text import amount, change, duration, parts_of, plain, rank_name, share, size

_MOST_CHARTS: Final = 12
_LONG_TABLE: Final = 24
_QUANTITIES: Final = {
    "sm_active": "SM active",
    "sm_occupancy": "SM occupancy",
    "sm_clock": "SM clock",
    "dram_active": "DRAM active",
    "cpu_busy": "CPU busy",
    "infiniband_received": "InfiniBand received",
    "infiniband_sent": "InfiniBand sent",
}


def render_page(report: Report) -> str:
    """The whole page. Deterministic: the same report gives the same bytes."""
    template, style = _template()
    policy = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return template.render(
        report=report,
        style=Markup(style),  # noqa: S704  our own file
        policy=f"default-src 'none'; style-src 'sha256-{policy}'; base-uri 'none'; form-action 'none'",
        headline=describe(report),
        long_table=_LONG_TABLE,
        overlapping=any(total.time_ns.overlapped_communication for total in report.totals),
        devices=sorted({rank.device_name for rank in report.ranks if rank.device_name}),
        median_ns=_median,
        samples=_sample_charts(report),
        since=lambda entry, at: _since(report, entry, at),
        moment=_moment,
        bars=bars,
        differences=differences,
        distributions=distributions,
        plots=plots,
        late=straggler_words,
    )


@cache
def _template() -> tuple[Template, str]:
    folder = files("fleetprof_analyzer") / "templates"
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: (folder / name).read_text("utf-8")),
    )
    environment.filters |= {
        "amount": amount,
        "change": change,
        "duration": duration,
        "parts": parts_of,
        "plain": plain,
        "rank": rank_name,
        "size": size,
    }
    environment.globals |= {
        "share": share,
        "causes": list_causes,
        "add_stages": add_stages,
        "list_silences": list_silences,
        "add_iterations": add_iterations,
        "cause_names": CAUSES,
        "sort_peaks": sort_peaks,
        "add_copies": add_copies,
        "find_sampled": find_sampled,
        "describe_memory": describe_memory,
        "judge_residue": judge_residue,
    }
    return environment.get_template("report.html.j2"), (folder / "report.css").read_text("utf-8")


def _median(rank: Rank) -> int | None:
    durations = [iteration.duration_ns for iteration in rank.iterations]
    return int(median(durations)) if durations else None


def _moment(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if unix_ns > 0 else "–"


def _since(report: Report, entry: LedgerEntry, at: int) -> str:
    """Time from the order to `at`; a dash where it was not reached."""
    begin = entry.asked_unix_ns or (report.request.submitted_unix_ns if report.request else 0)
    if not at or not begin:
        return "–"
    return f"+{duration(at - begin)}" if at >= begin else duration(at - begin)


def _sample_charts(report: Report) -> list[tuple[str, str, Markup]]:
    """(quantity, whose, chart) for every quantity that was sampled."""
    named: dict[tuple[str, str], list[tuple[str, Series]]] = {}
    for rank in report.ranks:
        for series in rank.device_series:
            named.setdefault((series.name, "device"), []).append((f"rank {rank_name(rank.rank)}", series))
    for host in report.hosts:
        for series in host.series:
            named.setdefault((series.name, "host"), []).append((host.host_name or "host", series))
    window = _window(report)
    return [
        (_QUANTITIES.get(name, name.replace("_", " ").capitalize()), whose, plots.series_chart(of_all, window))
        for (name, whose), of_all in list(named.items())[:_MOST_CHARTS]
    ]


def _window(report: Report) -> tuple[int, int] | None:
    spans = [
        (rank.iterations[0].start_ns, rank.iterations[-1].start_ns + rank.iterations[-1].duration_ns)
        for rank in report.ranks
        if rank.iterations and rank.time_origin == "unix"
    ]
    return (min(begin for begin, _ in spans), max(end for _, end in spans)) if spans else None
