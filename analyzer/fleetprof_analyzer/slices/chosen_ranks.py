"""The ranks that a slice has room for. Pure."""

from fleetprof_api.report.report import Rank, Report


def choose_ranks(report: Report, most: int) -> list[Rank]:
    """At most so many, in the order of the report: those that the verdict names, and of the others the first ones."""
    if len(report.ranks) <= most:
        return list(report.ranks)
    named = list_late(report)
    first = sorted(range(len(report.ranks)), key=lambda place: (report.ranks[place].rank not in named, place))
    return [report.ranks[place] for place in sorted(first[:most])]


def list_late(report: Report) -> set[int | None]:
    """The ranks that the verdict names."""
    return set() if report.stragglers is None else {one.rank for one in report.stragglers.ranks}
