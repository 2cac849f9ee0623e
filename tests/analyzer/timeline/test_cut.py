"""A cut for Perfetto: what is in it, on which clock, and nothing of one rank mixed with another's."""

import json
from pathlib import Path
from typing import Any

import pytest
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.timeline.merged_trace import MergedTrace, Wanted
from fleetprof_analyzer.timeline.trace_window import cut_directory
from fleetprof_analyzer.timeline.window import NoSuchPart, parse_window
from fleetprof_analyzer.trace.problems import Problems
from harness.reference.perfetto_rules import Imported, import_trace
from harness.traces.planted.ranks import BASE_NS, ITERATION_NS, MS, PlantedRank, lasting, plant_rank, write_ranks
from harness.traces.planted.traces import Digits, microseconds, to_json
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SECOND = 10**9
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def cut(folder: Path, window: str, ranks: list[int] | None = None) -> tuple[MergedTrace, Imported]:
    parts: list[bytes] = []
    made = cut_directory(folder, Wanted(parse_window(window), ranks), parts.append)
    return made, import_trace(b"".join(parts))


def originals(found: Imported) -> list[dict[str, Any]]:
    return [one for one in found.slices + found.dropped if one["cat"] != "fleetprof"]


def tags(found: Imported) -> list[str]:
    return sorted(one["args"]["tag"] for one in originals(found))


WINDOWS = {
    "7": (0, ITERATION_NS),
    "8..9": (ITERATION_NS, 3 * ITERATION_NS),
    "all": (-ITERATION_NS, 9 * ITERATION_NS),
    "5ms..12.5ms": (5 * MS, 12 * MS + 500_000),
    "20000us..21ms": (20 * MS, 21 * MS),
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("indent", [None, 1])
def test_what_touches_the_window_is_there_once_and_whole(tmp_path: Path, window: str, indent: int | None) -> None:
    ranks = [PlantedRank(0), PlantedRank(1, skew_ns=2 * SECOND), PlantedRank(2, skew_ns=-SECOND)]
    documents = write_ranks(tmp_path, *ranks, indent=indent)
    made, found = cut(tmp_path, window, [0, 1, 2])
    begin, end = (7 * ITERATION_NS + at for at in WINDOWS[window])
    expected = {}
    for rank in ranks:
        for one in lasting(documents[rank.number]):
            start = one["start_ns"] - rank.skew_ns
            if start < end and start + one["duration_ns"] > begin:
                expected[one["args"]["tag"]] = (start, one["duration_ns"], one["name"], one["args"])
    base = found.top_level["baseTimeNanoseconds"] - BASE_NS
    kept = {
        one["args"]["tag"]: (one["start_ns"] + base, one["duration_ns"], one["name"], one["args"])
        for one in originals(found)
    }
    assert kept == expected
    assert len(tags(found)) == len(expected)
    inside = [index for index in range(7, 11) if begin <= index * ITERATION_NS + 4 * MS < end]
    assert sorted(one["args"]["W"] for one in found.counters) == sorted(3 * [300 + index for index in inside])
    lengths = len(originals(found)), len(found.counters), len(found.instants)
    assert sum(one.events for one in made.ranks) >= sum(lengths)
    assert found.dropped == []


def test_work_that_was_launched_in_the_window_belongs_to_it(tmp_path: Path) -> None:
    document = plant_rank(PlantedRank(0))
    for event in document["traceEvents"]:
        if event["name"] == "gemm":
            event["ts"] = Digits(microseconds(int(event["ts"].digits.replace(".", "")) + ITERATION_NS))
    (tmp_path / "rank0.json").write_text(to_json(document))
    _, found = cut(tmp_path, "8")
    # The kernel of iteration 8 ends at 13.6 ms after the iteration began, that of iteration 7 ran within it.
    assert len(found.named("gemm")) == 2


def test_ranks_share_no_process_no_thread_and_no_arrow(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0), PlantedRank(1), PlantedRank(3))
    _, found = cut(tmp_path, "all", [0, 1, 3])
    of_rank: dict[int, str] = {}
    for one in originals(found):
        assert of_rank.setdefault(one["pid"], one["args"]["tag"][0]) == one["args"]["tag"][0]
    arrows = {(first["args"]["tag"][0], first["name"], last["name"]) for first, last in found.arrows}
    launched = {(rank, "cudaLaunchKernel", kernel) for rank in "013" for kernel in ("gemm", ALL_REDUCE)}
    backward = {(rank, "aten::mm", "autograd::engine::evaluate_function: MmBackward0") for rank in "013"}
    assert arrows == launched | backward
    assert len(found.arrows) == 3 * 4 * 3
    assert all(first["args"]["tag"][0] == last["args"]["tag"][0] for first, last in found.arrows)


