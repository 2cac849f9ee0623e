"""The choice of ranks that are cut: the wanted ones, else those that the report points at and one to compare with.

Guarantees: pure; the default is all of a small job's traces and at most `MOST`, which Perfetto opens at ease.
"""

from collections.abc import Collection, Sequence
from typing import Final

from fleetprof_api.report.report import Rank, Report

from fleetprof_analyzer.timeline.window import NoSuchPart

MOST: Final = 8
_SMALL: Final = 4
_MOST_SAID: Final = 16


def choose_traces(report: Report, wanted: Sequence[int] | None, sources: Collection[str]) -> list[Rank]:
    """Entries of the report whose trace is among `sources`, in rank order. Raises NoSuchPart."""
    here = [entry for entry in report.ranks if entry.source in sources]
    if not here:
        raise NoSuchPart("there is no trace to cut: none was stored, or none holds anything; the report says why")
    if wanted is None:
        numbers = set() if len(here) <= _SMALL else _interesting(report, here)
        chosen = [entry for entry in here if entry.rank in numbers] if numbers else here
        return chosen[:MOST]
    missing = sorted(set(wanted) - {entry.rank for entry in here})
    if missing:
        raise NoSuchPart(f"there is no trace of {_some(missing)}: {_there(here)}")
    return [entry for entry in here if entry.rank in set(wanted)]


def _interesting(report: Report, here: Sequence[Rank]) -> set[int]:
    """The suspects first; then who waited least and who waited as most do; then who stands out in a finding."""
    known = {entry.rank for entry in here}
    stragglers = [] if report.stragglers is None else [one.rank for one in report.stragglers.ranks]
    ordered = [*stragglers, *report.whole_traces, *(rank for one in report.findings for rank in one.ranks)]
    numbers = list(dict.fromkeys(number for number in ordered if number in known))[:MOST]
    # The last of them makes room for one to compare with.
    reference = next((number for number in report.whole_traces if number in known and number not in stragglers), None)
    if reference is not None and reference not in numbers:
        numbers[-1:] = [reference]
    return set(numbers)


def _there(here: Sequence[Rank]) -> str:
    numbers = [entry.rank for entry in here if entry.rank is not None]
    return f"there are {_some(numbers)}" if numbers else "no trace says which rank it is"


def _some(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_MOST_SAID]))
    return f"rank{'s' if len(numbers) > 1 else ''} {shown}{' …' if len(numbers) > _MOST_SAID else ''}"
