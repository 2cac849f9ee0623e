"""The headline figures of a report: columns, rows, sort orders and facets of the fleet follow from this table.

Guarantees: pure; texts of traces are cut, without control characters, and fit their columns; integers fit 64 bits, so
that no report can make a statement fail.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from fleetprof_analyzer.views.answer.answer import give_answer
from fleetprof_api.plain_text import make_printable
from fleetprof_api.report.report import KindTotal, Report
from sqlalchemy import BigInteger, Integer, String, Text

from fleetprof_webui.models.fleet import Figures
from fleetprof_webui.reports.figures import find_iteration_ns, find_power_mw, measured_ranks

UNKNOWN: Final = -1
"""A figure that is not known, in columns that lists are sorted by: NULL has no place in a keyset."""
_MOST: Final = (1 << 63) - 1
_MOST_STRAGGLERS: Final = 8

ColumnType = BigInteger | Integer | String


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """A field of `models.fleet.Figures`, its column, and its value in a report.

    `sort`, `facet`: its name where the fleet can be sorted or filtered by it. `read` makes the field of the column.
    """

    name: str
    column: ColumnType
    measure: Callable[[Report], int | str]
    sort: str = ""
    facet: str = ""
    read: Callable[[Any], Any] = lambda value: value

    @property
    def copied(self) -> bool:
        """Tells whether a workload has it too, of its last report, so that lists are sorted and counted by an index."""
        return bool(self.sort or self.facet)

    @property
    def absent(self) -> int | str:
        """Its value in a workload without a report."""
        return UNKNOWN if isinstance(self.column, Integer) else ""


def known(value: int) -> int | None:
    """A figure of the catalog as it is sent."""
    return None if value == UNKNOWN else value


def permille(part: int, whole: int) -> int:
    """A share of what is known."""
    return min(1000, max(0, round(1000 * part / whole))) if whole > 0 else UNKNOWN


def number(value: int | None) -> int:
    """An integer as a column holds it."""
    return UNKNOWN if value is None else max(UNKNOWN, min(value, _MOST))


def text(value: str, most: int) -> str:
    """A text as a column of this length holds it."""
    shown = make_printable(value[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _total(report: Report) -> KindTotal | None:
    return report.totals[0] if report.totals else None


def _part_of_time(part: str) -> Callable[[Report], int]:
    return lambda report: number(getattr(total.time_ns, part) if (total := _total(report)) else 0)


def _busy(report: Report) -> int:
    if (total := _total(report)) is None:
        return UNKNOWN
    return permille(total.time_ns.span - total.time_ns.idle - total.time_ns.unrecorded, total.time_ns.span)


def _exposed_communication(report: Report) -> int:
    total = _total(report)
    return permille(total.time_ns.exposed_communication, total.time_ns.span) if total else UNKNOWN


def _iteration(report: Report) -> int:
    return number(find_iteration_ns(report))


def _power(report: Report) -> int:
    return number(find_power_mw(report))


def _gain(report: Report) -> int:
    return min(1000, max(0, round(1000 * report.stragglers.gain))) if report.stragglers else 0


def _kind(report: Report) -> str:
    return total.kind if (total := _total(report)) else ""


def _gpu(report: Report) -> str:
    names = (rank.device_name for rank in measured_ranks(report))
    return text(_most_frequent(names), 128) if _kind(report) == "gpu" else ""


def _torch_version(report: Report) -> str:
    return text(_most_frequent(rank.torch_version for rank in measured_ranks(report)), 64)


def _top_finding(report: Report) -> str:
    return text(report.findings[0].kind, 64) if report.findings else ""


def _stragglers(report: Report) -> str:
    late = report.stragglers
    return ",".join(str(one.rank) for one in late.ranks[:_MOST_STRAGGLERS])[:128] if late else ""


def _most_frequent(texts: Iterable[str]) -> str:
    counted = Counter(each for each in texts if each)
    return counted.most_common(1)[0][0] if counted else ""


FIGURES: Final = (
    ReportFigure("busy_permille", Integer(), _busy, sort="busy", read=known),
    ReportFigure("exposed_communication_permille", Integer(), _exposed_communication, sort="exposed", read=known),
    ReportFigure(
        "iteration_ns", BigInteger(), lambda report: number(find_iteration_ns(report)), sort="iteration", read=known
    ),
    ReportFigure("power_mw", BigInteger(), lambda report: number(find_power_mw(report)), sort="power", read=known),
    ReportFigure("gain_permille", Integer(), _gain, sort="gain"),
    ReportFigure("rank_count", Integer(), lambda report: len(report.ranks), sort="ranks"),
    ReportFigure("gpu", String(128), _gpu, facet="gpu"),
    ReportFigure("top_finding", String(64), _top_finding, facet="finding"),
    ReportFigure("kind", String(8), _kind),
    ReportFigure("torch_version", String(64), _torch_version),
    *(
        ReportFigure(f"{part}_ns", BigInteger(), _part_of_time(part))
        for part in ("span", "compute", "overlapped_communication", "exposed_communication", "exposed_memory", "idle")
    ),
    ReportFigure(
        "verdict", String(32), lambda report: report.stragglers.verdict if report.stragglers else "not_judged"
    ),
    ReportFigure(
        "stragglers", String(128), _stragglers, read=lambda ranks: [int(rank) for rank in ranks.split(",") if rank]
    ),
    ReportFigure("sentence", Text(), lambda report: text(give_answer(report).sentence, 2048)),
)


def read_figures(row: Any) -> Figures:
    """The figures of a row that has each column of `reports` with `report_` before its name."""
    return Figures(**{figure.name: figure.read(getattr(row, f"report_{figure.name}")) for figure in FIGURES})
