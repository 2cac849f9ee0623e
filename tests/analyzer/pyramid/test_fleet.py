"""The overview: every rank's iterations with their parts, and which ranks have a file."""

import msgspec
import pytest
from fleetprof_analyzer.capture.store import analyze_capture, merge_capture, summarise_ranks
from fleetprof_analyzer.pyramid.fleet import MEASURES, UNKNOWN, write_fleet
from fleetprof_analyzer.rank.measures.course import COURSE_CLASSES
from fleetprof_api import keys
from fleetprof_api.report.report import Iteration, Rank, Report, TimeBreakdown
from fleetprof_api.report.stragglers import Straggler, Stragglers
from fleetprof_api.slices.table import SLICES
from fleetprof_store.base import StoreError
from harness.memory_store import MemoryStore
from harness.timelines.timeline_reader import FleetFile, RankFile
from harness.traces.planted.traces import plant_capture


def make_rank(number: int, starts: list[int], length_ns: int = 100) -> Rank:
    times = TimeBreakdown(span=length_ns, compute=60, exposed_communication=30, idle=10)
    iterations = [
        Iteration(index=7 + n, start_ns=at, duration_ns=length_ns, time_ns=times) for n, at in enumerate(starts)
    ]
    return Rank(
        rank=number, source=f"ranks/{number}/trace.json.gz", kind="gpu", time_basis="device", time_ns=times,
        start_ns=starts[0], iterations=iterations,
    )  # fmt: skip


def test_cells_are_the_iterations_of_all_ranks_on_one_axis() -> None:
    epoch = 1_790_857_026_000_000_123
    report = Report(ranks=[make_rank(0, [epoch + 50, epoch + 150]), make_rank(3, [epoch])])
    file = FleetFile(write_fleet(report, {3: 999}, {}))
    assert file.header.origin_ns == str(epoch)
    assert file.header.ranks.rank == [0, 3]
    assert file.header.ranks.detail == ["stages", "full"]
    assert file.header.ranks.file_bytes == [0, 999]
    cells = file.cells()
    assert cells["row"].tolist() == [0, 0, 1]
    assert cells["index"].tolist() == [7, 8, 7]
    assert cells["start_ns"].tolist() == [50, 150, 0]
    assert [cells[f"{name}_ns"][0] for name in MEASURES] == [60, 0, 30, 0, 10]
    assert cells["stage_forward_ns"].tolist() == [UNKNOWN] * 3


def test_a_clock_that_is_apart_is_put_right_and_lateness_is_left() -> None:
    ranks = [
        make_rank(0, [1000, 1100, 1200]),
        make_rank(1, [1030, 1130, 1230]),
        make_rank(2, [91_000, 91_100, 91_200]),
        make_rank(3, [1000, 1100, 1200]),
    ]
    file = FleetFile(write_fleet(Report(ranks=ranks), {}, {}))
    assert file.header.ranks.shift_ns == [0, 0, -90_000, 0]
    assert file.cells()["start_ns"].reshape(4, 3)[:, 0].tolist() == [0, 30, 0, 0]
    assert file.header.span_ns == 330


def test_of_too_many_iterations_the_first_of_each_rank_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetprof_analyzer.pyramid.fleet.MOST_CELLS", 4)
    file = FleetFile(write_fleet(Report(ranks=[make_rank(n, [100, 200, 300]) for n in range(2)]), {}, {}))
    assert file.cells()["index"].tolist() == [7, 8, 7, 8]
    assert file.header.cells_left_out == 2


def test_the_median_rank_is_none_of_the_late_ones() -> None:
    ranks = [make_rank(0, [0], 100), make_rank(1, [0], 110), make_rank(2, [0], 120)]
    stragglers = Stragglers(verdict="straggler", ranks=[Straggler(rank=1, lateness_ns=1, cause="slow_gpu")])

    def median(found: Stragglers | None) -> int | None:
        return FleetFile(write_fleet(Report(ranks=ranks, stragglers=found), {}, {})).header.median_rank

    assert median(None) == 1
    assert median(stragglers) == 2


def test_courses_say_of_which_class_most_of_each_moment_was() -> None:
    ranks = [make_rank(n, [0, 100]) for n in range(4)]
    sources = [rank.source for rank in ranks]
    courses = {
        sources[0]: bytes([1, 1, 2, 0, 1, 2]),
        sources[1]: bytes([1, 1, 1]),  # of two iterations, which cannot be
        sources[2]: bytes([1, 99]),  # of no class
        sources[3]: bytes([5, 1]),
    }
    file = FleetFile(write_fleet(Report(ranks=ranks), {}, courses))
    assert file.header.moments == [3, 0, 0, 1]
    assert file.courses().tolist() == [1, 1, 2, 0, 1, 2, 5, 1]
    assert FleetFile(write_fleet(Report(ranks=ranks), {}, {})).courses().tolist() == []


