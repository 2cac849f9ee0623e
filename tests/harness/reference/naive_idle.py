"""The causes of a GPU's idle time, the slow and plain way: each gap by itself, each piece by a look at each row."""

import itertools
import re
from collections import Counter, defaultdict
from functools import cached_property

from fleetprof_analyzer.trace.classes import is_data_loading, is_host_annotation

from harness.reference.naive_events import COPIES, GPU, OPERATORS, RUNTIME, Row

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


Piece = tuple[int, int, tuple[str, ...]]
"""[begin, end) of idle time and the fields of IdleCauses that it counts for."""


def naive_idle(devices: dict[str, "Device"]) -> dict[str, Counter[str]]:
    """Causes by device, with the names of IdleCauses."""
    return {name: add_up(device.pieces()) for name, device in devices.items()}


def naive_idle_within(devices: dict[str, "Device"], borders: list[int]) -> list[Counter[str]]:
    """The same for each window between two borders, over all devices; they reach beyond the devices' work."""
    found: list[Counter[str]] = [Counter() for _ in borders[1:]]
    for device in devices.values():
        pieces = device.pieces_of_gaps + device.pieces_before(borders[0]) + device.pieces_after(borders[-1])
        for causes, (begin, end) in zip(found, itertools.pairwise(borders), strict=True):
            causes += add_up([(max(left, begin), min(right, end), names) for left, right, names in pieces])
    return found


def add_up(pieces: list[Piece]) -> Counter[str]:
    causes: Counter[str] = Counter()
    for left, right, names in pieces:
        for name in names:
            causes[name] += max(right - left, 0)
    return causes


def read_devices(rows: list[Row]) -> dict[str, "Device"]:
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
    return {name: Device(work, calls, threads, recorded) for name, work in devices.items()}


class Device:
    """One device's work and what the host did around it."""

    def __init__(
        self, work: list[Row], calls: dict[int, Row], threads: dict[tuple[str, str], Thread], recorded: set[str]
    ) -> None:
        self.calls, self.threads, self.recorded, self.rows = calls, threads, recorded, work
        self.launching = {calls[row.correlation].place for row in work if row.correlation in calls}
        self.first, self.last = min(row.start for row in work), max(row.end for row in work)
        work = sorted((row for row in work if row.end > row.start), key=lambda row: row.start)
        gaps = []
        self.reached = self.first
        for row in work:
            if row.start > self.reached:
                gaps.append((self.reached, row.start))
            self.reached = max(self.reached, row.end)
        at: dict[int, list[Row]] = defaultdict(list)
        for row in work:
            at[row.start].append(row)
        self.ended = [(begin, end, self.first_launch(at[end])) for begin, end in gaps]
        delays = sorted(max(end - call.end, 0) for begin, end, call in self.ended if call and call.start >= begin)
        limit = delays[-(-len(delays) * 9 // 10) - 1] if delays else 5000
        self.limit = min(max(limit, 5000), 20000)

    def first_launch(self, work: list[Row]) -> Row | None:
        calls = [
            (self.calls[row.correlation].start if row.correlation in self.calls else 1 << 62, row.correlation)
            for row in work
        ]
        return self.calls.get(min(calls)[1])

    def pieces(self) -> list[Piece]:
        return [*self.pieces_of_gaps, (self.reached, self.last, ("unknown",))]

    @cached_property
    def pieces_of_gaps(self) -> list[Piece]:
        return [piece for begin, end, call in self.ended for piece in self.explain(begin, end, call)]

    def pieces_before(self, begin: int) -> list[Piece]:
        """From a window's begin to the first row, a row of no length included."""
        starting = [row for row in self.rows if row.start == self.first]
        return self.explain(begin, self.first, self.first_launch(starting)) if begin < self.first else []

    def pieces_after(self, end: int) -> list[Piece]:
        """From the last work to a window's end: what the thread does that launched last."""
        launched = [self.calls[row.correlation] for row in self.rows if row.correlation in self.calls]
        if end <= self.reached:
            return []
        if not launched:
            return [(self.reached, end, ("unknown",))]
        latest = min(launched, key=lambda call: (-call.start, call.correlation))
        return self.explain_late(self.reached, end, latest.place)

    def explain(self, begin: int, end: int, call: Row | None) -> list[Piece]:
        if call is None:
            return [(begin, end, ("unknown",))]
        pieces = self.explain_late(begin, min(max(call.start, begin), end), call.place)
        pieces.append((max(begin, call.start), min(end, call.end), ("launching",)))
        begun = max(begin, call.end)
        if call.start >= begin:
            pieces.append((begun, min(begun + self.limit, end), ("launching",)))
            pieces.append((begun + self.limit, end, ("waiting",)))
        else:
            short = ("waiting_short",) if end - begin <= self.limit else ()
            pieces.append((begun, end, ("waiting", *short)))
        return pieces

    def explain_late(self, begin: int, end: int, place: tuple[str, str]) -> list[Piece]:
        """The host's work from the begin of a gap to the launch that ends it."""
        if end <= begin:
            return []
        own = self.threads[place].between(begin - 1, end)
        drained = any(level == 1 and (start <= begin < stop or start <= begin - 1 < stop) for start, stop, level in own)
        others = set()
        for thread in self.launching:
            others |= self.threads[thread].between(begin, end)
        cuts = sorted({begin, end, *(t for row in own | others for t in row[:2] if begin < t < end)})
        place_of = {time: number for number, time in enumerate(cuts)}
        levels = [6] * (len(cuts) - 1)
        # Painted over each other: own rows over those of others, and of each the lower level over the higher.
        for threads in (others, own):
            for start, stop, level in sorted(threads, key=lambda row: -row[2]):
                first, last = place_of[max(start, begin)], place_of[min(stop, end)]
                levels[first:last] = [level] * (last - first)
        pieces: list[Piece] = []
        for (left, right), level in zip(itertools.pairwise(cuts), levels, strict=True):
            names: tuple[str, ...]
            if level == 0:
                names = ("data_loading",)
            elif level == 1:
                names = ("synchronization", "synchronization_blocked")
            elif drained:
                names = ("synchronization",)
            elif level == 3:
                names = ("optimizer",)
            elif level == 6 and place[0] not in self.recorded:
                names = ("unknown",)
            else:
                part = {2: "host_allocation", 4: "host_runtime", 5: "host_operators", 6: "host_python"}[level]
                names = ("host", part)
            pieces.append((left, right, names))
        return pieces
