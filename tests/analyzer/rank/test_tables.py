"""Kernels, communication, copies and launches: exact sums, mergeable distributions, a naive twin on real traces."""

import gzip
import io
import itertools
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pytest
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.measures.communication_table import bus_factor, merge_communication
from fleetprof_analyzer.rank.measures.kernels.distribution import (
    add_counts,
    bucket_of,
    count_buckets_by,
    low_of,
    quantile,
)
from fleetprof_analyzer.rank.measures.kernels.kernels import (
    OTHER,
    KernelGroup,
    find_outliers,
    measure_kernels,
    merge_kernels,
    short_name,
)
from fleetprof_analyzer.rank.summary import RankSummary, summarise
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_api.report.report import Rank
from harness.reference.naive_events import load, no_collections, read_rows
from harness.reference.naive_tables import naive_communication, naive_copies, naive_kernels, naive_launches
from harness.traces.kept_traces import GENERATED, traces_in
from harness.traces.planted.traces import plant
from hypothesis import given
from hypothesis import strategies as st

REAL = [*GENERATED, "dlrm_v100_8ranks", "sampled_2of128", "nccl_a100", "df_index_v100", "resnet50_v100_old",
        "inference_h100_mi300", "mi250_amd", "gpu_only_mi210"]  # fmt: skip
US = 1000


def summary_of(data: bytes) -> RankSummary:
    problems = Problems()
    trace = read_trace(io.BytesIO(data), "t", problems)
    return summarise(trace, None, rank_number=0, terms=RecordingTerms(), problems=problems)


def rank_of(summary: RankSummary) -> Rank:
    assert summary.rank is not None
    return summary.rank


def gpu(name: str, start: int, end: int, *, category: str = "kernel", stream: int = 7, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": stream, "ts": start, "dur": end - start,
            "args": {"device": 0, "stream": stream, **args}}  # fmt: skip


def planted(*events: dict[str, Any]) -> RankSummary:
    return summary_of(json.dumps({"traceEvents": events}).encode())


# ---------------------------------------------------------------- distributions


def count_buckets(durations: Sequence[int]) -> dict[int, int]:
    return count_buckets_by(np.zeros(len(durations), np.int64), np.array(durations, np.int64)).get(0, {})


@given(st.lists(st.integers(0, 1 << 47), min_size=1, max_size=50))
def test_each_duration_lies_in_its_bucket_which_is_narrow(durations: list[int]) -> None:
    for duration, bucket in zip(durations, bucket_of(np.array(durations, np.int64)).tolist(), strict=True):
        low, next_low = low_of(bucket), low_of(bucket + 1)
        assert low <= duration < next_low
        assert next_low - low == 1 or (next_low - low) * 32 <= next_low
    counts = count_buckets(durations)
    for permille in (1, 500, 900, 1000):
        true = sorted(durations)[-(-len(durations) * permille // 1000) - 1]
        assert abs(quantile(counts, permille) - true) <= max(true / 32, 0)


@given(st.lists(st.lists(st.integers(0, 10**9), max_size=20), min_size=1, max_size=4))
def test_distributions_add_up_in_any_order(parts: list[list[int]]) -> None:
    counted = [count_buckets(part) for part in parts]
    whole = count_buckets([value for part in parts for value in part])
    for order in itertools.permutations(counted):
        assert add_counts(order) == whole


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1 << 52)), max_size=30))
def test_distributions_of_groups_are_those_of_each(rows: list[tuple[int, int]]) -> None:
    found = count_buckets_by(*(np.array([row[k] for row in rows], np.int64) for k in (0, 1)))
    each = {group: count_buckets([duration for of, duration in rows if of == group]) for group, _ in rows}
    assert found == each
    assert [list(counts) for _, counts in sorted(found.items())] == [sorted(each[group]) for group in sorted(each)]


# ---------------------------------------------------------------- kernels


def test_kernels_by_name_and_class() -> None:
    found = planted(
        gpu("gemm", 0, 10), gpu("gemm", 20, 40), gpu("gemm", 50, 80),
        gpu("ncclDevKernel_AllReduce", 90, 100), gpu("Memset (Device)", 100, 101, category="gpu_memset"),
    )  # fmt: skip
    gemm, nccl, memset = merge_kernels([found.kernels])
    assert (gemm.name, gemm.work_class, gemm.count, gemm.total_ns) == ("gemm", "compute", 3, 60 * US)
    assert (gemm.min_ns, gemm.mean_ns, gemm.max_ns, gemm.deviation_ns) == (10 * US, 20 * US, 30 * US, 8165)
    assert gemm.p50_ns == pytest.approx(20 * US, rel=0.016)
    assert gemm.p99_ns == pytest.approx(30 * US, rel=0.016)
    assert (sum(gemm.histogram.counts), gemm.ranks) == (3, 1)
    assert (nccl.work_class, memset.work_class) == ("communication", "memory")