def test_courses_end_with_the_iterations_that_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = [make_rank(n, [0, 100]) for n in range(2)]
    courses = {rank.source: bytes([1, 2]) for rank in ranks}
    monkeypatch.setattr("fleetprof_analyzer.pyramid.fleet.MOST_CELLS", 2)
    assert FleetFile(write_fleet(Report(ranks=ranks), {}, courses)).courses().tolist() == [1, 1]
    monkeypatch.undo()
    monkeypatch.setattr("fleetprof_analyzer.pyramid.fleet.MOST_MOMENTS", 2)
    file = FleetFile(write_fleet(Report(ranks=ranks), {}, courses))
    assert (file.header.moments, file.courses().tolist()) == ([1, 0], [1, 2])


def test_a_report_without_ranks_has_an_overview() -> None:
    assert len(FleetFile(write_fleet(Report(), {}, {})).cells()["row"]) == 0


def test_an_analysis_writes_a_file_per_rank_and_the_overview_last() -> None:
    class Recording(MemoryStore):
        written: list[str] = []  # noqa: RUF012

        def put(self, key: str, data: bytes) -> None:
            self.written.append(key.removeprefix(f"v1/default/{uid}/"))
            super().put(key, data)

    store = MemoryStore()
    uid = plant_capture(store, ranks=3, failed=(1,)).uid
    recording = Recording()
    for info in store.list("v1/"):
        recording.put(info.key, store.get(info.key))
    recording.written.clear()
    analyze_capture(recording, "default", uid)
    assert recording.written == [
        "timeline/rank-0.bin", "timeline/rank-2.bin", "timeline/fleet.bin", "report.html",
        *(f"slices/{name}.json.gz" for name in SLICES), "report.json",
    ]  # fmt: skip
    file = RankFile(recording.get(keys.rank_timeline_key("default", uid, 2)))
    assert (file.header.rank, file.header.kind, len(file.header.iterations.index)) == (2, "gpu", 5)
    overview = FleetFile(recording.get(keys.fleet_timeline_key("default", uid)))
    assert overview.header.ranks.detail == ["full", "full"]


def test_shards_and_a_merge_write_the_same_timeline() -> None:
    stores = [MemoryStore(), MemoryStore()]
    uids = {plant_capture(store, ranks=3).uid for store in stores}
    (uid,) = uids
    analyze_capture(stores[0], "default", uid)
    for shard in range(2):
        summarise_ranks(stores[1], "default", uid, shard=shard, shards=2)
    merge_capture(stores[1], "default", uid)
    prefix = keys.timeline_prefix("default", uid)
    found = [{info.key: store.get(info.key) for info in store.list(prefix)} for store in stores]
    assert found[0] == found[1]
    assert len(found[0]) == 4


def test_a_rank_whose_trace_stayed_where_it_was_has_stages_only() -> None:
    store = MemoryStore()
    uid = plant_capture(store, ranks=2).uid
    summarise_ranks(store, "default", uid, shard=0, shards=1)
    traces = [keys.trace_key("default", uid, 1), keys.rank_timeline_key("default", uid, 1)]
    store.delete(traces)
    merge_capture(store, "default", uid)
    overview = FleetFile(store.get(keys.fleet_timeline_key("default", uid)))
    assert overview.header.ranks.detail == ["full", "stages"]
    assert (overview.cells()["duration_ns"] > 0).all()
    assert set(overview.courses().tolist()) > {COURSE_CLASSES.index("compute")}
    assert 0 not in overview.header.moments


def test_timelines_of_ranks_that_are_no_longer_in_the_report_go() -> None:
    store = MemoryStore()
    uid = plant_capture(store, ranks=2).uid
    stale = keys.rank_timeline_key("default", uid, 7)
    store.put(stale, b"of an earlier analysis")
    analyze_capture(store, "default", uid)
    left = {info.key for info in store.list(keys.timeline_prefix("default", uid))}
    assert stale not in left
    assert len(left) == 3


def test_a_store_that_lets_nobody_delete_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("deletion is not allowed", retryable=False)

    store = MemoryStore()
    uid = plant_capture(store, ranks=2).uid
    store.put(keys.rank_timeline_key("default", uid, 7), b"of an earlier analysis")
    monkeypatch.setattr(store, "delete", refuse)
    assert len(analyze_capture(store, "default", uid).ranks) == 2


def test_a_fault_of_ours_costs_the_timeline_and_not_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr("fleetprof_analyzer.capture.timeline_files.write_rank", fail)
    store = MemoryStore()
    uid = plant_capture(store, ranks=2).uid
    report = analyze_capture(store, "default", uid)
    assert [rank.rank for rank in report.ranks] == [0, 1]
    overview = FleetFile(store.get(keys.fleet_timeline_key("default", uid)))
    assert overview.header.ranks.detail == ["stages", "stages"]
    assert msgspec.json.encode(overview.header)
