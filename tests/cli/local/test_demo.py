"""`fleetprof demo`: the whole way on real PyTorch, and nothing left behind."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from cli.local.test_ui import open_page
from fleetprof_api.report.report import Report, read_report
from fleetprof_api.report.stragglers import Stragglers, Undecided
from fleetprof_cli.commands.local.demo import choose_more_iterations
from harness.training.local_job import NO_COMPILER, TORCHRUN, processes_of
from harness.waiting import wait_until

Finished = subprocess.CompletedProcess[str]


@pytest.mark.torch
def test_the_demo_trains_captures_reports_and_at_a_terminal_serves_both_captures(
    environment: dict[str, str], sockets: Path, tmp_path: Path
) -> None:
    words = ("demo", "--out", str(tmp_path / "demo"), "--ranks", "2", "--iterations", "3")
    with start_at_terminal(environment, tmp_path, *words) as demo:
        served = "job and hub have ended; the browser shows both captures until Ctrl-C"
        wait_until(lambda: served in (tmp_path / "terminal").read_text() or demo.poll() is not None, "the end", 180)
        browser = open_page(tmp_path / "terminal")
        wait_until(lambda: len(browser.client.get("/requests").json()["items"]) == 2, "both captures")
        browser.client.close()
        demo.send_signal(signal.SIGINT)
        terminal = (tmp_path / "terminal").read_text()
        assert demo.wait(60) == 0, terminal
    report = read_report((tmp_path / "demo" / "report.json").read_bytes())
    more = re.search(r"3 iterations are too few here to tell who is late; capturing (\d+)", terminal)
    shown = int(more[1]) if more else 3
    assert [(rank.rank, len(rank.iterations)) for rank in report.ranks] == [(0, shown), (1, shown)]
    assert report.start.same_first_iteration is True
    page = (tmp_path / "demo" / "report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert report.title in (tmp_path / "stdout").read_text()
    assert_nothing_is_left(sockets, tmp_path)


@pytest.mark.parametrize(
    ("verdict", "needed", "iterations", "more"),
    [
        ("straggler", None, 20, None),
        ("nobody", None, 20, None),
        ("undecided", 63, 20, 65),
        ("undecided", 22, 20, 40),
        ("undecided", 900, 20, 100),
        ("undecided", None, 20, 40),
        ("undecided", 900, 100, None),  # the longest capture
        (None, None, 20, None),
    ],
)
def test_an_undecided_demo_is_captured_again_with_more_iterations(
    verdict: str | None, needed: int | None, iterations: int, more: int | None
) -> None:
    seems = Undecided(
        rank=2, gain=0.2, gain_low=-0.1, gain_high=0.5, iterations=iterations, iterations_needed=needed or 0
    )
    candidate = None if needed is None else seems
    found = None if verdict is None else msgspec.convert({"verdict": verdict, "candidate": candidate}, Stragglers)
    assert choose_more_iterations(Report(stragglers=found), iterations) == more


@contextmanager
def start_at_terminal(environment: dict[str, str], folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command with a terminal as stdin and stderr; what it says there goes to FOLDER/terminal."""
    ours, theirs = pty.openpty()
    with (folder / "stdout").open("wb") as stdout:
        process = subprocess.Popen(
            [sys.executable, "-m", "fleetprof_cli.main", *words],
            env=environment,
            stdin=theirs,
            stdout=stdout,
            stderr=theirs,
            start_new_session=True,
        )
    os.close(theirs)

    def copy() -> None:
        with (folder / "terminal").open("wb", buffering=0) as shown, suppress(OSError):
            while data := os.read(ours, 65536):  # at the end of the last writer: EIO
                shown.write(data)

    (folder / "terminal").touch()
    copying = threading.Thread(target=copy)
    copying.start()
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait()
        copying.join()
        os.close(ours)


def assert_nothing_is_left(sockets: Path, folder: Path) -> None:
    assert list(sockets.glob("fp*/*")) == []
    assert [line for line in processes_of(1) if str(folder / "demo") in line[2]] == []
    assert not (folder / "demo" / "state" / "hub.json").exists()


# An interpreter for small jobs: torchrun and its ranks without PyTorch's compiler, which is half of a job's start, and
# each sleep, which is the reading of data, ten times as long.
LIGHT = f"""#!/bin/sh
export PYTHON_EXEC="$0"
case "$1" in
-m) shift 2; exec {sys.executable} {TORCHRUN} "$@" ;;
-u) exec {sys.executable} -u -c '
import runpy, sys, time
sleep = time.sleep
time.sleep = lambda seconds: sleep(10 * seconds)
sys.path.append("{NO_COMPILER.parent}")
import no_compiler
del sys.argv[:2]
runpy.run_path(sys.argv[0], run_name="__main__")
' "$@" ;;
esac
exec {sys.executable} "$@"
"""