def test_what_is_not_listed_is_summed() -> None:
    events = [gpu(f"kernel_{number:03}", 10 * number, 10 * number + 1 + number % 3) for number in range(300)]
    found = planted(*events)
    assert len(found.kernels) <= 50
    assert sum(group.count for group in found.kernels) == 300
    merged = merge_kernels([found.kernels, found.kernels])
    assert (sum(kernel.count for kernel in merged), merged[-1].name) == (600, OTHER)
    assert sum(kernel.total_ns for kernel in merged) == 2 * sum(1 + number % 3 for number in range(300)) * US


def test_long_names_stay_apart() -> None:
    one, other = "k" * 3000 + "a", "k" * 3000 + "b"
    assert short_name(one) != short_name(other)
    assert len(short_name(one)) <= 160
    assert short_name("gemm") == "gemm"


def group(mean: int, name: str = "gemm", work_class: int = 0) -> KernelGroup:
    return KernelGroup(name=name, work_class=work_class, count=10, total_ns=10 * mean, min_ns=mean, max_ns=mean,
                       spread=0.0, buckets={})  # fmt: skip


@pytest.mark.parametrize(
    ("means", "work_class", "found"),
    [
        ([100, 101, 99, 100, 130], 0, [4]),
        ([100, 101, 99, 100, 70], 0, [4]),
        ([100, 101, 99, 100, 130], 1, []),  # communication lasts as long as the slowest rank lets it
        ([100, 101, 99, 100, 103], 0, []),  # far in deviations, but below 5 %
        ([100, 150, 80, 120, 160], 0, []),  # no further than ranks differ
        ([100, 100, 130], 0, []),  # too few others
        ([100, 100, 100, 100], 0, []),
    ],
)
def test_outliers_are_far_from_the_other_ranks(means: list[int], work_class: int, found: list[int]) -> None:
    ranks = [(number, [group(mean * US, work_class=work_class)]) for number, mean in enumerate(means)]
    assert [outlier.rank for outlier in find_outliers(ranks)] == found
    assert find_outliers(ranks[::-1]) == find_outliers(ranks)


# ---------------------------------------------------------------- communication


def collective(start: int, end: int, **args: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "Collective name": "allreduce", "Process Group Name": "dp", "Group size": 8, "dtype": "BFloat16",
        "In msg nelems": 1000, "Out msg nelems": 1000,
    }  # fmt: skip
    return gpu("ncclDevKernel_AllReduce_Sum", start, end, stream=20, **(arguments | args))


