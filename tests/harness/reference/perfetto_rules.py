"""The rules by which Perfetto's trace processor reads Trace Event Format, so far as a merged trace can break them.

After its JSON importer: times are doubles of µs, never below zero; a thread is known by its number alone; slices of a
thread nest, or are dropped; an arrow joins the slices around its ends by id, category and name.
"""

import json
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Imported:
    """The trace as Perfetto would show it. Times are ns; `arrows` hold (from, to) as slices."""

    slices: list[dict[str, Any]] = field(default_factory=list)
    arrows: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    processes: dict[int, str] = field(default_factory=dict)
    order: dict[int, int] = field(default_factory=dict)
    threads: dict[int, str] = field(default_factory=dict)
    owner: dict[int, int] = field(default_factory=dict)
    instants: list[dict[str, Any]] = field(default_factory=list)
    counters: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[dict[str, Any]] = field(default_factory=list)
    top_level: dict[str, Any] = field(default_factory=dict)

    def named(self, name: str) -> list[dict[str, Any]]:
        """Slices of this name, by time."""
        return sorted((one for one in self.slices if one["name"] == name), key=lambda one: one["start_ns"])

    def of_process(self, name: str) -> list[dict[str, Any]]:
        """Slices of the processes of this name."""
        return [one for one in self.slices if self.processes.get(one["pid"]) == name]


def import_trace(text: bytes) -> Imported:
    """Reads a document; what Perfetto refuses fails an assertion."""
    document = json.loads(text)
    found = Imported(top_level={key: value for key, value in document.items() if key != "traceEvents"})
    timed = []
    for event in document["traceEvents"]:
        assert isinstance(event, dict)
        phase, pid, tid = event["ph"], event["pid"], event["tid"]
        assert all(type(number) is int and 0 < number < 1 << 32 for number in (pid, tid)), event
        assert found.owner.setdefault(tid, pid) == pid, f"thread {tid} is in two processes"
        if phase == "M":
            _name(found, event)
        else:
            timed.append({**event, "start_ns": _nanoseconds(event["ts"])})
    by_thread: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for event in timed:
        if event["ph"] == "X":
            event["duration_ns"] = _nanoseconds(event["dur"])
            event["end_ns"] = event["start_ns"] + event["duration_ns"]
            by_thread[event["tid"]].append(event)
        elif event["ph"] == "C":
            found.counters.append(event)
        elif event["ph"] == "i":
            found.instants.append(event)
    for tid, slices in by_thread.items():
        by_thread[tid] = _nest(found, slices)
    _join(found, [event for event in timed if event["ph"] in "sf"], by_thread)
    return found


def _nanoseconds(number: Any) -> int:
    """As a double of µs, which must hold the exact time."""
    value = float(number)
    assert 0 <= value < 1 << 53
    return round(value * 1000)


def _name(found: Imported, event: dict[str, Any]) -> None:
    args = event.get("args")
    if not isinstance(args, dict):
        return  # Perfetto counts it and goes on
    if event["name"] == "process_name":
        assert found.processes.setdefault(event["pid"], args["name"]) == args["name"]
    elif event["name"] == "process_sort_index":
        found.order[event["pid"]] = args["sort_index"]
    elif event["name"] == "thread_name":
        found.threads[event["tid"]] = args.get("name", "")


def _nest(found: Imported, slices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The slices that nest, by start; each knows the one around it."""
    kept: list[dict[str, Any]] = []
    stack: list[dict[str, Any]] = []
    for one in sorted(slices, key=lambda one: (one["start_ns"], -one["duration_ns"])):
        while stack and stack[-1]["end_ns"] <= one["start_ns"]:
            stack.pop()
        if stack and one["end_ns"] > stack[-1]["end_ns"]:
            found.dropped.append(one)
            continue
        one["around"] = stack[-1] if stack else None
        stack.append(one)
        kept.append(one)
    found.slices += kept
    return kept


def _join(found: Imported, ends: list[dict[str, Any]], by_thread: dict[int, list[dict[str, Any]]]) -> None:
    begun: dict[Any, dict[str, Any]] = {}
    starts = {tid: [one["start_ns"] for one in slices] for tid, slices in by_thread.items()}
    for event in sorted(ends, key=lambda one: (one["start_ns"], one["ph"] != "s")):
        at = bisect_right(starts.get(event["tid"], []), event["start_ns"]) - 1
        innermost = by_thread[event["tid"]][at] if at >= 0 else None
        while innermost is not None and innermost["end_ns"] < event["start_ns"]:
            innermost = innermost["around"]
        if innermost is None:
            continue
        key = (event["id"], event.get("cat"), event["name"])
        if event["ph"] == "s":
            begun[key] = innermost
        elif key in begun:
            found.arrows.append((begun[key], innermost))