def test_processes_are_named_by_rank_and_ordered(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0), PlantedRank(2))
    _, found = cut(tmp_path, "7", [0, 2])
    ordered = sorted(found.processes, key=lambda pid: found.order[pid])
    assert [found.processes[pid] for pid in ordered] == [
        "fleetprof",
        *(f"rank {number} {what}" for number in (0, 2) for what in ("analysis", "CPU", "GPU 0")),
    ]
    named = {found.threads[one["tid"]] for one in found.of_process("rank 2 GPU 0")}
    assert named == {"stream 7 ", "stream 20"}
    assert {found.threads[one["tid"]] for one in found.of_process("rank 2 CPU")} == {"thread 77 (python3)", "thread 78"}


def test_the_marks_say_what_the_analysis_found(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0), PlantedRank(1, late_ns=2 * MS), PlantedRank(2), PlantedRank(3))
    _, found = cut(tmp_path, "8", [0, 1])
    base = found.top_level["baseTimeNanoseconds"] - BASE_NS
    marks = [one for one in found.slices if one["cat"] == "fleetprof"]
    marks_shown = {(found.processes[one["pid"]], found.threads[one["tid"]], one["name"]) for one in marks}
    assert ("fleetprof", "window", "iteration 8") in marks_shown
    assert {
        ("rank 0 analysis", "iterations", "iteration 8"),
        ("rank 1 analysis", "iterations", "iteration 8"),
    } <= marks_shown
    (wait,) = [one for one in marks if one["name"] == "waits for rank 1"]
    assert found.processes[wait["pid"]] == "rank 0 analysis"
    assert (wait["start_ns"] + base, wait["duration_ns"]) == (8 * ITERATION_NS + 5 * MS, 2 * MS)
    of_first = [one for one in marks if found.processes[one["pid"]] == "rank 0 analysis"]
    idle = [one for one in of_first if one["name"].startswith("idle: ")]
    assert [one["duration_ns"] for one in idle[:1]] == [4 * MS + 600_000]  # from the all-reduce before to the kernel
    assert idle[0]["args"]["data_loading_ns"] == MS
    assert sum(idle[0]["args"].values()) == idle[0]["duration_ns"]
    stages = [one["name"] for one in marks if found.threads[one["tid"]] == "stages"]
    assert {"data_loading", "forward", "backward"} <= set(stages)
    assert found.dropped == []


def test_our_own_reader_reads_it_back(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0), PlantedRank(1))
    parts: list[bytes] = []
    cut_directory(tmp_path, Wanted(parse_window("7..8"), [0, 1]), parts.append)
    written = tmp_path / "cut.json"
    written.write_bytes(b"".join(parts))
    problems = Problems()
    with written.open("rb") as file:
        trace = read_trace(file, "cut.json", problems)
    assert problems.entries("", None) == []
    assert trace.time_origin == "unix"
    assert int(trace.rows.on_device.sum()) == 2 * 2 * 2
    assert int(trace.rows.start_ns.min()) == BASE_NS + 7 * ITERATION_NS


def test_one_rank_is_a_trace_of_that_rank(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0), PlantedRank(3))
    made, found = cut(tmp_path, "7", [3])
    assert found.top_level["distributedInfo"] == {"rank": 3, "world_size": 4}
    assert made.clocks == "one rank: nothing to align"


def test_traces_that_claim_one_rank_are_both_there(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0))
    (tmp_path / "again.json").write_text((tmp_path / "rank0.json").read_text())
    made, found = cut(tmp_path, "7")
    assert [(one.rank, one.apart) for one in made.ranks] == 2 * [(0, "2 traces claim rank 0")]
    assert len(found.named("ProfilerStep#7")) == 2
    assert found.dropped == []
    assert {"rank 0 (again.json) CPU", "rank 0 (rank0.json) CPU"} <= set(found.processes.values())


def test_a_rank_that_holds_nothing_of_the_window_is_told(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0), PlantedRank(1, talks=False, iterations=2))
    made, _ = cut(tmp_path, "10", [0, 1])
    assert [one.rank for one in made.ranks] == [0]
    assert made.left_out == ["rank 1: its trace holds none of it"]


WORDS = {
    "12": "there is no iteration 12: 7..10 are there",
    "1..3": "there is no iteration 1..3: 7..10 are there",
}


