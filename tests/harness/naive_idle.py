"""Why a GPU was idle, the slow and plain way: every gap by itself, every piece of it by looking at each row."""

import itertools
import re
from collections import Counter, defaultdict

from fleetprof_analyzer.classes import is_data_loading, is_host_annotation
from naive_events import COPIES, GPU, OPERATORS, RUNTIME, Row

BUCKET_NS = 50_000
ALLOCATION = re.compile(
    r"^(cuda|hip|cu)(Malloc|Free|Host(Alloc|Free|Register|Unregister|Malloc)"
    r"|Mem(Alloc|Free|Create|Map|Unmap|Release|SetAccess|AddressReserve|AddressFree|HostAlloc))"
)
BLOCKING_COPIES = {
    f"{api}Memcpy{form}" for api in ("cuda", "hip") for form in ("", "2D", "3D", "ToSymbol", "FromSymbol", "WithStream")
}


def host_level(row: Row, copy_ends: dict[int, int]) -> int | None:
    """0 data, 1 blocking, 2 allocation, 3 optimizer, 4 other calls, 5 operators, None: explains nothing."""
    if row.category in RUNTIME:
        copies = re.match(r"(cuda|hip|cu)Memcpy", row.name) is not None
        if copies and row.correlation in copy_ends and row.end >= copy_ends[row.correlation]:
            return 1
        if is_data_loading(row.name):
            return 0
        if row.name.startswith(("Optimizer.step#", "Optimizer.zero_grad#")):
            return 3
        if "Synchronize" in row.name or row.name in BLOCKING_COPIES:
            return 1
        return 2 if ALLOCATION.match(row.name) else 4
    if is_data_loading(row.name):
        return 0
    if row.name.startswith(("Optimizer.step#", "Optimizer.zero_grad#")):
        return 3
    return 5 if row.category in OPERATORS and not is_host_annotation(row.name) else None


class Thread:
    """The rows of one thread that explain something, findable by time."""

    def __init__(self) -> None:
        self.buckets: dict[int, list[tuple[int, int, int]]] = defaultdict(list)

    def add(self, start: int, end: int, level: int) -> None:
        for bucket in range(start // BUCKET_NS, end // BUCKET_NS + 1):
            self.buckets[bucket].append((start, end, level))

    def between(self, start: int, end: int) -> set[tuple[int, int, int]]:
        near = set()
        for bucket in range(start // BUCKET_NS, end // BUCKET_NS + 1):
            near |= {row for row in self.buckets.get(bucket, ()) if row[0] < end and row[1] > start}
        return near


def naive_idle(rows: list[Row]) -> dict[str, Counter]:
    """Causes by device, with the names of IdleCauses."""
    calls: dict[int, Row] = {}
    for row in sorted((r for r in rows if r.category in RUNTIME), key=lambda r: (r.start, r.start - r.end)):
        if row.correlation >= 0:
            calls.setdefault(row.correlation, row)
    copy_ends: dict[int, int] = {}
    for row in rows:
        if row.category in COPIES and row.correlation >= 0:
            copy_ends[row.correlation] = max(copy_ends.get(row.correlation, 0), row.end)
    threads: dict[tuple[str, str], Thread] = defaultdict(Thread)
    recorded = set()
    for row in rows:
        if row.category in GPU:
            continue
        if row.category not in RUNTIME:
            recorded.add(row.place[0])
        level = host_level(row, copy_ends)
        if level is not None and row.end > row.start:
            threads[row.place].add(row.start, row.end, level)
    devices: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.category in GPU:
            devices[row.place[0]].append(row)
    return {name: causes_of(work, calls, threads, recorded) for name, work in devices.items()}


def causes_of(work: list[Row], calls: dict[int, Row], threads: dict[tuple[str, str], Thread], recorded: set) -> Counter:
    launching = {calls[row.correlation].place for row in work if row.correlation in calls}
    first, last = min(row.start for row in work), max(row.end for row in work)
    work = sorted((row for row in work if row.end > row.start), key=lambda row: row.start)
    gaps = []
    reached = first
    for row in work:
        if row.start > reached:
            gaps.append((reached, row.start))
        reached = max(reached, row.end)
    at: dict[int, list[Row]] = defaultdict(list)
    for row in work:
        at[row.start].append(row)
    ended = []
    for begin, end in gaps:
        row = min(
            at[end],
            key=lambda r: (calls[r.correlation].start if r.correlation in calls else 1 << 62, r.correlation),
        )
        ended.append((begin, end, calls.get(row.correlation)))
    delays = sorted(max(end - call.end, 0) for begin, end, call in ended if call and call.start >= begin)
    limit = delays[-(-len(delays) * 9 // 10) - 1] if delays else 5000
    limit = min(max(limit, 5000), 20000)
    causes: Counter = Counter(unknown=last - reached)
    for begin, end, call in ended:
        if call is None:
            causes["unknown"] += end - begin
            continue
        late = (begin, min(max(call.start, begin), end))
        inside = (max(begin, call.start), min(end, call.end))
        after = (max(begin, call.end), end)
        if inside[1] > inside[0]:
            causes["launching"] += inside[1] - inside[0]
        waited = max(after[1] - after[0], 0)
        if call.start >= begin:
            causes["launching"] += min(waited, limit)
            causes["waiting"] += waited - min(waited, limit)
        else:
            causes["waiting"] += waited
            causes["waiting_short"] += waited if end - begin <= limit else 0
        split_late(causes, late, call.place, launching, threads, recorded)
    return causes


def split_late(causes: Counter, late, place, launching, threads, recorded) -> None:
    begin, end = late
    if end <= begin:
        return
    own = threads[place].between(begin - 1, end)
    drained = any(level == 1 and (start <= begin < stop or start <= begin - 1 < stop) for start, stop, level in own)
    others = set()
    for thread in launching:
        others |= threads[thread].between(begin, end)
    cuts = sorted({begin, end, *(t for row in own | others for t in row[:2] if begin < t < end)})
    for left, right in itertools.pairwise(cuts):
        levels = [row[2] for row in own if row[0] <= left and row[1] >= right]
        if not levels:
            levels = [row[2] for row in others if row[0] <= left and row[1] >= right]
        level, length = min(levels, default=6), right - left
        if level == 0:
            causes["data_loading"] += length
        elif level == 1:
            causes["synchronization"] += length
            causes["synchronization_blocked"] += length
        elif drained:
            causes["synchronization"] += length
        elif level == 3:
            causes["optimizer"] += length
        elif level == 6 and place[0] not in recorded:
            causes["unknown"] += length
        else:
            part = {2: "host_allocation", 4: "host_runtime", 5: "host_operators", 6: "host_python"}[level]
            causes["host"] += length
            causes[part] += length
