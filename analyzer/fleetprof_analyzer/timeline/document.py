"""The merged trace as text: Trace Event Format, as Kineto writes it, one event per line.

Guarantees: pure; valid JSON whatever the names hold; own marks have the category `fleetprof`, so that no reader takes
them for work.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from fleetprof_analyzer.timeline.events.copies import microseconds
from fleetprof_analyzer.timeline.events.marks import Mark
from fleetprof_analyzer.timeline.events.numbering import Numbers

CATEGORY: Final = "fleetprof"


def begin_document(head: dict[str, Any]) -> bytes:
    """Everything up to the list of events."""
    fields = {"schemaVersion": 1, "displayTimeUnit": "ms", **head}
    return msgspec.json.encode(fields)[:-1] + b', "traceEvents": [\n'


def end_document(facts: dict[str, Any]) -> bytes:
    """Everything after it: what is cut, from where, and how well the clocks are tied."""
    return b'\n], "fleetprof": %s}\n' % msgspec.json.encode(facts)


def name_process(pid: int, name: str, labels: str, sort_index: int) -> Iterator[bytes]:
    """Metadata events of one process."""
    yield _describe("process_name", pid, pid, {"name": name})
    yield _describe("process_labels", pid, pid, {"labels": labels})
    yield _describe("process_sort_index", pid, pid, {"sort_index": sort_index})


def name_thread(pid: int, tid: int, name: str, sort_index: int | None = None) -> Iterator[bytes]:
    """Metadata events of one thread."""
    yield _describe("thread_name", pid, tid, {"name": name})
    if sort_index is not None:
        yield _describe("thread_sort_index", pid, tid, {"sort_index": sort_index})


def _describe(event: str, pid: int, tid: int, args: dict[str, str | int]) -> bytes:
    return msgspec.json.encode({"ph": "M", "name": event, "ts": 0, "pid": pid, "tid": tid, "args": args})


def draw_marks(marks: Iterable[Mark], numbers: Numbers, pid: int, shift_ns: int) -> Iterator[bytes]:
    """Marks as events of a process of their own, one thread per track, in the order in which tracks are met.

    A mark that begins before the time 0 of the document is left out.
    """
    tracks: dict[str, int] = {}
    for mark in marks:
        begin = mark.start_ns + shift_ns
        if begin < 0 or mark.duration_ns < 0:
            continue
        tid = tracks.get(mark.track)
        if tid is None:
            tid = tracks[mark.track] = numbers.take()
            yield from name_thread(pid, tid, mark.track, len(tracks))
        yield msgspec.json.encode(
            {
                "ph": "X",
                "cat": CATEGORY,
                "name": mark.name,
                "pid": pid,
                "tid": tid,
                "ts": msgspec.Raw(microseconds(begin)),
                "dur": msgspec.Raw(microseconds(mark.duration_ns)),
                "args": mark.args,
            }
        )