@pytest.mark.torch
def test_a_demo_that_holds_can_be_captured_until_ctrl_c(
    start: Callable[..., subprocess.Popen[bytes]], fleetprof: Callable[..., Finished], sockets: Path, tmp_path: Path
) -> None:
    light = tmp_path / "python"
    light.write_text(LIGHT)
    light.chmod(0o755)
    words = ("--ranks", "1", "--iterations", "2", "--hold", "--python", str(light))
    demo = start("demo", "--out", str(tmp_path / "demo"), *words)
    log = tmp_path / "log"
    wait_until(lambda: "go on until Ctrl-C" in log.read_text() or demo.poll() is not None, "the demo", 120)
    assert demo.poll() is None, log.read_text()
    page = open_page(log)
    assert page.client.get("/whoami").json()["may_capture"] is True
    page.client.close()
    result = fleetprof("capture", "--state", str(tmp_path / "demo" / "state"), "--iterations", "3", "-o", "json")
    assert result.returncode == 0, result.stderr
    assert [rank["state"] for rank in json.loads(result.stdout)["ranks"]] == ["UPLOADED"]
    demo.send_signal(signal.SIGINT)
    assert demo.wait(60) == 0, log.read_text()
    assert_nothing_is_left(sockets, tmp_path)


@pytest.mark.torch
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_demo_that_is_ended_before_its_capture_ends_all_that_it_began(
    start: Callable[..., subprocess.Popen[bytes]], sockets: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    demo = start("demo", "--out", str(tmp_path / "demo"), "--ranks", "1")
    log = tmp_path / "log"
    wait_until(lambda: "the job starts" in log.read_text() or demo.poll() is not None, "the job", 120)
    assert demo.poll() is None, log.read_text()
    demo.send_signal(number)
    assert demo.wait(90) == code, log.read_text()
    assert "Traceback" not in log.read_text()
    assert_nothing_is_left(sockets, tmp_path)


def test_without_pytorch_the_demo_says_what_to_do(fleetprof: Callable[..., Finished], tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    result = fleetprof("demo", "--out", str(tmp_path / "demo"), "--python", str(bare))
    assert result.returncode == 1
    assert f"the demo trains with PyTorch, and {bare} has none" in result.stderr
    assert "pip install torch" in result.stderr
    assert not (tmp_path / "demo").exists()


def test_analyze_reads_traces_without_any_hub(fleetprof: Callable[..., Finished], tmp_path: Path) -> None:
    trace = {
        "schemaVersion": 1,
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "distributedInfo": {"rank": 0, "world_size": 1},
        "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0.0, "dur": 60.0},
            {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 80.0, "dur": 20.0},
        ],
    }
    (tmp_path / "rank0.json").write_text(json.dumps(trace))
    result = fleetprof("analyze", str(tmp_path), "-o", "json")
    assert result.returncode == 0, result.stderr
    (rank,) = json.loads(result.stdout)["ranks"]
    time_ns = rank["time_ns"]
    assert (rank["source"], time_ns["span"], time_ns["compute"], time_ns["idle"]) == (
        "rank0.json",
        100_000,
        80_000,
        20_000,
    )

    one = fleetprof("analyze", str(tmp_path / "rank0.json"), "-o", "html", "--out", str(tmp_path / "page.html"))
    assert one.returncode == 0, one.stderr
    assert "rank0.json" in (tmp_path / "page.html").read_text()
    assert "80.0 %" in fleetprof("analyze", str(tmp_path)).stdout


@pytest.mark.parametrize(
    ("make", "code", "message"),
    [
        (lambda folder: [str(folder / "none")], 2, "does not exist"),
        (lambda folder: [str(folder)], 1, "no trace could be read"),
        (lambda folder: [str(folder), __file__], 2, "one folder, or files; not both"),
    ],
)
def test_traces_that_cannot_be_read_are_named(
    fleetprof: Callable[..., Finished], tmp_path: Path, make: Callable[[Path], list[str]], code: int, message: str
) -> None:
    result = fleetprof("analyze", *make(tmp_path))
    assert result.returncode == code
    assert message in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(fleetprof: Callable[..., Finished], shell: str) -> None:
    result = fleetprof("completion", shell)
    assert result.returncode == 0
    assert "_FLEETPROF_COMPLETE" in result.stdout


def test_the_version_is_the_contracts(fleetprof: Callable[..., Finished]) -> None:
    from fleetprof_api import __version__

    assert fleetprof("--version").stdout.strip() == f"fleetprof, version {__version__}"
