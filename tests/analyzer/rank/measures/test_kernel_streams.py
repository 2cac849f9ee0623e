"""Kernels by stream: exact against planted launches, over ranks, bounded, and left out where a summary is too long."""

import io
import itertools
import json
from collections.abc import Sequence
from statistics import pstdev

import msgspec
import pytest
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.measures.kernels.kernels import OTHER, KernelGroup, merge_kernels
from fleetprof_analyzer.rank.measures.kernels.streams import OTHER_STREAMS
from fleetprof_analyzer.rank.stored_summary import MOST_BYTES, pack_summary, unpack_summary
from fleetprof_analyzer.rank.summary import RankSummary, summarise
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_api.report.report import Report, read_report, write_report
from fleetprof_api.report.report_tables import KernelStatistics, KernelStream
from harness.traces.launches import FAST, SLOW, Launches, on, write_launches

US = 1000


def planted(launches: Launches, rank: int = 0) -> RankSummary:
    problems = Problems()
    trace = read_trace(io.BytesIO(write_launches(launches)), "t", problems)
    return summarise(trace, None, rank_number=rank, terms=RecordingTerms(), problems=problems)


def kernels_of(*ranks: Launches) -> dict[str, KernelStatistics]:
    merged = merge_kernels([planted(launches, rank).kernels for rank, launches in enumerate(ranks)])
    return {kernel.name: kernel for kernel in merged}


def agrees(stream: KernelStream, lengths: Sequence[int]) -> bool:
    exact = (stream.count, stream.total_ns, stream.min_ns, stream.max_ns, stream.mean_ns, stream.deviation_ns)
    total = sum(lengths) * US
    return exact == (
        len(lengths), total, min(lengths) * US, max(lengths) * US, total // len(lengths), round(pstdev(lengths) * US)
    )  # fmt: skip


def test_a_slow_stream_stands_out_from_a_fast_one() -> None:
    slow, fast = kernels_of([*on(7, FAST), *on(20, SLOW), *on(7, [5], "relu")])["gemm"].streams
    assert (slow.stream, fast.stream) == ("20", "7")
    assert agrees(slow, SLOW)
    assert agrees(fast, FAST)
    # Far from the launches on the other stream, whose spread the distance is counted in.
    assert (slow.others_mean_ns, fast.others_mean_ns) == (12 * US, 32 * US)
    assert slow.deviations == round((32 - 12) / pstdev(FAST), 1)
    assert fast.deviations == round((12 - 32) / pstdev(SLOW), 1)
    for stream, lengths in ((slow, SLOW), (fast, FAST)):
        assert sum(stream.histogram.counts) == len(lengths)
        middle = sorted(lengths)[(len(lengths) - 1) // 2]
        assert stream.p50_ns == pytest.approx(middle * US, rel=0.016)


def test_a_kernel_on_one_stream_lists_none() -> None:
    kernels = kernels_of([*on(7, FAST), *on(9, [5], "relu")], on(7, SLOW))
    assert kernels["gemm"].streams == []
    assert kernels["relu"].streams == []


def test_streams_of_several_ranks_add_up() -> None:
    # One rank has the kernel on both streams, the others on one of them each.
    both = [*on(7, FAST), *on(20, [30])]
    streams = {one.stream: one for one in kernels_of(both, on(7, [11]), on(20, [34, 32]))["gemm"].streams}
    assert agrees(streams["7"], [*FAST, 11])
    assert agrees(streams["20"], SLOW)
    assert (streams["7"].ranks, streams["20"].ranks) == (2, 2)


def test_the_order_of_ranks_does_not_matter() -> None:
    ranks = [planted([*on(7, [10 + rank]), *on(20, [30, 31])], rank).kernels for rank in range(3)]
    assert all(merge_kernels(order) == merge_kernels(ranks) for order in itertools.permutations(ranks))


def test_only_the_longest_streams_are_listed_and_the_rest_summed() -> None:
    launches = [launch for stream in range(300) for launch in on(stream, [1 + stream])]
    streams = kernels_of(launches)["gemm"].streams
    assert [one.stream for one in streams] == [*(str(299 - number) for number in range(8)), OTHER_STREAMS]
    assert sum(one.count for one in streams) == 300
    assert sum(one.total_ns for one in streams) == sum(range(1, 301)) * US


def test_streams_of_several_devices_are_told_apart() -> None:
    streams = kernels_of([*on(7, [10]), *on(7, [20], device=1)])["gemm"].streams
    assert [one.stream for one in streams] == ["1:7", "0:7"]


@pytest.mark.parametrize("stream", ["x" * 5000, "\u202e<b>", ""])
def test_a_hostile_name_of_a_stream_is_kept_short(stream: str) -> None:
    streams = kernels_of([*on(7, [10]), *on(stream, [20])])["gemm"].streams
    assert len(streams) == 2
    assert all(len(one.stream) <= 32 for one in streams)


def test_communication_is_listed_by_stream_but_not_compared() -> None:
    name = "ncclDevKernel_AllReduce_Sum"
    streams = kernels_of([*on(20, FAST, name), *on(24, SLOW, name)])[name].streams
    assert [(one.stream, one.deviations, one.others_mean_ns) for one in streams] == [
        ("24", None, None),
        ("20", None, None),
    ]


def test_what_is_not_listed_by_name_has_no_streams() -> None:
    launches = [launch for number in range(60) for launch in on(number % 2, [5, 6], f"kernel_{number}")]
    assert kernels_of(launches)[OTHER].streams == []


def test_a_summary_that_would_be_too_long_goes_without_streams() -> None:
    summary = planted([*on(7, FAST), *on(20, SLOW)])
    packed = pack_summary(summary, trace_bytes=1, samples_bytes=0)
    assert unpack_summary(packed, 0).kernels == summary.kernels
    (group,) = summary.kernels
    long = [msgspec.structs.replace(one, stream=f"{number}") for number in range(30_000) for one in group.streams]
    summary = msgspec.structs.replace(summary, kernels=[msgspec.structs.replace(group, streams=long)])
    packed = pack_summary(summary, trace_bytes=1, samples_bytes=0)
    assert len(packed) <= MOST_BYTES
    assert unpack_summary(packed, 0).kernels == [msgspec.structs.replace(group, streams=[])]


def test_a_report_from_before_streams_were_kept_is_read() -> None:
    report = Report(kernels=merge_kernels([planted([*on(7, FAST), *on(20, SLOW)]).kernels]))
    document = json.loads(write_report(report))
    for name in ("streams", "p25_ns", "p75_ns"):
        del document["kernels"][0][name]
    (kernel,) = read_report(json.dumps(document).encode()).kernels
    assert kernel == msgspec.structs.replace(report.kernels[0], streams=[], p25_ns=None, p75_ns=None)


def test_a_group_on_one_stream_holds_its_distribution_once() -> None:
    (group,) = planted(on(7, FAST)).kernels
    assert isinstance(group, KernelGroup)
    assert (group.stream, group.streams) == ("7", [])
