"""The headline figures of a report: columns, rows, sort orders and facets of the fleet follow from this table.

Guarantees: pure; texts are cut, without control characters, and fit their columns; integers fit 64 bits, so that no
head of a report can make a statement fail.
"""

from dataclasses import dataclass
from typing import Any, Final

from fleetprof_api.plain_text import make_printable
from fleetprof_api.slices.head import Figures
from sqlalchemy import BigInteger, Integer, String, Text

UNKNOWN: Final = -1
"""A figure that is not known, in columns that lists are sorted by: NULL has no place in a keyset."""
_MOST: Final = (1 << 63) - 1
_MOST_INTEGER: Final = (1 << 31) - 1

ColumnType = BigInteger | Integer | String


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """A field of `Figures`, and its column.

    `sort`, `facet`: its name where the fleet can be sorted or filtered by it.
    """

    name: str
    column: ColumnType
    sort: str = ""
    facet: str = ""

    @property
    def copied(self) -> bool:
        """Tells whether a workload has it too, of its last report, so that lists are sorted and counted by an index."""
        return bool(self.sort or self.facet)

    @property
    def absent(self) -> int | str:
        """Its value in a workload without a report."""
        return UNKNOWN if isinstance(self.column, Integer) else ""

    def write(self, figures: Figures) -> int | str:
        """Its value as the column holds it; numbers in a list are joined by commas."""
        value = getattr(figures, self.name)
        if isinstance(self.column, Integer):
            return number(value, _MOST if isinstance(self.column, BigInteger) else _MOST_INTEGER)
        shown = ",".join(map(str, value)) if isinstance(value, list) else value
        return text(shown, self.column.length or _MOST_SENTENCE)

    def read(self, value: Any) -> Any:
        """The field of the answer, of the column's value."""
        if self.name == "stragglers":
            return [int(rank) for rank in value.split(",") if rank.isdecimal()]
        return known(value) if self.name in _MAY_BE_UNKNOWN else value


def known(value: int) -> int | None:
    """A figure of the catalog as it is sent."""
    return None if value == UNKNOWN else value


def number(value: int | None, most: int = _MOST) -> int:
    """An integer as a column holds it."""
    return UNKNOWN if value is None else max(UNKNOWN, min(value, most))


def text(value: str, most: int) -> str:
    """A text as a column of this length holds it."""
    shown = make_printable(value[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


_MOST_SENTENCE: Final = 2048
_MAY_BE_UNKNOWN: Final = frozenset(
    {
        *("busy_permille", "exposed_communication_permille", "iteration_ns", "power_mw"),
        *("rank_samples_per_ks", "model_utilization_permille"),
    }
)
FIGURES: Final = (
    ReportFigure("busy_permille", Integer(), sort="busy"),
    ReportFigure("exposed_communication_permille", Integer(), sort="exposed"),
    ReportFigure("iteration_ns", BigInteger(), sort="iteration"),
    ReportFigure("power_mw", BigInteger(), sort="power"),
    ReportFigure("rank_samples_per_ks", BigInteger(), sort="samples"),
    ReportFigure("model_utilization_permille", Integer(), sort="mfu"),
    ReportFigure("gain_permille", Integer(), sort="gain"),
    ReportFigure("rank_count", Integer(), sort="ranks"),
    ReportFigure("gpu", String(128), facet="gpu"),
    ReportFigure("top_finding", String(64), facet="finding"),
    ReportFigure("top_finding_permille", Integer()),
    ReportFigure("kind", String(8)),
    ReportFigure("torch_version", String(64)),
    *(
        ReportFigure(f"{part}_ns", BigInteger())
        for part in ("span", "compute", "overlapped_communication", "exposed_communication", "exposed_memory", "idle")
    ),
    ReportFigure("verdict", String(32)),
    ReportFigure("stragglers", String(128)),
    ReportFigure("sentence", Text()),
)


def read_figures(row: Any) -> Figures:
    """The figures of a row that has each column of `reports` with `report_` before its name."""
    return Figures(**{figure.name: figure.read(getattr(row, f"report_{figure.name}")) for figure in FIGURES})
