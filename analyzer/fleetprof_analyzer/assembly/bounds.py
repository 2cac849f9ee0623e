"""Keeps a report within what its readers take: texts that can be shown, numbers of 64 bits, `MOST_REPORT_BYTES`.

Guarantees: a report within bounds is the same object; of one that is too long the ranks lose their iterations and
tables, and a problem says so; texts that are too long are cut. Raises ReportTooLong where that does not suffice.
"""

from typing import Any, Final

import msgspec
from fleetprof_api.errors import FleetprofError
from fleetprof_api.process.foreign_json import MOST_TEXT_BYTES, OutOfBounds, pass_door
from fleetprof_api.report.report import MOST_REPORT_BYTES, Problem, Report

from fleetprof_analyzer.trace.problems import ProblemKind

_SHORTENED_BYTES: Final = 4096
_MOST: Final = (1 << 62) - 1


class ReportTooLong(FleetprofError, ValueError):
    """The report would be longer than anybody reads; the message says by how much."""


def bound_report(report: Report) -> Report:
    """The report that readers get back from `report.json`."""
    data = msgspec.json.encode(report)
    if len(data) > MOST_REPORT_BYTES:
        report = _shorten(report, len(data))
        data = msgspec.json.encode(report)
    if len(data) > MOST_REPORT_BYTES:
        raise ReportTooLong(f"the report would have {len(data):,} bytes, {MOST_REPORT_BYTES:,} are allowed")
    try:
        shown = pass_door(data)
    except OutOfBounds:
        return msgspec.convert(_cut(msgspec.json.decode(data)), Report)
    return report if shown == data else msgspec.json.decode(shown, type=Report)


def _shorten(report: Report, size_bytes: int) -> Report:
    message = (
        f"it had {size_bytes:,} bytes of {MOST_REPORT_BYTES:,}: iterations and tables of single ranks are left out"
    )
    ranks = [
        msgspec.structs.replace(rank, iterations=[], device_series=[], device_work=[], idle_places=[], copies=[])
        for rank in report.ranks
    ]
    problem = Problem(kind=ProblemKind.REPORT_SHORTENED, message=message)
    return msgspec.structs.replace(report, ranks=ranks, hosts=[], problems=[*report.problems, problem])


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {_cut(key): _cut(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_cut(part) for part in value]
    if isinstance(value, str) and len(value.encode()) > MOST_TEXT_BYTES:
        return value[:_SHORTENED_BYTES]
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-_MOST, min(value, _MOST))
    if isinstance(value, float):
        return max(-1e90, min(value, 1e90))
    return value
