"""The parts that `make test` runs side by side: output in one piece, exit code, time, niceness, end."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from harness.waiting import wait_until

PART = Path(__file__).parents[2] / ".ci/part"


def start(folder: Path, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PART, "sample", *command],
        env=os.environ | {"FLEETPROF_PARTS": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_output_is_shown_at_the_end_with_the_time(tmp_path: Path) -> None:
    with start(tmp_path, "bash", "-c", "echo one; echo two >&2") as part:
        shown, _ = part.communicate(timeout=60)

    assert part.returncode == 0
    begins, empty, title, *lines, time = shown.splitlines()
    assert begins == f"sample: begins; its output is in {tmp_path}/sample.log, and shown when it ends"
    assert (empty, title, lines) == ("", "==> sample", ["one", "two"])
    assert re.fullmatch(r"sample +passed +\d+ s by the clock +\d+ s of processor time", time)
    assert (tmp_path / "sample.time").read_text() == f"{time}\n"


def test_a_part_that_fails_has_its_command_s_exit_code(tmp_path: Path) -> None:
    with start(tmp_path, "bash", "-c", "exit 3") as part:
        shown, _ = part.communicate(timeout=60)

    assert part.returncode == 3
    assert "FAILED: 3" in shown.splitlines()[-1]


def test_a_part_that_yields_does_so_to_all_sessions(tmp_path: Path) -> None:
    ours = Path("/proc/self/autogroup")
    if not ours.exists():
        pytest.skip("this kernel compares niceness without autogroups")
    yielding = subprocess.run(
        ["nice", "-n", "3", PART, "sample", "cat", ours],
        env=os.environ | {"FLEETPROF_PARTS": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert f" nice {min(os.nice(0) + 3, 19)}\n" in yielding.stdout
    assert ours.read_text() not in yielding.stdout


def test_ctrl_c_and_a_request_to_end_interrupt_what_a_part_runs(tmp_path: Path) -> None:
    script = "trap 'echo stopped; exit 9' INT; echo runs; while :; do sleep 0.05; done"
    log = tmp_path / "sample.log"
    for number in (signal.SIGINT, signal.SIGTERM):
        with start(tmp_path, "bash", "-c", script) as part:
            wait_until(lambda: log.exists() and "runs" in log.read_text(), "the command")
            part.send_signal(number)
            shown, _ = part.communicate(timeout=60)

        assert part.returncode != 0
        assert shown.splitlines()[-2] == "stopped"
        log.unlink()