def test_communication_by_group_kind_and_size() -> None:
    found = planted(
        collective(0, 10), collective(20, 40), gpu("gemm", 5, 30), collective(50, 60, **{"In msg nelems": 500}),
        collective(70, 80, **{"Collective name": "_allgather_base", "In msg nelems": 10, "Out msg nelems": 80}),
        gpu("ncclKernel_Broadcast", 90, 91, stream=20),
    )  # fmt: skip
    table = merge_communication([found.communication, found.communication])
    assert [(row.kind, row.group, row.message_bytes, row.count, row.total_ns // US) for row in table] == [
        ("all_reduce", "dp", 2000, 4, 60), ("all_gather", "dp", 160, 2, 20), ("all_reduce", "dp", 1000, 2, 20),
        ("broadcast", "", None, 2, 2),
    ]  # fmt: skip
    first, gathered, _, unsaid = table
    assert (first.overlapped_ns, first.min_ns, first.group_size) == (2 * 15 * US, 10 * US, 8)
    assert first.algorithm_bytes_per_s == 2000 * 4 * 10**9 // (60 * US)
    assert first.bus_bytes_per_s == round(first.algorithm_bytes_per_s * 1.75)
    assert first.best_bus_bytes_per_s == round(2000 * 10**9 / (10 * US) * 1.75)
    assert gathered.bus_bytes_per_s == round(160 * 10**9 // (10 * US) * 7 / 8)
    assert (unsaid.algorithm_bytes_per_s, unsaid.bus_bytes_per_s, unsaid.ranks) == (None, None, 2)


@pytest.mark.parametrize(
    ("kind", "members", "factor"),
    [("all_reduce", 8, 1.75), ("all_reduce", 2, 1.0), ("all_gather", 4, 0.75), ("reduce_scatter", 4, 0.75),
     ("all_to_all", 4, 0.75), ("broadcast", 8, 1.0), ("send", 2, 1.0), ("barrier", 8, None), ("all_reduce", 1, None),
     ("all_reduce", None, None), ("other", 8, None)],
)  # fmt: skip
def test_the_bus_factors_of_nccl_tests(kind: str, members: int | None, factor: float | None) -> None:
    assert bus_factor(kind, members) == factor


def test_a_cut_table_keeps_its_sums() -> None:
    events = [collective(10 * n, 10 * n + 5, **{"In msg nelems": 100 + n}) for n in range(200)]
    found = planted(*events)
    assert len(found.communication) == 64
    assert sum(row.count for row in found.communication) == 200
    assert sum(row.total_ns for row in merge_communication([found.communication])) == 1000 * US


def test_a_cpu_rank_has_the_ranges_of_its_backend() -> None:
    events = [{"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 1, "tid": 2, "ts": 100 * n,
               "dur": 10 + n} for n in range(3)]  # fmt: skip
    (row,) = merge_communication([planted(*events).communication])
    assert (row.kind, row.count, row.total_ns, row.min_ns) == ("all_reduce", 3, 33 * US, 10 * US)


# ---------------------------------------------------------------- copies, iterations


def test_copies_by_direction_with_bandwidth() -> None:
    rank = rank_of(planted(
        gpu("Memcpy HtoD (Pinned -> Device)", 0, 10, category="gpu_memcpy", bytes=1000),
        gpu("Memcpy HtoD (Pageable -> Device)", 20, 30, category="gpu_memcpy", bytes=10),
        gpu("CopyDeviceToHost", 40, 50, category="gpu_memcpy", bytes=100),
        gpu("CopyDeviceToHost", 60, 80, category="gpu_memcpy"),
        gpu("Memset (Device)", 90, 95, category="gpu_memset", bytes=64),
    ))  # fmt: skip
    assert [(c.kind, c.pageable, c.count, c.total_ns, c.bytes, c.bytes_per_s) for c in rank.copies] == [
        ("DtoH", False, 2, 30 * US, 100, 10**7), ("HtoD", False, 1, 10 * US, 1000, 10**8),
        ("HtoD", True, 1, 10 * US, 10, 10**6), ("memset", False, 1, 5 * US, 64, 64 * 10**9 // (5 * US)),
    ]  # fmt: skip


def test_iterations_have_their_device_time() -> None:
    marks = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 1, "tid": 1, "ts": 100 * n,
              "dur": 100} for n in (1, 2)]  # fmt: skip
    rank = rank_of(planted(
        *marks, gpu("gemm", 90, 130), collective(120, 150), gpu("Memset", 145, 160, category="gpu_memset"),
        gpu("gemm", 190, 210),
    ))  # fmt: skip
    first, second = (iteration.time_ns for iteration in rank.iterations)
    assert msgspec.to_builtins(first) == {
        "span": 100 * US, "compute": 40 * US, "overlapped_communication": 10 * US, "exposed_communication": 20 * US,
        "exposed_memory": 10 * US, "idle": 30 * US, "unrecorded": 0,
    }  # fmt: skip
    assert second is not None
    assert (second.compute, second.idle) == (10 * US, 90 * US)


# ---------------------------------------------------------------- the naive twin


@no_collections()
def agree(document: Any, data: bytes) -> None:
    rows, summary = read_rows(document), summary_of(data)
    rank = rank_of(summary)
    kernels = naive_kernels(rows)
    listed = merge_kernels([summary.kernels])
    for kernel in listed:
        if kernel.name != OTHER:
            (truth,) = [
                values
                for (name, work), values in kernels.items()
                if (short_name(name), work) == (kernel.name, kernel.work_class)
            ]
            for field in ("count", "total_ns", "min_ns", "max_ns", "mean_ns"):
                assert getattr(kernel, field) == truth[field], (kernel.name, field)
            assert kernel.deviation_ns == pytest.approx(truth["deviation_ns"], abs=1)
            for field in ("p50_ns", "p99_ns"):
                assert getattr(kernel, field) == pytest.approx(truth[field], rel=1 / 32, abs=1)
    assert sum(kernel.total_ns for kernel in listed) == sum(truth["total_ns"] for truth in kernels.values())
    assert {(c.kind, c.pageable): (c.count, c.total_ns, c.bytes) for c in rank.copies} == naive_copies(rows)
    if rank.launches is not None:
        for field, value in naive_launches(rows).items():
            assert getattr(rank.launches, field) == value, field
    table = merge_communication([summary.communication])
    if rank.kind == "gpu":
        found = (sum(r.count for r in table), sum(r.total_ns for r in table), sum(r.overlapped_ns for r in table))
        assert found == naive_communication(rows)


@pytest.mark.parametrize("seed", range(2))
def test_a_naive_twin_agrees_on_planted_traces(seed: int) -> None:
    trace = plant(seed, seed=seed)
    agree(json.loads(trace.text(), parse_float=Decimal), trace.gzipped())


@pytest.mark.parametrize("folder", REAL)
def test_a_naive_twin_agrees_on_real_traces(folder: str) -> None:
    for file in traces_in(folder):
        agree(load(file), gzip.decompress(file.read_bytes()))


def test_tables_do_not_depend_on_the_order_of_ranks() -> None:
    summaries = [summary_of(plant(rank).gzipped()) for rank in range(4)]
    for order in itertools.permutations(summaries):
        assert merge_kernels([s.kernels for s in order]) == merge_kernels([s.kernels for s in summaries])
        assert merge_communication([s.communication for s in order]) == merge_communication(
            [s.communication for s in summaries]
        )


def test_an_empty_device_has_no_kernels() -> None:
    assert measure_kernels([], read_trace(io.BytesIO(b'{"traceEvents": []}'), "t", Problems())) == []
    assert merge_kernels([]) == []
