"""`fleetprof analyze`: how many processes read, what is seen meanwhile, and Ctrl-C."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fleetprof_cli.terminal.reading_progress import show_reading
from harness.traces.planted.traces import plant
from harness.waiting import wait_until
from rich.console import Console


def test_several_processes_give_the_report_of_one(
    fleetprof: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    for rank in range(3):
        # White space makes the traces long enough to be worth a process each.
        text = plant(rank).text().replace("{", "{" + " " * (24 << 20), 1)
        (tmp_path / f"rank{rank}.json").write_text(text)
    reports = []
    for jobs in ("1", "2"):
        result = fleetprof("analyze", tmp_path, "-o", "json", "--jobs", jobs)
        assert (result.returncode, result.stderr) == (0, "")
        reports.append(json.loads(result.stdout) | {"made_unix_ns": 0})
    assert reports[0] == reports[1]
    assert [rank["rank"] for rank in reports[0]["ranks"]] == [0, 1, 2]


def test_no_process_is_too_few(fleetprof: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    result = fleetprof("analyze", tmp_path, "--jobs", "0")
    assert result.returncode == 2
    assert "must be a whole number of 1 or more" in result.stderr


@pytest.mark.parametrize("name", ["train.py", "trace.txt", "report.json"])
def test_a_file_that_is_no_trace_by_its_name_is_named_as_it_was_typed(
    fleetprof: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("{}")
    (tmp_path / "rank0.json").write_text(plant(0).text())
    result = fleetprof("analyze", tmp_path / "rank0.json", tmp_path / name)
    assert result.returncode == 2
    assert f"{tmp_path / name} is no trace by its name" in result.stderr


def test_a_terminal_sees_how_far_it_is_and_then_nothing() -> None:
    screen = io.StringIO()
    with show_reading(Console(file=screen, force_terminal=True, width=80)) as progress:
        assert progress is not None
        progress(3, 8, "rank2.json.gz")
    assert "reading traces" in screen.getvalue()
    assert "3/8" in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[2K")


def test_elsewhere_nothing_is_seen() -> None:
    with show_reading(Console(file=io.StringIO())) as progress:
        assert progress is None


def test_interrupted_it_says_so_without_a_traceback(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "rank0.json").write_text(plant(0, iterations=600).text())  # open for as long as it is read
    for rank in range(1, 400):  # as much as two processes read in minutes
        (folder / f"rank{rank}.json").hardlink_to(folder / "rank0.json")
    command = [sys.executable, "-m", "fleetprof_cli.main", "analyze", str(folder), "--jobs", "2"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        readers: set[str] = set()

        def two_read() -> bool:
            readers.update(_readers(process.pid, folder))
            return len(readers) == 2

        wait_until(two_read, "two processes that read")
        os.killpg(process.pid, signal.SIGINT)
        _, output = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, output.strip()) == (130, "fleetprof: interrupted")


def _readers(pid: int, folder: Path) -> set[str]:
    """The children of a process that have a trace open."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {c for c in children if any(str(folder) in _target(file) for file in Path(f"/proc/{c}/fd").iterdir())}


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def test_recordings_of_several_windows_in_one_folder_are_told_apart_by_their_files(
    fleetprof: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    for rank in range(2):
        for window in range(2):
            (tmp_path / f"rank{rank}-{window}.json").write_text(plant(rank).text())
    refused = fleetprof("analyze", tmp_path)
    assert refused.returncode == 1
    assert "each of 2 ranks has 2 traces" in refused.stderr
    assert "or name its files: fleetprof analyze FILE…" in refused.stderr
    assert fleetprof("analyze", *sorted(tmp_path.glob("*-0.json"))).returncode == 0
