"""Time that was not recorded, in words: one row for each reason.

Guarantees: pure; nothing where all was recorded.
"""

from typing import Final, NamedTuple

from fleetprof_api.report.report import KindTotal, UnrecordedReason

_WORDS: Final[dict[UnrecordedReason, str]] = {
    "paused": "nothing of host and devices was recorded, as between two cycles of the profiler; no part of the span",
    "work_missing": "work that was launched is not in the trace",
    "no_device_rows": "iterations of which the trace has no work of the device",
}


class UnrecordedRow(NamedTuple):
    """A reason in words, how long it was, and whether the span holds that time."""

    words: str
    time_ns: int
    in_span: bool


def list_unrecorded(total: KindTotal) -> list[UnrecordedRow]:
    """The rows of one kind of ranks, the longest first."""
    rows = [UnrecordedRow(_WORDS[one.reason], one.time_ns, one.reason != "paused") for one in total.unrecorded]
    return sorted(rows, key=lambda row: -row.time_ns)


def name_lost_work(total: KindTotal) -> str:
    """The main reason of the time in the span that was not recorded."""
    return next((row.words for row in list_unrecorded(total) if row.in_span), "")
