"""Device work by name: count, sum, extremes, spread and distribution, per rank and over ranks, and by stream.

Guarantees: pure; counts and sums are exact and add up to all device work, since what is not listed by name is summed
under "(other)"; merging does not depend on the order of ranks.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec
import numpy as np
from fleetprof_api.report.rank_tables import DeviceWorkStatistics
from fleetprof_api.report.report_tables import KernelOutlier, KernelStatistics, WorkClassName

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.kernels.distribution import to_density
from fleetprof_analyzer.rank.measures.kernels.durations import Durations, add_durations, sum_by_group
from fleetprof_analyzer.rank.measures.kernels.outlier_rule import FEWEST_OTHERS, LEAST_DIFFERENCE
from fleetprof_analyzer.rank.measures.kernels.streams import KernelOnStream, list_streams, merge_streams, name_streams
from fleetprof_analyzer.trace.classes import WorkClass
from fleetprof_analyzer.trace.trace import Trace

OTHER: Final = "(other)"
ALL: Final = "(all)"
_MOST_PER_RANK: Final = 48
_MOST_OF_A_RANK: Final = 8
_MOST: Final = 100
_NAME_CHARACTERS: Final = 160
_SIGMA: Final = 3.0
_MOST_OUTLIERS: Final = 50


class KernelGroup(Durations, kw_only=True, frozen=True):
    """All rows of one name on one rank: on one `stream`, or on several `streams`; "(other)" tells neither."""

    name: str
    work_class: int
    stream: str = ""
    streams: list[KernelOnStream] = msgspec.field(default_factory=list)

    def by_stream(self) -> Mapping[str, Durations]:
        """The rows of each stream, as far as it is told."""
        return {self.stream: self} if self.stream else {one.stream: one for one in self.streams}


def measure_kernels(works: Sequence[DeviceWork], trace: Trace) -> list[KernelGroup]:
    """The longest groups of one rank by name, and the rest of each class."""
    if not works:
        return []
    name = np.concatenate([work.rows.name for work in works])
    duration = np.concatenate([work.rows.duration_ns for work in works])
    classes = np.concatenate([work.classes for work in works])
    place = np.concatenate([work.rows.place for work in works])
    keys, owner = np.unique(name.astype(np.int64) * len(WorkClass) + classes, return_inverse=True)
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, owner, duration)
    longest = np.argsort(-total, kind="stable")[:_MOST_PER_RANK]
    # Groups: the longest by name, then the rest of each class.
    number = len(longest) + keys % len(WorkClass)
    number[longest] = np.arange(len(longest))
    listed = [divmod(key, len(WorkClass)) for key in keys[longest].tolist()]
    labels = [(short_name(trace.names[text]), work_class) for text, work_class in listed]
    labels += [(OTHER, work_class) for work_class in range(len(WorkClass))]
    streams, on_stream = name_streams(trace.places, place, duration)
    by_group: dict[int, dict[str, Durations]] = {}
    for key, part in sum_by_group(number[owner] * len(streams) + on_stream, duration).items():
        group, stream = divmod(key, len(streams))
        by_group.setdefault(group, {})[streams[stream]] = part
    return [_make_group(*labels[group], parts) for group, parts in sorted(by_group.items())]


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
    merged = [_merge_named(parts) for parts in named[:_MOST]]
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
    return [*(_of_one_rank(row) for row in merge_classes([groups])), *(_list_kernel(group) for group in longest)]


def _list_kernel(group: KernelGroup) -> DeviceWorkStatistics:
    row = _of_one_rank(_merge(group.name, [group]))
    return msgspec.structs.replace(row, density=to_density(group.buckets, row.min_ns, row.p99_ns))


def _of_one_rank(row: KernelStatistics) -> DeviceWorkStatistics:
    shared = (field for field in DeviceWorkStatistics.__struct_fields__ if field != "density")
    return DeviceWorkStatistics(**{field: getattr(row, field) for field in shared})


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
        if len(of_ranks) <= FEWEST_OTHERS:
            continue
        values = np.array([group.total_ns / group.count for _, group in of_ranks])
        around = (values.sum() - values) / (len(values) - 1)
        # Most are nowhere near; half the bound, since these means are rounded otherwise than those below.
        for number in np.flatnonzero(np.abs(values - around) > LEAST_DIFFERENCE / 2 * around).tolist():
            rank, group = of_ranks[number]
            others = np.delete(values, number)
            mean, deviation = float(others.mean()), float(others.std())
            distance = float(values[number]) - mean
            if abs(distance) > max(_SIGMA * deviation, LEAST_DIFFERENCE * mean):
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


def _make_group(name: str, work_class: int, by_stream: Mapping[str, Durations]) -> KernelGroup:
    whole = add_durations(list(by_stream.values()))
    streams = [] if name == OTHER else list_streams(by_stream)
    alone = len(streams) == 1
    return KernelGroup(
        name=name,
        work_class=work_class,
        stream=streams[0].stream if alone else "",
        streams=[] if alone else streams,
        **msgspec.structs.asdict(whole),
    )


def _merge(name: str, parts: Sequence[KernelGroup]) -> KernelStatistics:
    whole = add_durations(parts)
    return KernelStatistics(
        name=name,
        work_class=cast("WorkClassName", WorkClass(parts[0].work_class).name.lower()),
        p90_ns=whole.quantile_ns(900),
        ranks=len(parts),
        **whole.describe(),
    )


def _merge_named(parts: Sequence[KernelGroup]) -> KernelStatistics:
    # How long communication takes depends on other ranks, on each stream on others: not compared.
    comparable = parts[0].work_class != WorkClass.COMMUNICATION
    streams = merge_streams([part.by_stream() for part in parts], comparable=comparable)
    return msgspec.structs.replace(_merge(parts[0].name, parts), streams=streams)
