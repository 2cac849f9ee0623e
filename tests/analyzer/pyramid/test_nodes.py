"""The tree of a rank: iterations, stages, operators, and the device's time that was launched in each."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from fleetprof_analyzer.pyramid.writer import write_rank
from fleetprof_analyzer.rank.iterations import RecordingTerms
from fleetprof_analyzer.rank.summary import TraceFindings, summarise
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from harness.timelines.timeline_reader import RankFile

TRACES = Path(__file__).parents[2] / "data/traces"


def read_found(path: Path) -> TraceFindings:
    """The findings of a summary in a trace."""
    problems = Problems()
    with path.open("rb") as file:
        trace = read_trace(file, path.name, problems)
    found: list[TraceFindings] = []
    summarise(trace, None, rank_number=0, terms=RecordingTerms(), problems=problems, show=found.append)
    return found[0]


@pytest.fixture(scope="module")
def file() -> RankFile:
    return RankFile(write_rank(read_found(TRACES / "gpu_loop/rank0.json.gz"), 0))


def test_iterations_have_stages_and_stages_have_operators(file: RankFile) -> None:
    nodes, header = file.nodes(), file.header
    kinds = nodes["kind"]
    assert [header.iterations.index[item] for item in nodes["item"][kinds == 0].tolist()] == header.iterations.index
    parents = nodes["parent"]
    assert (parents[kinds == 0] == -1).all()
    assert (kinds[parents[kinds == 1]] == 0).all()
    stages = {header.stages[header.stage_pieces.stage[item]] for item in nodes["item"][kinds == 1].tolist()}
    assert {"forward", "backward", "optimizer"} <= stages
    holds = {int(kinds[parent]) for parent in parents[kinds == 2].tolist()}
    assert holds == {0, 1, 2}


def test_a_node_lies_within_its_parent(file: RankFile) -> None:
    nodes = file.nodes()
    starts, ends = nodes["start_ns"], nodes["start_ns"] + nodes["duration_ns"]
    inner = np.flatnonzero(nodes["parent"] >= 0)
    outer = nodes["parent"][inner]
    assert (starts[inner] >= starts[outer]).all()
    assert (ends[inner] <= ends[outer]).all()


def test_the_stages_of_an_iteration_share_its_device_time(file: RankFile) -> None:
    nodes = file.nodes()
    total = 0
    for iteration in np.flatnonzero(nodes["kind"] == 0).tolist():
        stages = (nodes["parent"] == iteration) & (nodes["kind"] == 1)
        assert nodes["device_ns"][iteration] == nodes["device_ns"][stages].sum()
        total += int(nodes["device_ns"][iteration])
    assert total > 0


def test_what_is_left_out_is_the_shortest_and_is_counted(monkeypatch: pytest.MonkeyPatch, file: RankFile) -> None:
    whole = file.nodes()
    fixed = int((whole["kind"] < 2).sum())
    monkeypatch.setattr("fleetprof_analyzer.pyramid.nodes.MOST_NODES", fixed + 10)
    cut = RankFile(write_rank(read_found(TRACES / "gpu_loop/rank0.json.gz"), 0))
    rows = cut.nodes()["duration_ns"][cut.nodes()["kind"] == 2]
    assert len(rows) == 10
    assert cut.header.nodes.left_out == int((whole["kind"] == 2).sum()) - 10
    assert sorted(rows.tolist()) == sorted(whole["duration_ns"][whole["kind"] == 2].tolist())[-10:]


def test_a_module_stands_between_its_stage_and_its_operators(tmp_path: Path) -> None:
    trace = json.loads(gzip.decompress((TRACES / "gpu_loop/rank0.json.gz").read_bytes()))
    linear = next(one for one in trace["traceEvents"] if one.get("name") == "aten::linear")
    begin, end = linear["ts"], linear["ts"] + linear["dur"]
    linear |= {"ts": begin + 3, "dur": end - begin - 6}
    module = {"name": "nn.Module: Linear_0", "cat": "python_function", "ts": begin + 2, "dur": end - begin - 4}
    dropouts = [{"name": "aten::dropout", "ts": at, "dur": 1} for at in (begin, end - 1)]
    trace["traceEvents"] += [linear | one for one in (module, *dropouts)]
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(trace).encode()))

    file = RankFile(write_rank(read_found(path), 0))

    nodes, names = file.nodes(), file.header.names.text
    of_row = [names[item] if kind == 2 else "" for kind, item in zip(nodes["kind"], nodes["item"], strict=True)]
    at = of_row.index("nn.Module: Linear_0")
    assert nodes["kind"][nodes["parent"][at]] == 1
    assert "aten::linear" in [of_row[inner] for inner in np.flatnonzero(nodes["parent"] == at)]


def test_where_nothing_trains_the_busiest_thread_is_the_main_one() -> None:
    file = RankFile(write_rank(read_found(TRACES / "gpu_slow_rank/rank2.json.gz"), 2))
    tracks = file.header.tracks
    assert (tracks.kind[tracks.main], tracks.name[tracks.main]) == ("thread", "77")
    nodes = file.nodes()
    assert (nodes["device_ns"][nodes["kind"] == 0] > 0).all()
    assert (nodes["kind"] == 2).any()


def test_where_no_stage_is_found_the_other_threads_stand_in_the_iteration(tmp_path: Path) -> None:
    """Thread 2 runs the backward pass; the profiler's marks alone tell iterations, of which thread 3 has nothing."""
    rows = [
        {"name": f"ProfilerStep#{step}", "cat": "user_annotation", "ts": 1000 * step, "dur": 990, "tid": 1}
        for step in range(1, 4)
    ]
    for step in range(1, 4):
        rows += [
            {"name": "aten::conv2d", "cat": "cpu_op", "ts": 1000 * step + 10, "dur": 300, "tid": 1},
            {"name": "ConvolutionBackward0", "cat": "cpu_op", "ts": 1000 * step + 400, "dur": 300, "tid": 2},
            {"name": "aten::convolution_backward", "cat": "cpu_op", "ts": 1000 * step + 410, "dur": 200, "tid": 2},
        ]
    rows.append({"name": "elsewhere", "cat": "cpu_op", "ts": 5500, "dur": 20, "tid": 3})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [{"ph": "X", "pid": 7, **row} for row in rows]}))
    found = read_found(path)
    assert found.main_place == -1
    file = RankFile(write_rank(found, 0))
    nodes, header = file.nodes(), file.header
    threads = np.flatnonzero(nodes["kind"] == 3)
    assert [header.tracks.name[item] for item in nodes["item"][threads].tolist()] == ["2"] * 3
    assert (nodes["kind"][nodes["parent"][threads]] == 0).all()
    assert nodes["duration_ns"][threads].tolist() == [300_000] * 3
    for thread in threads.tolist():
        inside = np.flatnonzero(nodes["parent"] == thread).tolist()
        assert [header.names.text[nodes["item"][node]] for node in inside] == ["ConvolutionBackward0"]
        assert nodes["below"][thread] == 2


def test_a_kernel_says_when_and_where_it_was_launched(file: RankFile) -> None:
    header = file.header
    raw = len(header.levels) - 1
    found = 0
    for number in range(len(header.levels[raw].tiles.rows)):
        tile = file.tile(raw, number)
        streams = np.array([header.tracks.kind[header.lanes.track[lane]] == "stream" for lane in tile["lane"]])
        if "launched_ns" in tile:
            known = tile["launched_ns"] > 0
            assert streams[known].all()
            assert {header.tracks.kind[header.lanes.track[lane]] for lane in tile["launch_lane"][known]} == {"thread"}
            found += int(known.sum())
    assert found > 0
