"""docs/tutorial/slow-job.md: its commands run as they stand there, and lead to the cause and the proof."""

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from harness.repository import ROOT
from harness.waiting import wait_until

TEXT: Final = (ROOT / "docs/tutorial/slow-job.md").read_text()
COMMANDS: Final = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
Finished = subprocess.CompletedProcess[str]


def test_the_tutorial_runs_captures_reads_mends_and_compares() -> None:
    assert [line.split()[1] for line in COMMANDS] == ["run", "capture", "report", "run", "capture", "diff"]


def is_listed(fleetprof: Callable[..., Finished], name: str) -> bool:
    return f'"{name}"' in fleetprof("list", "-o", "json").stdout


@pytest.mark.torch
def test_the_commands_lead_to_cause_and_proof(
    start: Callable[..., subprocess.Popen[bytes]], fleetprof: Callable[..., Finished], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    shown: dict[str, str] = {}
    job: subprocess.Popen[bytes] | None = None
    for line in COMMANDS:
        words = [
            str(Path(sys.executable).with_name(word)) if word == "torchrun" else word for word in shlex.split(line)
        ]
        if words[1] == "run":
            if job is not None:
                job.send_signal(signal.SIGINT)
                job.wait(60)
            job = start(*words[1:], log=f"{words[3]}.log")
            wait_until(partial(is_listed, fleetprof, words[3]), "the job", 60)
            continue
        waits = ["--wait-for-job"] if words[1] == "capture" else []
        result = fleetprof(*words[1:], *waits, cwd=ROOT)
        assert result.returncode == 0, f"{line}: {result.stderr}"
        shown[words[1]] = result.stdout + result.stderr
    report = " ".join(shown["report"].split())
    assert "data loading (slow_job.py:23 Recordings.__getitem__)" in report
    assert "The training threads of all ranks wait for the next batch (slow_job.py:23" in report
    assert "2 of 2 ranks uploaded: Complete" in shown["capture"]
    assert shown["diff"].splitlines()[3].startswith("Faster: ")
