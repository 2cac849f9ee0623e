"""The slices of a report: typed, within their bytes, and what is left out is counted."""

import gzip
from pathlib import Path

import msgspec
import pytest
from fleetprof_analyzer.capture.store import analyze_capture
from fleetprof_analyzer.slices.head import make_head
from fleetprof_analyzer.slices.writer import MAKERS, encode_slice, write_slices
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.efficiency import Efficiency, Throughput
from fleetprof_api.report.report import Problem, Report, RequestInfo
from fleetprof_api.slices.head import Head
from fleetprof_api.slices.kernels import KernelSlice, RankKernelSlice
from fleetprof_api.slices.overview import Overview
from fleetprof_api.slices.ranks import IterationSlice, RankSlice
from fleetprof_api.slices.table import SLICES
from harness.memory_store import MemoryStore
from harness.reference.written_reports import job
from harness.reports.large_job import enlarge

TRACES = Path(__file__).parents[2] / "data" / "traces"
LATE = 9_637


@pytest.fixture(scope="module")
def report() -> Report:
    """A real one, of four ranks; rank 2 is late."""
    store = MemoryStore()
    store.put(keys.ledger_key("ns", "uid"), msgspec.json.encode(Ledger(uid="uid", name="uid", namespace="ns")))
    for rank in range(4):
        trace = (TRACES / "gpu_slow_rank" / f"rank{rank}.json.gz").read_bytes()
        store.put(keys.trace_key("ns", "uid", rank), trace)
    return analyze_capture(store, "ns", "uid")


@pytest.fixture(scope="module")
def large(report: Report) -> Report:
    """The same of ten thousand ranks, of which a late one is named."""
    assert report.stragglers is not None
    named = [msgspec.structs.replace(one, rank=LATE) for one in report.stragglers.ranks]
    late = msgspec.structs.replace(report.stragglers, ranks=named)
    return msgspec.structs.replace(enlarge(report, 10_000, LATE), stragglers=late)


def test_each_slice_has_its_maker() -> None:
    assert list(MAKERS) == list(SLICES)


def test_a_slice_that_cannot_be_made_costs_its_part_alone(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write_slices(report)
    for name in SLICES:
        with monkeypatch.context() as planted:
            planted.setitem(MAKERS, name, lambda report, most: report.ranks[10**6])
            assert write_slices(report) == {other: data for other, data in whole.items() if other != name}


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_is_as_its_type_says(report: Report, name: str) -> None:
    data = encode_slice(report, name)
    decoded = msgspec.json.decode(data, type=SLICES[name].model)
    assert decoded.cut == 0
    assert set(msgspec.json.decode(data)) == set(SLICES[name].model.__struct_fields__)
    assert gzip.decompress(write_slices(report)[name]) == data


@pytest.mark.parametrize("name", SLICES)
def test_no_slice_is_longer_than_its_bytes(large: Report, name: str) -> None:
    problems = [Problem(kind=f"k{number}", message="m" * 5_000) for number in range(1_000)]
    wordy = msgspec.structs.replace(large, problems=problems)
    assert len(encode_slice(wordy, name)) <= SLICES[name].most_bytes


def test_an_empty_report_has_all_slices() -> None:
    assert set(write_slices(Report())) == set(SLICES)


@pytest.mark.parametrize(("name", "kind"), [("rank_kernels", RankKernelSlice), ("ranks", RankSlice)])
def test_of_too_many_ranks_the_named_ones_stay(
    large: Report, name: str, kind: type[RankKernelSlice | RankSlice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SLICES, name, SLICES[name]._replace(most_bytes=200_000))
    decoded = msgspec.json.decode(encode_slice(large, name), type=kind)
    ranks = [one.rank for one in decoded.ranks] if isinstance(decoded, RankKernelSlice) else decoded.rank
    assert len(ranks) + decoded.cut == 10_000
    assert ranks[-1] == LATE
    assert ranks[:3] == [0, 1, 2]


def test_iterations_of_too_many_ranks_are_those_of_the_same_ranks(
    large: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SLICES, "iterations", SLICES["iterations"]._replace(most_bytes=100_000))
    decoded = msgspec.json.decode(encode_slice(large, "iterations"), type=IterationSlice)
    (section,) = decoded.sections
    assert section.ranks[-1] == LATE
    whole = {table.measure: table.values[LATE] for table in large.heterogeneity[0].tables}
    assert {table.measure: table.values[-1] for table in section.tables} == whole
    assert len(section.ranks) + decoded.cut == 10_000


def test_of_ten_thousand_kernels_those_with_most_time_stay(report: Report) -> None:
    kernels = [
        msgspec.structs.replace(report.kernels[0], name=f"kernel {number} {'x' * 600}", total_ns=1_000_000 - number)
        for number in range(10_000)
    ]
    decoded = msgspec.json.decode(
        encode_slice(msgspec.structs.replace(report, kernels=kernels[::-1]), "kernels"), type=KernelSlice
    )
    shown = len(decoded.rows)
    assert (shown + decoded.cut, shown > 1_000) == (10_000, True)
    assert [row.statistics.name for row in decoded.rows] == [one.name for one in kernels[:shown]]
    assert decoded.total_ns == sum(one.total_ns for one in report.kernel_classes)


def test_the_overview_says_the_answer_and_counts() -> None:
    overview = msgspec.json.decode(encode_slice(job(None), "overview"), type=Overview)
    assert overview.answer.sentence
    assert overview.facts.rank_count == len(job(None).ranks)


def test_no_text_of_a_request_costs_the_overview(report: Report) -> None:
    long = "x" * 300_000
    request = RequestInfo(uid="u", name=long, namespace="ns", target=long, requester=long, message=long)
    assert encode_slice(msgspec.structs.replace(report, title=long, request=request), "overview")


def test_the_head_is_a_few_kilobytes(large: Report) -> None:
    hosts = [msgspec.structs.replace(one, host_name=f"gpu-{one.rank}") for one in large.ranks]
    head = msgspec.json.decode(encode_slice(msgspec.structs.replace(large, ranks=hosts), "head"), type=Head)
    assert (head.figures.rank_count, len(head.hosts), head.cut) == (10_000, 512, 9_488)
    assert head.figures.stragglers == [LATE]


def test_kernels_are_compared_between_ranks(report: Report) -> None:
    decoded = msgspec.json.decode(encode_slice(report, "kernels"), type=KernelSlice)
    (far,) = next(row.outliers for row in decoded.rows if row.statistics.name == "backward_0")
    assert far.rank == 2
    assert all(sum(row.bars) == row.statistics.count for row in decoded.rows)


@pytest.mark.parametrize(
    ("throughput", "samples_per_ks"),
    [
        (None, None),
        (Throughput(ranks=4, rows_per_second=12.5), 12_500),
        (Throughput(ranks=4, rows_per_second=12.5, samples_per_second=40.0), 10_000),
        (Throughput(ranks=4, indices_per_second=900.0), None),
    ],
)
def test_samples_of_the_head_are_those_of_one_rank(
    report: Report, throughput: Throughput | None, samples_per_ks: int | None
) -> None:
    found = msgspec.structs.replace(report, throughput=throughput)
    assert make_head(found, 8).figures.rank_samples_per_ks == samples_per_ks


def test_the_utilization_of_the_head_is_that_of_most_ranks(report: Report) -> None:
    kinds = [
        Efficiency(ranks=1, model_utilization_permille=500),
        Efficiency(ranks=3, model_utilization_permille=380),
    ]
    found = msgspec.structs.replace(report, efficiency=kinds)
    assert make_head(found, 8).figures.model_utilization_permille == 380
