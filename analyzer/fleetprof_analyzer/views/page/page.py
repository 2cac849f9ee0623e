"""The report as one HTML page: the answer first; no script, no style attribute, nothing fetched, light and dark.

Guarantees: everything of a trace or request is escaped (jinja2 autoescape, svg.py); the content policy allows only this
page's own style sheet, by its hash; each chart has a text alternative, and its numbers stand in a table.
"""

import base64
import hashlib
from collections.abc import Collection
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Final

from fleetprof_api.quantities import amount, change, duration, rate, share, size
from fleetprof_api.report.report import Report, Series
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from fleetprof_analyzer.views import differences
from fleetprof_analyzer.views.answer.headline import describe
from fleetprof_analyzer.views.page import bars, distributions, links, modules, page_tables, plots
from fleetprof_analyzer.views.palette import style_report
from fleetprof_analyzer.views.text import PARTS, parts_of, plain, rank_name
from fleetprof_analyzer.views.words import ledger_words, module_words, straggler_words
from fleetprof_analyzer.views.words.causes_text import find_silences, list_causes
from fleetprof_analyzer.views.words.code_words import in_brackets
from fleetprof_analyzer.views.words.efficiency_words import list_efficiency, list_throughput
from fleetprof_analyzer.views.words.energy_words import list_energy
from fleetprof_analyzer.views.words.finding_words import say_finding
from fleetprof_analyzer.views.words.launches_text import add_copies, find_sampled
from fleetprof_analyzer.views.words.recording_words import describe_memory, judge_residue
from fleetprof_analyzer.views.words.tables_text import sort_peaks
from fleetprof_analyzer.views.words.window_words import list_unrecorded

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


def render_page(
    report: Report, traces: str | None = None, command: str = "", *, kept: Collection[str] | None = None
) -> str:
    """The whole page. Deterministic: the same report gives the same bytes.

    `traces`: the relative way from the page to the folder in which the ranks' sources lie, "" for its own; None where
    they do not lie beside it. `kept` are the sources that a trace was kept of, None: all. `command` is what shows this
    report again, for the hint about Perfetto.
    """
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
        traces=traces,
        kept=None if kept is None else frozenset(kept),
        fetch=links.fetch_command(report, traces, kept),
        perfetto=links.perfetto_command(report, command, kept),
        samples=_sample_charts(report),
        ledger=ledger_words,
        moment=_moment,
        bars=bars,
        differences=differences,
        efficiency=list_efficiency(report),
        energy=list_energy(report),
        throughput=list_throughput(report),
        distributions=distributions,
        plots=plots,
        late=straggler_words,
    )


@cache
def _template() -> tuple[Template, str]:
    folder = files("fleetprof_analyzer.views.page") / "templates"
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
        "rate": rate,
        "size": size,
    }
    environment.globals |= {
        "share": share,
        "causes": list_causes,
        "find_silences": find_silences,
        "list_unrecorded": list_unrecorded,
        "in_brackets": in_brackets,
        "legend_of_parts": _legend_of_parts,
        "say_finding": say_finding,
        "tabulate_communication": page_tables.tabulate_communication,
        "tabulate_idle": page_tables.tabulate_idle,
        "describe_iteration": module_words.describe_iteration,
        "draw_modules": modules.draw_modules,
        "list_remarks": module_words.list_remarks,
        "tabulate_modules": modules.tabulate_modules,
        "tabulate_launches": page_tables.tabulate_launches,
        "tabulate_ranks": page_tables.tabulate_ranks,
        "tabulate_stages": page_tables.tabulate_stages,
        "sort_peaks": sort_peaks,
        "add_copies": add_copies,
        "find_sampled": find_sampled,
        "describe_memory": describe_memory,
        "judge_residue": judge_residue,
    }
    return environment.get_template("report.html.j2"), style_report() + (folder / "report.css").read_text("utf-8")


def _moment(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if unix_ns > 0 else "–"


def _legend_of_parts(report: Report) -> list[tuple[str, str]]:
    """The colours that bars of this report show."""
    return [(name, words) for name, words in PARTS if any(getattr(total.time_ns, name) for total in report.totals)]


def _sample_charts(report: Report) -> list[tuple[str, str, Markup, list[tuple[str, str]]]]:
    """(quantity, whose, chart, legend) for every quantity that was sampled."""
    named: dict[tuple[str, str], list[tuple[str, Series]]] = {}
    for rank in report.ranks:
        for series in filter(_has_values, rank.device_series):
            named.setdefault((series.name, "device"), []).append((f"rank {rank_name(rank.rank)}", series))
    for host in report.hosts:
        for series in filter(_has_values, host.series):
            named.setdefault((series.name, "host"), []).append((host.host_name or "host", series))
    window = _window(report)
    return [
        (
            _QUANTITIES.get(name, name.replace("_", " ").capitalize()),
            whose,
            plots.series_chart(of_all, window),
            plots.legend([who for who, _ in of_all]),
        )
        for (name, whose), of_all in list(named.items())[:_MOST_CHARTS]
    ]


def _has_values(series: Series) -> bool:
    """Tells whether there is anything to see: a network that nobody used is an empty chart."""
    values = [value for value in series.values if value is not None]
    return any(values) or (bool(values) and series.unit == "%")


def _window(report: Report) -> tuple[int, int] | None:
    spans = [
        (rank.iterations[0].start_ns, rank.iterations[-1].start_ns + rank.iterations[-1].duration_ns)
        for rank in report.ranks
        if rank.iterations and rank.time_origin == "unix"
    ]
    return (min(begin for begin, _ in spans), max(end for _, end in spans)) if spans else None