@pytest.mark.parametrize("window", WORDS)
def test_a_window_that_is_not_there_is_refused_with_what_is(tmp_path: Path, window: str) -> None:
    write_ranks(tmp_path, PlantedRank(0))
    with pytest.raises(NoSuchPart, match=WORDS[window]):
        cut(tmp_path, window)


def test_a_rank_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    write_ranks(tmp_path, PlantedRank(0), PlantedRank(2))
    with pytest.raises(NoSuchPart, match="there is no trace of ranks 1, 5: there are ranks 0, 2"):
        cut(tmp_path, "all", [1, 2, 5])


def test_the_slowest_iteration_is_that_of_most_ranks(tmp_path: Path) -> None:
    for number in range(3):
        document = plant_rank(PlantedRank(number))
        for event in document["traceEvents"]:
            if event["name"] == "ProfilerStep#9":
                event["dur"] = Digits("10100.000")
            if event["name"] == "ProfilerStep#7" and number == 0:
                event["dur"] = Digits("10200.000")
        (tmp_path / f"rank{number}.json").write_text(to_json(document))
    assert cut(tmp_path, "worst")[0].window == "iteration 9, the slowest"


def event_of(tag: int, phase: str, start: int, length: int, text: str) -> dict[str, Any]:
    lasts = {"dur": Digits(microseconds(length))} if phase == "X" else {"s": "t"}
    return {
        "ph": phase, "cat": "cpu_op", "name": text, "pid": 77, "tid": tag % 3, "ts": Digits(microseconds(start)),
        **lasts, "args": {"tag": str(tag), "text": text},
    }  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    drawn=st.lists(
        st.tuples(
            st.sampled_from("XXXi"),
            st.integers(0, 40 * MS),
            st.one_of(st.just(0), st.integers(0, 30 * MS)),
            st.text(max_size=8),
        ),
        min_size=1,
        max_size=30,
    ),
    begin=st.integers(0, 39_000),
    length=st.integers(1, 20_000),
    indent=st.sampled_from([None, 1]),
    bare=st.booleans(),
)
def test_every_event_of_the_window_is_kept_once_with_its_duration(
    tmp_path: Path, drawn: list[tuple[str, int, int, str]], begin: int, length: int, indent: int | None, bare: bool
) -> None:
    events = [event_of(tag, *one) for tag, one in enumerate(drawn)]
    events.append(event_of(len(events), "X", 0, 0, "begin"))
    document: Any = events if bare else {"traceEvents": events}
    (tmp_path / "rank0.json").write_text(to_json(document, indent))
    parts: list[bytes] = []
    cut_directory(tmp_path / "rank0.json", Wanted(parse_window(f"{begin}us..{begin + length}us")), parts.append)
    written = json.loads(b"".join(parts))["traceEvents"]
    kept = sorted(
        (int(one["args"]["tag"]), one["ph"], one.get("dur"), one["name"], one["args"]["text"])
        for one in written
        if one["ph"] != "M" and one["cat"] != "fleetprof"
    )
    first, end = begin * 1000, (begin + length) * 1000
    expected = sorted(
        (tag, phase, lasts / 1000 if phase == "X" else None, text, text)
        for tag, (phase, start, lasts, text) in enumerate([*drawn, ("X", 0, 0, "begin")])
        if start < end and (start + (lasts if phase == "X" else 0) > first or start == first)
    )
    assert kept == expected


def test_the_window_of_a_module_holds_its_call_alone(tmp_path: Path) -> None:
    def op(name: str, begin: int, end: int) -> dict[str, Any]:
        event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": 1, "args": {"tag": name}}
        return {**event, "ts": BASE_NS // 1000 + begin, "dur": end - begin}

    rows = [
        op("aten::add", -500, -400),
        op("fleetprof.marks begin", 0, 0), op("fleetprof.module:0 Net", 10, 90), op("fleetprof.module:1 Net.a", 20, 40),
        op("aten::mm", 21, 30), op("fleetprof.module:2 Net.b", 50, 60), op("aten::mul", 51, 55),
        op("fleetprof.marks end", 300, 300),
    ]  # fmt: skip
    (tmp_path / "rank0.json").write_text(json.dumps({"traceEvents": rows}))
    made, found = cut(tmp_path, "module:b")
    assert made.window == "the longest call of b"
    assert tags(found) == ["aten::mul", "fleetprof.module:0 Net", "fleetprof.module:2 Net.b"]
    with pytest.raises(NoSuchPart, match=r"no module 'c', or several end so: there are Net, Net\.a, Net\.b"):
        cut(tmp_path, "module:c")
