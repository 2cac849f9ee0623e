"""A summary made beside the trainer is the one that the Job would make, and its child never harms the sidecar."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fleetprof_analyzer.capture.rank_summary import make_summary
from fleetprof_analyzer.capture.store import analyze_capture, merge_capture, summarise_ranks
from fleetprof_analyzer.job.whole_traces import MOST, choose_whole_traces
from fleetprof_analyzer.rank.stored_summary import unpack_summary
from fleetprof_api import keys
from fleetprof_api.report.report import Rank, TimeBreakdown
from harness.memory_store import MemoryStore
from harness.traces.planted.traces import plant_capture


def put_summaries(store: MemoryStore, uid: str, folder: Path, first_step: int) -> None:
    """As sidecars do it: from files, with what their order said; the traces go."""
    for info in list(store.list(keys.request_prefix("default", uid) + "ranks/")):
        if info.key.endswith("trace.json.gz"):
            rank = int(info.key.split("/")[-2])
            (folder / "trace").write_bytes(store.get(info.key))
            (folder / "samples").write_bytes(store.get(keys.samples_key("default", uid, rank)))
            data = make_summary(
                folder / "trace", folder / "samples", rank=rank, first_step=first_step, iterations=5, memory_bytes=None
            )
            store.put(keys.summary_key("default", uid, rank), data)
            store.delete([info.key])


def test_the_report_of_edge_summaries_is_that_of_the_traces(tmp_path: Path) -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=4, failed=(1,))
    from_traces = analyze_capture(store, "default", planted.uid)
    summarise_ranks(store, "default", planted.uid, shard=0, shards=1)
    in_job = {rank: store.get(keys.summary_key("default", planted.uid, rank)) for rank in (0, 2, 3)}
    put_summaries(store, planted.uid, tmp_path, planted.first_step)
    assert {rank: store.get(keys.summary_key("default", planted.uid, rank)) for rank in (0, 2, 3)} == in_job
    for make in (analyze_capture, merge_capture):
        report = make(store, "default", planted.uid)
        assert report.ranks == from_traces.ranks
        assert report.capture_cost == from_traces.capture_cost
        assert report.problems == []


def run_child(trace: Path, *words: str, memory_bytes: int = 1 << 30) -> subprocess.CompletedProcess[bytes]:
    command = [
        sys.executable,
        "-P",
        "-m",
        "fleetprof_sidecar.children.summarise",
        str(trace),
        f"--parent={os.getpid()}",
    ]
    return subprocess.run(
        [*command, "--rank=3", f"--memory-bytes={memory_bytes}", *words],
        capture_output=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    store = MemoryStore()
    uid = plant_capture(store, ranks=4, failed=(0, 1, 2)).uid
    (tmp_path / "t.json.gz").write_bytes(store.get(keys.trace_key("default", uid, 3)))
    return tmp_path / "t.json.gz"


def test_the_child_prints_the_summary(trace: Path) -> None:
    result = run_child(trace, "--first-step=412", "--iterations=5")
    assert result.returncode == 0, result.stderr
    summary = unpack_summary(result.stdout, 3)
    assert summary.rank is not None
    assert len(summary.rank.iterations) == 5


@pytest.mark.parametrize(
    ("words", "memory_bytes", "says"),
    [((), 1 << 24, ""), (("--samples=/nowhere",), 1 << 30, "nowhere"), (("--parent=1",), 1 << 30, "sidecar is gone")],
)
def test_a_child_that_fails_says_so_in_one_line(
    trace: Path, words: tuple[str, ...], memory_bytes: int, says: str
) -> None:
    result = run_child(trace, *words, memory_bytes=memory_bytes)
    assert result.returncode != 0
    assert result.stdout == b""
    assert says in result.stderr.decode().strip().splitlines()[-1]


def test_a_hostile_trace_is_a_problem_in_its_summary(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(gzip.compress(b'{"traceEvents": [' + b"1" * (20 << 20)))
    result = run_child(tmp_path / "t")
    assert result.returncode == 0, result.stderr
    assert [problem.kind for problem in unpack_summary(result.stdout, 3).problems] == ["refused"]


def test_the_door_loads_no_cloud_and_no_page() -> None:
    code = "import sys, fleetprof_analyzer.capture.rank_summary; print({'boto3', 'jinja2', 'grpc'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_the_sidecar_itself_loads_no_numpy() -> None:
    code = "import sys, fleetprof_sidecar.main; print({'numpy', 'isal', 'fleetprof_analyzer'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def rank(number: int, communication: int) -> Rank:
    time_ns = TimeBreakdown(span=100, exposed_communication=communication)
    return Rank(rank=number, source=str(number), kind="gpu", time_basis="device", time_ns=time_ns)


@pytest.mark.parametrize(
    ("waits", "suspects", "chosen"),
    [
        ([], (), []),
        ([5], (), [0]),
        ([5, 9], (), [1]),
        ([50, 51, 3, 52, 53], (), [2, 1]),  # 2 waits least; 1 waits as most do
        ([50, 51, 3, 52, 53], (4,), [4, 2, 1]),
        ([50, 51, 3, 52, 53], (9, 2), [2, 1]),  # 9 has no trace
        ([10] * 20, tuple(range(19)), [*range(7), 10]),
    ],
)
def test_which_whole_traces_are_worth_their_bytes(
    waits: list[int], suspects: tuple[int, ...], chosen: list[int]
) -> None:
    ranks = [rank(number, wait) for number, wait in enumerate(waits)]
    assert sorted(choose_whole_traces(ranks, suspects)) == sorted(chosen)
    assert len(chosen) <= MOST
