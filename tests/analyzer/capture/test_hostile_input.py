"""Input made to cost its reader much: each costs its own rank, within a limit, and the others are reported."""

import gzip
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fleetprof_analyzer.capture.cpu_limit import allowed_cpu_s, limit_cpu
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_analyzer.capture.rank_summary import make_summary
from fleetprof_analyzer.capture.store import analyze_capture, merge_capture, summarise_ranks
from fleetprof_analyzer.rank.stored_summary import unpack_summary
from fleetprof_analyzer.trace.limits import LimitExceeded, TraceLimits
from fleetprof_api import keys
from fleetprof_api.report.report import Report
from fleetprof_api.samples import MOST_BYTES
from fleetprof_store.directory import DirectoryStore
from harness.memory_store import MemoryStore
from harness.traces.planted.traces import plant_capture

pytestmark = pytest.mark.attack
SMALL = TraceLimits(cpu_s=0.3, cpu_s_per_mib=0.0)
REFUSED = "the CPU time to analyse this trace passes the limit of"


@pytest.fixture(scope="module")
def tiny_events() -> bytes:
    """Each event is searched for by itself: with the limits of old, minutes of a 1.15 MB file."""
    return gzip.compress(b'{"traceEvents":[' + b"{}," * 3_000_000 + b"{}]}", compresslevel=6, mtime=0)


def problems(report: Report) -> list[tuple[str, int | None, str]]:
    return [(problem.kind, problem.rank, problem.message) for problem in report.problems]


def test_a_trace_that_takes_too_long_costs_its_own_rank_only(tiny_events: bytes) -> None:
    store = MemoryStore()
    uid = plant_capture(store, ranks=3).uid
    store.put(keys.trace_key("default", uid, 1), tiny_events)
    whole = analyze_capture(store, "default", uid, limits=SMALL)
    summarise_ranks(store, "default", uid, shard=0, shards=1, limits=SMALL)
    for report in (whole, merge_capture(store, "default", uid)):
        assert [rank.rank for rank in report.ranks] == [0, 2]
        ((kind, rank, message),) = problems(report)
        assert (kind, rank) == ("refused", 1)
        assert message.startswith(REFUSED)


def test_so_it_does_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_events: bytes) -> None:
    store = MemoryStore()
    uid = plant_capture(store, ranks=2).uid
    for rank in range(2):
        (tmp_path / f"rank{rank}.json.gz").write_bytes(store.get(keys.trace_key("default", uid, rank)))
    (tmp_path / "rank1.json.gz").write_bytes(tiny_events)
    monkeypatch.setattr("fleetprof_analyzer.capture.folder.limits_within", lambda memory_bytes: SMALL)
    report = analyze_directory(tmp_path)
    assert [rank.rank for rank in report.ranks] == [0]
    assert [kind for kind, _, _ in problems(report)] == ["refused"]


def test_and_beside_the_trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_events: bytes) -> None:
    (tmp_path / "trace").write_bytes(tiny_events)
    monkeypatch.setattr("fleetprof_analyzer.capture.rank_summary.limits_within", lambda memory_bytes: SMALL)
    data = make_summary(tmp_path / "trace", None, rank=3, first_step=None, iterations=None, memory_bytes=None)
    (problem,) = unpack_summary(data, 3).problems
    assert problem.message.startswith(REFUSED)


def test_the_time_counts_in_every_measure() -> None:
    before = signal.getsignal(signal.SIGPROF)

    def measure() -> None:
        with limit_cpu(0.05):
            while True:
                with suppress(Exception):  # as guards against our own faults do
                    sum(range(1000))

    with pytest.raises(LimitExceeded, match="0 seconds"):
        measure()
    assert (signal.getsignal(signal.SIGPROF), signal.getitimer(signal.ITIMER_PROF)) == (before, (0.0, 0.0))


def test_who_has_that_signal_keeps_it() -> None:
    mine = lambda *_: None  # noqa: E731
    before = signal.signal(signal.SIGPROF, mine)
    try:
        with limit_cpu(0.01):
            assert signal.getsignal(signal.SIGPROF) is mine
        assert signal.getsignal(signal.SIGPROF) is mine
    finally:
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize(("stored", "seconds"), [(None, 60), (0, 60), (1 << 20, 62), (300 << 20, 660)])
def test_a_longer_trace_may_take_longer(stored: int | None, seconds: float) -> None:
    assert allowed_cpu_s(TraceLimits(), stored) == seconds


_READ = """
import sys
from pathlib import Path
from fleetprof_analyzer.capture.store import analyze_capture
from fleetprof_analyzer.capture.memory import limits_within
from fleetprof_store.directory import DirectoryStore
store = DirectoryStore(sys.argv[1], b"x" * 32, "")
report = analyze_capture(store, "default", sys.argv[2], limits=limits_within(512 << 20))
print([rank.rank for rank in report.ranks], [(str(p.kind), p.rank) for p in report.problems])
# VmHWM and not ru_maxrss, which counts the parent's memory before exec as well.
print(int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) >> 10)
"""


def packed(value: Any) -> bytes:
    return gzip.compress(json.dumps(value).encode(), mtime=0)


@pytest.mark.parametrize(
    "make_samples",
    [
        None,  # 1.5 GB of holes
        lambda: gzip.compress(bytes(1 << 28), compresslevel=1, mtime=0),  # a bomb
        lambda: gzip.compress(b"", mtime=0) * (MOST_BYTES // 20 + 1),  # members without end
        lambda: packed({"rank": 1, "steps": {"step": [999] * 4_000_000}}),  # objects ten times as large as their text
        lambda: packed({"rank": 1, "steps": {"step": [[[[]]]] * 1000}}),
    ],
    ids=["long", "bomb", "members", "objects", "kinds"],
)
def test_samples_have_a_limit_of_their_own(tmp_path: Path, make_samples: Callable[[], bytes] | None) -> None:
    store = DirectoryStore(tmp_path, b"x" * 32, "")
    uid = plant_capture(store, ranks=2).uid
    path = tmp_path / keys.samples_key("default", uid, 1)
    path.unlink()
    if make_samples is None:
        with path.open("wb") as file:
            file.truncate(1_500_000_000)
    else:
        path.write_bytes(make_samples())
    result = subprocess.run([sys.executable, "-c", _READ, tmp_path, uid], capture_output=True, text=True, check=True)
    found, peak_mib = result.stdout.splitlines()
    assert found == "[0, 1] [('samples_unreadable', 1)]"
    assert int(peak_mib) < 400
