"""Device work by name: count, sum, extremes, spread and distribution, per rank and over ranks.

Guarantees: pure; counts and sums are exact and add up to all device work, since what is not listed by name is summed
under "(other)"; merging does not depend on the order of ranks.
"""

import zlib
from collections.abc import Sequence
from math import sqrt
from typing import Final, cast

import msgspec
import numpy as np
from fleetprof_api.report.rank_tables import DeviceWorkStatistics
from fleetprof_api.report.report_tables import KernelOutlier, KernelStatistics, WorkClassName

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.kernels.distribution import add_counts, count_buckets_by, quantile, to_histogram
from fleetprof_analyzer.trace.classes import WorkClass
from fleetprof_analyzer.trace.trace import Int64s

OTHER: Final = "(other)"
ALL: Final = "(all)"
_MOST_PER_RANK: Final = 48
_MOST_OF_A_RANK: Final = 8
_MOST: Final = 100
_NAME_CHARACTERS: Final = 160
_SIGMA: Final = 3.0
_FEWEST_OTHERS: Final = 3
_LEAST_DIFFERENCE: Final = 0.05
_MOST_OUTLIERS: Final = 50


class KernelGroup(msgspec.Struct, kw_only=True, frozen=True):
    """All rows of one name on one rank; `spread` is the sum of squared distances from the mean, ns²."""

    name: str
    work_class: int
    count: int
    total_ns: int
    min_ns: int
    max_ns: int
    spread: float
    buckets: dict[int, int]


def measure_kernels(works: Sequence[DeviceWork], names: Sequence[str]) -> list[KernelGroup]:
    """The longest groups of one rank by name, and the rest of each class."""
    if not works:
        return []
    name = np.concatenate([work.rows.name for work in works])
    duration = np.concatenate([work.rows.duration_ns for work in works])
    classes = np.concatenate([work.classes for work in works])
    keys, owner = np.unique(name.astype(np.int64) * len(WorkClass) + classes, return_inverse=True)
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, owner, duration)
    longest = np.argsort(-total, kind="stable")[:_MOST_PER_RANK]
    # Groups: the longest by name, then the rest of each class.
    number = len(longest) + keys % len(WorkClass)
    number[longest] = np.arange(len(longest))
    listed = [divmod(key, len(WorkClass)) for key in keys[longest].tolist()]
    labels = [(short_name(names[text]), work_class) for text, work_class in listed]
    labels += [(OTHER, work_class) for work_class in range(len(WorkClass))]
    return _sum_groups(labels, number[owner], duration)


def short_name(name: str) -> str:
    """A name that is cut where it is long, with a checksum that keeps different ones apart."""
    if len(name) <= _NAME_CHARACTERS:
        return name
    return f"{name[: _NAME_CHARACTERS - 10]}…{zlib.crc32(name.encode(errors='replace')):08x}"


def merge_kernels(ranks: Sequence[Sequence[KernelGroup]]) -> list[KernelStatistics]:
    """The groups of all ranks together, the longest first; "(other)" of each class last."""
    by_name: dict[tuple[bool, str, int], list[KernelGroup]] = {}
    for groups in ranks:
        for group in groups:
            by_name.setdefault((group.name == OTHER, group.name, group.work_class), []).append(group)
    named = sorted(
        (parts for key, parts in by_name.items() if not key[0]),
        key=lambda parts: (-sum(part.total_ns for part in parts), parts[0].name, parts[0].work_class),
    )
    rest: dict[int, list[KernelGroup]] = {}
    for parts in [*named[_MOST:], *(parts for key, parts in by_name.items() if key[0])]:
        rest.setdefault(parts[0].work_class, []).extend(parts)
    merged = [_merge(parts[0].name, parts) for parts in named[:_MOST]]
    return [*merged, *(_merge(OTHER, rest[work_class]) for work_class in sorted(rest))]


def merge_classes(ranks: Sequence[Sequence[KernelGroup]]) -> list[KernelStatistics]:
    """The device work of each class, of all names and ranks together."""
    by_class: dict[int, list[KernelGroup]] = {}
    for groups in ranks:
        for group in groups:
            by_class.setdefault(group.work_class, []).append(group)
    ranks_of = {
        work_class: sum(any(group.work_class == work_class for group in groups) for groups in ranks)
        for work_class in by_class
    }
    return [
        msgspec.structs.replace(_merge(ALL, by_class[work_class]), ranks=ranks_of[work_class])
        for work_class in sorted(by_class)
    ]


