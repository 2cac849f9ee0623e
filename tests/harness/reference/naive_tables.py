"""Kernels, copies, launches and communication of a trace, counted row by row in plain Python."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from functools import cache
from itertools import pairwise
from statistics import pstdev

from fleetprof_analyzer.trace.classes import WorkClass, classify_kernel

from harness.reference.naive_events import GPU, RUNTIME, Row

class_of_kernel = cache(classify_kernel)


def device_rows(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.category in GPU]


def class_of(row: Row) -> WorkClass:
    return class_of_kernel(row.name) if row.category in ("kernel", "Kernel") else WorkClass.MEMORY


def naive_kernels(rows: list[Row]) -> dict[tuple[str, str], dict[str, float]]:
    """By (name, class)."""
    durations = defaultdict(list)
    for row in device_rows(rows):
        durations[row.name, class_of(row).name.lower()].append(row.end - row.start)
    return {
        key: {
            "count": len(values),
            "total_ns": sum(values),
            "min_ns": min(values),
            "max_ns": max(values),
            "mean_ns": sum(values) // len(values),
            "deviation_ns": pstdev(values),
            "p50_ns": sorted(values)[-(-len(values) * 50 // 100) - 1],
            "p99_ns": sorted(values)[-(-len(values) * 99 // 100) - 1],
        }
        for key, values in durations.items()
    }


def naive_copies(rows: list[Row]) -> dict[tuple[str, bool], tuple[int, int, int]]:
    """(count, time, bytes) by (direction, pageable)."""
    found: dict[tuple[str, bool], tuple[int, int, int]] = {}
    for row in device_rows(rows):
        if row.category in ("kernel", "Kernel"):
            continue
        key = ("memset", False)
        if row.category in ("gpu_memcpy", "Memcpy"):
            match = re.search(r"(H|Host|D|Device|P|Peer)[Tt]o(H|Host|D|Device|P|Peer)(?![a-z])", row.name)
            key = (f"{match[1][0]}to{match[2][0]}", "Pageable" in row.name) if match else ("other", False)
        count, time, size = found.get(key, (0, 0, 0))
        found[key] = (count + 1, time + row.end - row.start, size + int(row.args.get("bytes", 0)))
    return found


def naive_launches(rows: list[Row]) -> dict[str, int | None]:
    calls: dict[int, Row] = {}
    for row in sorted((r for r in rows if r.category in RUNTIME), key=lambda r: (r.start, r.start - r.end)):
        if row.correlation >= 0:
            calls.setdefault(row.correlation, row)
    work = device_rows(rows)
    launched = [(row, calls[row.correlation]) for row in work if row.correlation in calls]
    used = sorted(call.end - call.start for call in {id(call): call for _, call in launched}.values())
    delays = sorted(max(row.start - call.end, 0) for row, call in launched)
    longest = full = 0
    lengths = []
    for stream in {row.place for row, _ in launched}:
        waits = [(call.start, row.start) for row, call in launched if row.place == stream and row.start > call.start]
        changes = sorted([(begin, 1) for begin, _ in waits] + [(end, -1) for _, end in waits])
        waiting = before = 0
        begun, ends = [begin for begin, _ in sorted(waits)], sorted(end for _, end in waits)
        lengths += [bisect_right(begun, time) - bisect_right(ends, time) for time in begun]
        for time, change in changes:
            full += time - before if waiting >= 1024 else 0
            waiting, before = waiting + change, time
            longest = max(longest, waiting)

    def rank(values: list[int], percent: int) -> int:
        return values[-(-len(values) * percent // 100) - 1] if values else 0

    return {
        "launches": len(launched),
        "unlaunched": len(work) - len(launched),
        "calls": len(used),
        "call_p50_ns": rank(used, 50),
        "call_p99_ns": rank(used, 99),
        "delay_p50_ns": rank(delays, 50),
        "delay_p90_ns": rank(delays, 90),
        "delay_p99_ns": rank(delays, 99),
        "short": sum(row.end - row.start < call.end - call.start for row, call in launched),
        "slow_calls": sum(length > 10**6 for length in used),
        "longest_queue": longest,
        "queue_p50": rank(sorted(lengths), 50),
        "full_queue_ns": full,
        "maximum_shift_ns": sum(
            _naive_shift([row for row in work if row.place[0] == device], calls)
            for device in {row.place[0] for row in work}
        )
        if launched
        else None,
    }


def _naive_shift(work: list[Row], calls: dict[int, Row]) -> int:
    """The shift of one device: launch by launch, with every call and every row in sight."""
    busy: list[list[int]] = []
    for start, end in sorted((row.start, row.end) for row in work if row.end > row.start):
        if busy and start <= busy[-1][1]:
            busy[-1][1] = max(busy[-1][1], end)
        else:
            busy.append([start, end])
    gaps = {after[0]: after[0] - before[1] for before, after in pairwise(busy)}
    first: dict[int, int] = {}
    for row in work:
        if row.correlation in calls and row.end > row.start:
            first[row.correlation] = min(row.start, first.get(row.correlation, row.start))
    occupied = sorted((call.start, call.end) for call in calls.values())
    longest = max((end - start for start, end in occupied), default=0)
    shift, free_from = 0, None
    for call in sorted((calls[correlation] for correlation in first), key=lambda call: (call.start, call.end)):
        gap = gaps.pop(first[call.correlation], 0)
        if free_from is not None and gap:
            free, at = 0, free_from
            first_near = bisect_left(occupied, (free_from - longest, 0))
            for start, end in occupied[first_near : bisect_left(occupied, (call.start, 0))]:
                if start > at:
                    free += start - at
                if end > at:
                    at = end
            shift += min(gap, free + max(call.start - at, 0))
        free_from = max(free_from or 0, call.end)
    return shift


def naive_communication(rows: list[Row]) -> tuple[int, int, int]:
    """(count, time, time under compute of the same device) of all communication."""
    count = total = overlapped = 0
    for device in {row.place[0] for row in device_rows(rows)}:
        work = [(row, class_of(row)) for row in device_rows(rows) if row.place[0] == device]
        compute = sorted((row.start, row.end) for row, kind in work if kind == WorkClass.COMPUTE)
        longest = max((end - start for start, end in compute), default=0)
        for row in (row for row, kind in work if kind == WorkClass.COMMUNICATION):
            count, total = count + 1, total + row.end - row.start
            reached = row.start
            first = bisect_left(compute, (row.start - longest, 0))
            for start, end in compute[first : bisect_left(compute, (row.end, 0))]:
                overlapped += max(0, min(end, row.end) - max(start, reached))
                reached = max(reached, min(end, row.end))
    return count, total, overlapped
