"""Sidecars of earlier commits with the hub of this one: a job of a month keeps the sidecar that it started with.

The trainers are simulated, and speak the real datagrams; `fleetprof run` and the sidecar are the earlier commit's own.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.training.local_system import Local, outcome, states
from harness.waiting import wait_until

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
CODE = ("api", "operator", "sidecar", "analyzer", "cli")
TRAINER = ROOT / "tests/simulation/trainer.py"
# By day, as commits are named anew where a history is copied. The protocol's first day is 2026-11-23.
DAYS = ("2026-11-23T15:00Z", "2026-11-24T12:00Z", "2026-11-26T12:00Z")
CAPTURES = (
    ("--iterations", "3"),
    ("--iterations", "3", "--canary", "always"),
    ("--iterations", "3", "--traces", "Summary"),
    ("--duration", "2s"),
)


def git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False).stdout


@pytest.fixture(params=DAYS)
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The code of the last commit before a day."""
    commit = git("rev-list", "-1", f"--before={request.param}", "HEAD").decode().strip()
    if not commit:
        pytest.skip(f"this copy of the history does not go back to {request.param}")
    folder = tmp_path / "earlier"
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=git("archive", commit, *CODE), check=True)
    yield folder
    shutil.rmtree(folder)


def test_an_earlier_sidecar_is_captured_by_the_hub_of_today(earlier: Path, local: Local, tmp_path: Path) -> None:
    trainer = f'exec env -u PYTHONPATH {sys.executable} {TRAINER} --directory "$KINETO_IPC_SOCKET_DIR" --ranks 2'
    words = [sys.executable, "-m", "fleetprof_cli.main", "run", "--name", "old", "--", "sh", "-c", trainer]
    environment = local.environment | {"PYTHONPATH": os.pathsep.join(str(earlier / name) for name in CODE)}
    with (tmp_path / "run.log").open("wb") as log:
        job = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_until(lambda: len(local.fleet().sidecars) == 1, "the earlier sidecar", 120)
        for words_of_capture in CAPTURES:
            result = local.command("capture", "old", *words_of_capture, "-o", "json")
            assert result.returncode == 0, (words_of_capture, result.stderr)
            status = local.status(json.loads(result.stdout)["uid"])
            assert outcome(status) == ("True", "Complete")
            resolved = next(c.message for c in status.conditions if c.type == "TargetsResolved")
            assert "sidecars of another version than the hub's" in resolved
            assert states(status) == {0: "UPLOADED", 1: "UPLOADED"}
    finally:
        job.terminate()
        job.wait(60)
