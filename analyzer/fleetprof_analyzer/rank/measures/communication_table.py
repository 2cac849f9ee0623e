"""Communication by process group, collective and size, with bandwidths (docs/measures.md#communication).

Guarantees: pure; counts and times are exact sums over the rank's rows of communication; a bandwidth is given only where
the trace says the bytes.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np
from fleetprof_api.report.report_tables import CommunicationStatistics

from fleetprof_analyzer.rank.communication.kinds import kind_of
from fleetprof_analyzer.rank.communication.operations import KINDS
from fleetprof_analyzer.rank.communication.process_group import group_of
from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.trace.classes import WorkClass, is_collective_range
from fleetprof_analyzer.trace.intervals import covered_length
from fleetprof_analyzer.trace.trace import Collective, Int64s, Rows, Trace

_UNSAID: Final = Collective()
_MOST_PER_RANK: Final = 64
_MOST: Final = 100
_GROUP_CHARACTERS: Final = 80
_ELEMENT_BYTES: Final = {
    "double": 8, "long": 8, "float64": 8, "int64": 8, "complexfloat": 8, "complexdouble": 16,
    "float": 4, "int": 4, "float32": 4, "int32": 4,
    "half": 2, "bfloat16": 2, "short": 2, "float16": 2, "int16": 2,
    "char": 1, "byte": 1, "bool": 1, "int8": 1, "uint8": 1,
}  # fmt: skip
# Bytes on the busiest link per byte of the operation, for n members: nccl-tests, PERFORMANCE.md.
_BUS_FACTORS: Final[dict[str, Callable[[int], float]]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
    "send": lambda n: 1.0,
    "receive": lambda n: 1.0,
    "send_receive": lambda n: 1.0,
}


class CommunicationGroup(msgspec.Struct, kw_only=True, frozen=True):
    """All calls of one kind, group, type and size on one rank."""

    kind: str
    group: str = ""
    group_size: int | None = None
    data_type: str = ""
    message_bytes: int | None = None
    count: int
    total_ns: int
    min_ns: int
    overlapped_ns: int


def measure_communication(
    trace: Trace, works: Sequence[DeviceWork], host: DeviceWork | None
) -> list[CommunicationGroup]:
    """The groups of one rank, the longest first; CPU-only ranks have the ranges of gloo, MPI and UCC.

    `host`: the operators of a CPU-only rank, which are its compute.
    """
    found: dict[tuple[int, int], list[int]] = {}
    if works:
        for work in works:
            rows = work.rows.select(work.classes == WorkClass.COMMUNICATION)
            _add_rows(found, rows, work)
    else:
        ranges = np.array([is_collective_range(name) for name in trace.names] or [False], np.bool_)
        rows = trace.rows.select(~trace.rows.on_device & ranges[trace.rows.name])
        _add_rows(found, rows, host)
    groups: dict[tuple[str, str, int | None, str, int | None], list[int]] = {}
    for (name, number), sums in found.items():
        collective = trace.collectives[number] if number >= 0 else _UNSAID
        kind = KINDS[kind_of(collective.name, trace.names[name])]
        size = group_of(collective, trace.metadata.groups).size
        group = collective.group_name[:_GROUP_CHARACTERS]
        key = (kind, group, size, collective.data_type[:20], message_bytes(kind, collective))
        have = groups.setdefault(key, [0, 0, sums[2], 0])
        groups[key] = [have[0] + sums[0], have[1] + sums[1], min(have[2], sums[2]), have[3] + sums[3]]
    made = [
        CommunicationGroup(
            kind=key[0], group=key[1], group_size=key[2], data_type=key[3], message_bytes=key[4],
            count=sums[0], total_ns=sums[1], min_ns=sums[2], overlapped_ns=sums[3],
        )
        for key, sums in groups.items()
    ]  # fmt: skip
    return _cut(made, _MOST_PER_RANK)


def merge_communication(ranks: Sequence[Sequence[CommunicationGroup]]) -> list[CommunicationStatistics]:
    """The groups of all ranks together, the longest first."""
    by_key: dict[tuple[object, ...], list[CommunicationGroup]] = {}
    for groups in ranks:
        for group in groups:
            key = (group.kind, group.group, group.group_size, group.data_type, group.message_bytes)
            by_key.setdefault(key, []).append(group)
    counted = [(_join(parts), len(parts)) for parts in by_key.values()]
    ranks_of = {_key(group): count for group, count in counted}
    cut = _cut([group for group, _ in counted], _MOST)
    return [_statistics(group, ranks_of.get(_key(group), len(ranks))) for group in cut]


def bus_factor(kind: str, members: int | None) -> float | None:
    """Bytes on the busiest link per byte of the operation; None where it cannot be told."""
    factor = _BUS_FACTORS.get(kind)
    return None if factor is None or not members or members < 2 else float(factor(members))


def message_bytes(kind: str, collective: Collective) -> int | None:
    """The size of the operation: what a rank sends, or for all_gather receives, altogether."""
    element = _ELEMENT_BYTES.get(collective.data_type) or (1 if collective.data_type.startswith("float8") else None)
    inside, outside = collective.elements_in, collective.elements_out
    elements = max(inside or 0, outside or 0) if kind in ("all_gather", "gather") else inside
    return elements * element if elements and element else None


def _add_rows(found: dict[tuple[int, int], list[int]], rows: Rows, work: DeviceWork | None) -> None:
    """Adds calls to those found; `work` has the compute beside them."""
    if len(rows) == 0:
        return
    overlap: Int64s = np.zeros(len(rows), np.int64)
    if work is not None:
        compute = work.union_of(WorkClass.COMPUTE)
        overlap = covered_length(rows.end_ns, compute) - covered_length(rows.start_ns, compute)
    keys, owner = np.unique(np.stack((rows.name, rows.collective)), axis=1, return_inverse=True)
    owner = owner.reshape(-1)
    total, overlapped = np.zeros(keys.shape[1], np.int64), np.zeros(keys.shape[1], np.int64)
    shortest = np.full(keys.shape[1], np.iinfo(np.int64).max)
    np.add.at(total, owner, rows.duration_ns)
    np.add.at(overlapped, owner, overlap)
    np.minimum.at(shortest, owner, rows.duration_ns)
    sums = np.stack((np.bincount(owner), total, shortest, overlapped)).T.tolist()
    for (name, number), (count, total_ns, min_ns, overlapped_ns) in zip(keys.T.tolist(), sums, strict=True):
        have = found.setdefault((name, number), [0, 0, min_ns, 0])
        found[name, number] = [
            have[0] + count, have[1] + total_ns, min(have[2], min_ns), have[3] + overlapped_ns
        ]  # fmt: skip


def _key(group: CommunicationGroup) -> tuple[object, ...]:
    return group.kind, group.group, group.group_size, group.data_type, group.message_bytes


def _join(parts: Sequence[CommunicationGroup]) -> CommunicationGroup:
    return msgspec.structs.replace(
        parts[0],
        count=sum(part.count for part in parts),
        total_ns=sum(part.total_ns for part in parts),
        min_ns=min(part.min_ns for part in parts),
        overlapped_ns=sum(part.overlapped_ns for part in parts),
    )


def _cut(groups: Sequence[CommunicationGroup], most: int) -> list[CommunicationGroup]:
    """The longest groups; the rest is one row, so that sums stay whole."""
    ordered = sorted(groups, key=lambda g: (-g.total_ns, tuple(str(part) for part in _key(g))))
    if len(ordered) <= most:
        return ordered
    rest = _join(ordered[most - 1 :])
    blank = CommunicationGroup(
        kind="other", count=rest.count, total_ns=rest.total_ns, min_ns=rest.min_ns, overlapped_ns=rest.overlapped_ns
    )
    return [*ordered[: most - 1], blank]


def _statistics(group: CommunicationGroup, ranks: int) -> CommunicationStatistics:
    factor = bus_factor(group.kind, group.group_size)
    size = group.message_bytes
    algorithm = size * group.count * 10**9 // group.total_ns if size and group.total_ns else None
    best = size * 10**9 // group.min_ns if size and group.min_ns else None
    return CommunicationStatistics(
        kind=group.kind,
        group=group.group,
        group_size=group.group_size,
        data_type=group.data_type,
        message_bytes=size,
        count=group.count,
        total_ns=group.total_ns,
        min_ns=group.min_ns,
        overlapped_ns=group.overlapped_ns,
        algorithm_bytes_per_s=algorithm,
        bus_bytes_per_s=None if algorithm is None or factor is None else round(algorithm * factor),
        best_bus_bytes_per_s=None if best is None or factor is None else round(best * factor),
        ranks=ranks,
    )
