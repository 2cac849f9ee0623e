"""A line of the ledger in words: how far a rank came, when, and where it ran.

Guarantees: pure; says what the line holds; sizes and times as people read them.
"""

from typing import Final

from fleetprof_api.ledger import LedgerEntry
from fleetprof_api.quantities import duration, size
from fleetprof_api.report.report import Report

_STATES: Final = {"UPLOADED": "stored", "FAILED": "failed"}


def state_words(entry: LedgerEntry) -> str:
    """`stored`, `failed`, or the state as it is called."""
    return _STATES.get(str(entry.state), str(entry.state).lower())


def course(report: Report, entry: LedgerEntry) -> str:
    """`armed +1.2 s, started +3.4 s, …`: what was reached, counted from the order."""
    begin = entry.asked_unix_ns or (report.request.submitted_unix_ns if report.request else 0)
    steps = (
        ("armed", entry.armed_unix_ns),
        ("started", entry.started_unix_ns),
        ("written", entry.written_unix_ns),
        ("stored", entry.uploaded_unix_ns),
    )
    return ", ".join(f"{words} {_since(at - begin)}" for words, at in steps if at and begin)


def trace_words(entry: LedgerEntry) -> str:
    """`19.0 MB, stored as 1.20 MB`."""
    if not entry.trace_bytes and not entry.compressed_bytes:
        return ""
    stored = f"stored as {size(entry.compressed_bytes)}" if entry.compressed_bytes else ""
    return ", ".join(part for part in (size(entry.trace_bytes) if entry.trace_bytes else "", stored) if part)


def where(entry: LedgerEntry) -> str:
    """Node, pod and process."""
    names = [name for name in (entry.node_name, entry.pod_name) if name]
    return " / ".join(names) + (f" pid {entry.pid}" if entry.pid else "")


def _since(elapsed_ns: int) -> str:
    return f"+{duration(elapsed_ns)}" if elapsed_ns >= 0 else duration(elapsed_ns)
