"""The clocks of a cut: matched collectives end together, as nearly as is told, and what cannot be tied is told too."""

from pathlib import Path

from fleetprof_analyzer.timeline.merged_trace import MergedTrace, Wanted
from fleetprof_analyzer.timeline.trace_window import cut_directory
from fleetprof_analyzer.timeline.window import parse_window
from harness.reference.perfetto_rules import Imported, import_trace
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.ranks import BASE_NS, ITERATION_NS, MS, PlantedRank, collective_end_ns, write_ranks
from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.traces import Digits, microseconds, to_json
from harness.traces.planted.traces_of_jobs import Clarity, json_of, traces_of

SECOND = 10**9
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def cut(folder: Path, window: str, ranks: list[int] | None = None) -> tuple[MergedTrace, Imported]:
    parts: list[bytes] = []
    made = cut_directory(folder, Wanted(parse_window(window), ranks), parts.append)
    return made, import_trace(b"".join(parts))


def test_matched_collectives_end_together_whatever_the_clocks_say(tmp_path: Path) -> None:
    skews = {0: 0, 1: 5 * SECOND + 17, 2: -3 * SECOND, 3: 3600 * SECOND}
    write_ranks(tmp_path, *(PlantedRank(number, skew_ns=skew) for number, skew in skews.items()))
    made, found = cut(tmp_path, "7..9", [0, 1, 2, 3])
    assert [(one.rank, one.offset_ns, one.apart) for one in made.ranks] == [
        (number, -skew, "") for number, skew in skews.items()
    ]
    ends: dict[int, set[int]] = {}
    for position, one in enumerate(found.named(ALL_REDUCE)):
        ends.setdefault(position // 4, set()).add(one["end_ns"] + found.top_level["baseTimeNanoseconds"])
    assert ends == {number: {BASE_NS + collective_end_ns(7 + number)} for number in range(3)}
    assert made.clocks.startswith("aligned by sequence numbers; a rank's end of a collective is 0 µs from")
    assert found.top_level["fleetprof"]["clocks"]["residual_most_ns"] == 0


def test_ends_differ_by_no_more_than_the_residual_that_is_told(tmp_path: Path) -> None:
    documents = write_ranks(tmp_path, *(PlantedRank(number, skew_ns=number * SECOND) for number in range(3)))
    # A clock that drifts: 3 µs more in every iteration.
    drifting = documents[2]["traceEvents"]
    for event in drifting:
        if isinstance(event["ts"], Digits):
            time = int(event["ts"].digits.replace(".", ""))
            event["ts"] = Digits(microseconds(time + 3000 * ((time - 2 * SECOND) // ITERATION_NS)))
    (tmp_path / "rank2.json").write_text(to_json(documents[2]))
    _, found = cut(tmp_path, "all", [0, 1, 2])
    residual = found.top_level["fleetprof"]["clocks"]["residual_most_ns"]
    assert 3000 <= residual <= 6000
    together = found.named(ALL_REDUCE)
    for first in range(0, len(together), 3):
        ends = sorted(one["end_ns"] for one in together[first : first + 3])
        assert max(ends[1] - ends[0], ends[2] - ends[1]) <= residual


def test_a_job_with_skew_and_drift_is_put_together_to_some_microseconds(tmp_path: Path) -> None:
    """Clocks 5 s and 5 ppm apart; four ranks in two tensor-parallel groups, data-parallel across."""
    job = PlantedJob(JobShape(dp=2, tp=2, layers=2, buckets=2, iterations=4), PlantedFault(), 3)
    for number, trace in enumerate(traces_of(job, Clarity(), 3)):
        (tmp_path / f"rank{number}.json").write_text(json_of(trace))
    made, found = cut(tmp_path, "all")
    assert [one.apart for one in made.ranks] == 4 * [""]
    assert max(abs(one.offset_ns) for one in made.ranks) > SECOND
    residual = found.top_level["fleetprof"]["clocks"]["residual_most_ns"]
    assert residual < 20_000
    ends: dict[tuple[str, int], list[int]] = {}
    for one in found.slices:
        if "Seq" in one.get("args", {}):
            ends.setdefault((one["args"]["Process Group Name"], one["args"]["Seq"]), []).append(one["end_ns"])
    assert len(ends) > 20
    assert max(max(members) - min(members) for members in ends.values()) <= 2 * residual


def test_without_collectives_each_keeps_its_clock_and_it_is_said(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0, talks=False), PlantedRank(1, talks=False, skew_ns=2 * SECOND))
    made, found = cut(tmp_path, "8", [0, 1])
    assert made.clocks == (
        "not aligned: rank 0, rank 1 (its trace holds no collective); their times are those of their own clocks"
    )
    assert [one.offset_ns for one in made.ranks] == [0, 0]
    assert found.top_level["fleetprof"]["clocks"]["residual_most_ns"] is None
    first, second = found.named("ProfilerStep#8")
    assert second["start_ns"] - first["start_ns"] == 2 * SECOND
    assert not found.named("ProfilerStep#7")


LATE = (0, 0, MS, 0, 0, 0, 0, MS, 3 * MS, MS, 0)  # iterations 7 to 10: 1, 3, 1 and 0 ms


def test_ranks_of_one_host_keep_its_clock_where_collectives_end_late_on_a_busy_one(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0, host="node-a"), PlantedRank(1, host="node-a", noted_late_ns=LATE))
    made, found = cut(tmp_path, "all")
    assert [one.offset_ns for one in made.ranks] == [0, 0]
    assert made.clocks.startswith("aligned by the clock of their host node-a; a rank's end of a collective is ")
    assert found.top_level["fleetprof"]["clocks"]["residual_most_ns"] == 3 * MS // 2
    write_ranks(tmp_path, PlantedRank(0, host="node-a"), PlantedRank(1, host="node-b", noted_late_ns=LATE))
    assert [one.offset_ns for one in cut(tmp_path, "all")[0].ranks] == [0, -MS]


def test_a_host_name_that_two_machines_share_deceives_nobody(tmp_path: Path) -> None:
    write_ranks(
        tmp_path, PlantedRank(0, host="localhost"), PlantedRank(1, host="localhost", skew_ns=SECOND, noted_late_ns=LATE)
    )
    made, _ = cut(tmp_path, "all")
    assert [one.offset_ns for one in made.ranks] == [0, -SECOND - MS]
    assert made.clocks.startswith("aligned by sequence numbers;")


def test_without_collectives_one_host_is_one_clock(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0, host="node-a", talks=False), PlantedRank(1, host="node-a", talks=False))
    made, _ = cut(tmp_path, "8")
    assert made.clocks == "aligned by the clock of their host node-a"
    assert [one.apart for one in made.ranks] == ["", ""]


def test_ranks_of_each_host_share_one_offset(tmp_path: Path) -> None:
    write_ranks(
        tmp_path,
        PlantedRank(0, host="node-a"),
        PlantedRank(1, host="node-a", noted_late_ns=LATE),
        PlantedRank(2, host="node-b", skew_ns=SECOND),
        PlantedRank(3, host="node-b", skew_ns=SECOND, noted_late_ns=LATE),
    )
    made, _ = cut(tmp_path, "all")
    offsets = [one.offset_ns for one in made.ranks]
    assert offsets[0] == offsets[1] == 0
    assert offsets[2] == offsets[3]
    assert abs(offsets[2] + SECOND) <= MS
    assert made.clocks.startswith("aligned by sequence numbers and the clock of each host;")


def test_a_rank_that_cannot_be_tied_is_named_and_the_others_are_tied(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0), PlantedRank(1, skew_ns=SECOND), PlantedRank(2, talks=False))
    made, _ = cut(tmp_path, "8", [0, 1, 2])
    assert [(one.offset_ns, one.apart) for one in made.ranks] == [
        (0, ""), (-SECOND, ""), (0, "its trace holds no collective")
    ]  # fmt: skip
    assert made.clocks.startswith("aligned by sequence numbers;")
    apart = "not aligned: rank 2 (its trace holds no collective); its times are those of its own clock"
    assert made.clocks.endswith(f"; {apart}")
