"""Several processes give what one gives; one that is killed costs its own piece; none outlives who started it."""

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_analyzer.capture.memory import free_share
from fleetprof_analyzer.capture.workers import work_in_processes
from harness.reference import piecework
from harness.traces.planted.traces import plant

_STARTER = """
import sys
from harness.reference.piecework import wait_for_ever
from fleetprof_analyzer.capture.workers import work_in_processes
if __name__ == "__main__":
    list(work_in_processes(wait_for_ever, [sys.argv[1]] * 2, 2))
"""


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_piece_has_its_result(jobs: int) -> None:
    assert sorted(work_in_processes(piecework.square, range(9), jobs)) == [(n, n * n) for n in range(9)]


def test_a_process_that_is_killed_costs_its_own_piece_only() -> None:
    found = dict(work_in_processes(piecework.square_or_die, range(10), 2))
    assert found == {n: None if n == 7 else n * n for n in range(10)}


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_work_raises_is_raised(jobs: int) -> None:
    with pytest.raises(ValueError, match="not "):
        list(work_in_processes(piecework.refuse, range(3), jobs))


@pytest.mark.attack
def test_workers_are_limited_and_the_kernel_prefers_them_to_a_trainer() -> None:
    assert set(dict(work_in_processes(piecework.read_limits, range(2), 2, 1 << 30)).values()) == {(1000, 1 << 30)}
    sizes = [1 << 20, 2 << 30]
    assert dict(work_in_processes(piecework.take, sizes, 2, 1 << 30)) == {0: 1 << 20, 1: -1}


@pytest.mark.attack
@pytest.mark.parametrize(
    ("limit", "available", "processes", "share"),
    [
        ("max", "MemAvailable:    8388608 kB", 1, (8 << 30) * 4 // 5),
        ("max", "MemAvailable:    8388608 kB", 4, (8 << 30) * 4 // 5 // 4),
        (str(2 << 30), "MemAvailable:    8388608 kB", 2, (2 << 30) * 4 // 5 // 2),
        ("max", "MemAvailable:       1024 kB", 8, 384 << 20),
        ("max", "", 1, None),
    ],
)
def test_what_they_may_take_leaves_the_machine_something(
    tmp_path: Path, limit: str, available: str, processes: int, share: int | None
) -> None:
    (tmp_path / "memory.max").write_text(limit)
    (tmp_path / "meminfo").write_text(f"MemTotal:       16000000 kB\n{available}\n")
    assert free_share(processes, (tmp_path / "memory.max",), tmp_path / "meminfo") == share


@pytest.mark.parametrize(("pieces", "jobs"), [(1, 8), (5, 1)])
def test_one_piece_or_one_job_starts_no_process(pieces: int, jobs: int) -> None:
    assert {pid for _, pid in work_in_processes(piecework.process_of, range(pieces), jobs)} == {os.getpid()}


def test_where_no_process_can_be_started_this_one_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(jobs: int, memory_bytes: int | None) -> None:
        raise PermissionError("/dev/shm")

    monkeypatch.setattr("fleetprof_analyzer.capture.workers._start", start)
    assert dict(work_in_processes(piecework.process_of, range(3), 2)) == dict.fromkeys(range(3), os.getpid())


def test_where_some_processes_can_be_started_nothing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    submit, made = ProcessPoolExecutor.submit, []

    def submit_some(pool: ProcessPoolExecutor, *args: Any) -> Any:
        made.append(args)
        if len(made) > 2:
            raise BlockingIOError("Resource temporarily unavailable")
        return submit(pool, *args)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", submit_some)
    assert dict(work_in_processes(piecework.square, range(5), 2)) == {n: n * n for n in range(5)}


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_no_worker_outlives_who_started_it(end: signal.Signals, tmp_path: Path) -> None:
    script, folder = tmp_path / "starter.py", tmp_path / "pids"
    script.write_text(_STARTER)
    folder.mkdir()
    environment = os.environ | {"PYTHONPATH": str(Path(piecework.__file__).parents[2])}
    starter = subprocess.Popen([sys.executable, script, folder], env=environment, stderr=subprocess.DEVNULL)
    try:
        _wait_until(lambda: len(list(folder.iterdir())) == 2)
        starter.send_signal(end)
        starter.wait()
        _wait_until(lambda: not any(Path("/proc", pid.name).exists() for pid in folder.iterdir()))
    finally:
        starter.kill()
        starter.wait()


def test_traces_are_summarised_as_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in range(3):
        (tmp_path / f"rank{rank}.json").write_text(plant(rank).text())
    (tmp_path / "rank3.json").write_text("no trace")
    steps: list[tuple[int, int]] = []
    monkeypatch.setattr("fleetprof_analyzer.capture.folder.LEAST_BYTES", 1)
    several = analyze_directory(tmp_path, jobs=2, progress=lambda *so_far: steps.append(so_far[:2]))
    one = analyze_directory(tmp_path)
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert several.ranks == one.ranks
    assert several.problems == one.problems


def test_a_trace_whose_reader_was_killed_is_a_problem_of_its_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(2):
        (tmp_path / f"rank{rank}.json").write_text(plant(rank).text())

    def killed_at_the_second(
        work: Callable[[Any], Any], pieces: Sequence[Any], jobs: int, memory_bytes: int | None
    ) -> Iterator[tuple[int, Any]]:
        yield from ((0, work(pieces[0])), (1, None))

    monkeypatch.setattr("fleetprof_analyzer.capture.folder.work_in_processes", killed_at_the_second)
    report = analyze_directory(tmp_path, jobs=2)
    assert [rank.rank for rank in report.ranks] == [0]
    (problem,) = [problem for problem in report.problems if problem.source == "rank1.json"]
    assert (problem.rank, problem.kind) == (1, "refused")
    assert "the process that read it was killed" in problem.message


def _wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "it did not come to that in a minute"
        time.sleep(0.02)


_FREES_AND_TAKES_AGAIN = """
import resource, sys
import numpy as np
from fleetprof_analyzer.capture.memory import keep_freed_memory
if sys.argv[1:]:
    keep_freed_memory()
for _ in range(50):
    pieces = [np.ones(1 << 18, np.uint8) for _ in range(16)]
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the settings")
def test_memory_that_is_freed_is_not_asked_of_the_kernel_again() -> None:
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)}  # as at the start, before glibc adapts

    def count_faults(*words: str) -> int:
        command = [sys.executable, "-c", _FREES_AND_TAKES_AGAIN, *words]
        result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return int(result.stdout)

    assert count_faults("keep") < count_faults() / 2