def list_device_work(groups: Sequence[KernelGroup]) -> list[DeviceWorkStatistics]:
    """One rank's classes of work, then its longest kernels by name."""
    named = [group for group in groups if group.name != OTHER]
    longest = sorted(named, key=lambda group: (-group.total_ns, group.name, group.work_class))[:_MOST_OF_A_RANK]
    return [
        DeviceWorkStatistics(**{field: getattr(row, field) for field in DeviceWorkStatistics.__struct_fields__})
        for row in [*merge_classes([groups]), *(_merge(group.name, [group]) for group in longest)]
    ]


def find_outliers(ranks: Sequence[tuple[int | None, Sequence[KernelGroup]]]) -> list[KernelOutlier]:
    """Kernels that took longer or shorter on one rank than on the others; the largest distance first.

    A rank's mean against the other ranks' means of the same kernel: more than 3 standard deviations and 5 % away, with
    at least 3 other ranks. Communication is left out: it lasts as long as the slowest rank lets it.
    """
    means: dict[str, list[tuple[int, KernelGroup]]] = {}
    for rank, groups in ranks:
        for group in groups:
            if rank is not None and group.name != OTHER and group.work_class != WorkClass.COMMUNICATION:
                means.setdefault(group.name, []).append((rank, group))
    found = []
    for name, of_ranks in sorted(means.items()):
        if len(of_ranks) <= _FEWEST_OTHERS:
            continue
        values = np.array([group.total_ns / group.count for _, group in of_ranks])
        around = (values.sum() - values) / (len(values) - 1)
        # Most are nowhere near; half the bound, since these means are rounded otherwise than those below.
        for number in np.flatnonzero(np.abs(values - around) > _LEAST_DIFFERENCE / 2 * around).tolist():
            rank, group = of_ranks[number]
            others = np.delete(values, number)
            mean, deviation = float(others.mean()), float(others.std())
            distance = float(values[number]) - mean
            if abs(distance) > max(_SIGMA * deviation, _LEAST_DIFFERENCE * mean):
                found.append(
                    KernelOutlier(
                        rank=rank,
                        name=name,
                        mean_ns=group.total_ns // group.count,
                        others_mean_ns=int(mean),
                        deviations=round(distance / max(deviation, 1.0), 1),
                        count=group.count,
                    )
                )
    found.sort(key=lambda o: (-abs(o.mean_ns - o.others_mean_ns) * o.count, o.name, o.rank))
    return found[:_MOST_OUTLIERS]


def _sum_groups(labels: Sequence[tuple[str, int]], group: Int64s, duration: Int64s) -> list[KernelGroup]:
    """The groups that have rows, by (name, class); `group` is each row's position among `labels`."""
    order = np.argsort(group.astype(np.uint16), kind="stable")
    group, duration = group[order], duration[order]
    used, first, count = np.unique(group, return_index=True, return_counts=True)
    total = np.add.reduceat(duration, first)
    distance = duration - np.repeat(total / count, count)
    spread = np.add.reduceat(distance * distance, first)
    shortest, longest = np.minimum.reduceat(duration, first), np.maximum.reduceat(duration, first)
    buckets = count_buckets_by(group, duration)
    columns = (column.tolist() for column in (used, count, total, shortest, longest, spread))
    return [
        KernelGroup(
            name=labels[number][0],
            work_class=labels[number][1],
            count=rows,
            total_ns=total_ns,
            min_ns=min_ns,
            max_ns=max_ns,
            spread=squares,
            buckets=buckets[number],
        )
        for number, rows, total_ns, min_ns, max_ns, squares in zip(*columns, strict=True)
    ]


def _merge(name: str, parts: Sequence[KernelGroup]) -> KernelStatistics:
    parts = sorted(parts, key=lambda part: (part.count, part.total_ns, part.min_ns, part.max_ns, part.spread))
    count, total = sum(part.count for part in parts), sum(part.total_ns for part in parts)
    mean = total / count
    # Within each rank, and of the ranks' means around the common one.
    spread = sum(part.spread + part.count * (part.total_ns / part.count - mean) ** 2 for part in parts)
    buckets = add_counts(part.buckets for part in parts)
    low, high = min(part.min_ns for part in parts), max(part.max_ns for part in parts)
    p50, p90, p99 = (min(max(quantile(buckets, permille), low), high) for permille in (500, 900, 990))
    return KernelStatistics(
        name=name,
        work_class=cast("WorkClassName", WorkClass(parts[0].work_class).name.lower()),
        count=count,
        total_ns=total,
        mean_ns=total // count,
        min_ns=low,
        max_ns=high,
        deviation_ns=round(sqrt(spread / count)),
        p50_ns=p50,
        p90_ns=p90,
        p99_ns=p99,
        ranks=len(parts),
        histogram=to_histogram(buckets),
    )
