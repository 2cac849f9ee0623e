"""The offers of Tab where a job or a capture is named, asked as bash asks."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_cli.local.run.run_folder import RunFolder, RunRecord
from fleetprof_cli.local.state import StateDirectory
from fleetprof_store.directory import DirectoryStore

Complete = Callable[..., list[str]]


@pytest.fixture
def complete(environment: dict[str, str]) -> Complete:
    """The offers after these words, the last of which is being typed."""

    def ask(*words: str) -> list[str]:
        question = {
            "_FLEETPROF_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(["fleetprof", *words]),
            "COMP_CWORD": str(len(words)),
        }
        script = Path(sys.executable).with_name("fleetprof")
        result = subprocess.run([script], env=environment | question, capture_output=True, text=True, check=True)
        assert result.stderr == ""
        return result.stdout.split()

    return ask


@pytest.fixture
def captures(state: StateDirectory) -> None:
    store = DirectoryStore(state.default_store, b"s" * 32, "")
    for number, (uid, name) in enumerate([("u-1", "llama-1123-070801"), ("u-2", "gpt-1123-070802")]):
        ledger = Ledger(uid=uid, name=name, namespace="local", submitted_unix_ns=number)
        store.put(keys.ledger_key("local", uid), msgspec.json.encode(ledger))


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        (["report", ""], ["plain,latest", "plain,gpt-1123-070802", "plain,llama-1123-070801"]),
        (["report", "ll"], ["plain,llama-1123-070801"]),
        (["report", "u-"], ["plain,u-2", "plain,u-1"]),
        (["report", "x"], []),
        (["diff", "gpt"], ["plain,gpt-1123-070802", "file,gpt"]),
        (["diff", "gpt-1123-070802", "ll"], ["plain,llama-1123-070801", "file,ll"]),
    ],
)
def test_captures_are_offered_by_name_and_by_a_uid_that_was_begun(
    complete: Complete, captures: None, words: list[str], offers: list[str]
) -> None:
    assert complete(*words) == offers


def test_running_jobs_are_offered_and_finished_ones_are_not(complete: Complete, state: StateDirectory) -> None:
    state.prepare()
    record = RunRecord(
        name="llama", namespace="local", pid=os.getpid(), socket_directory="/tmp/x", started_unix_ns=1, command=["t.py"]
    )
    with RunFolder(state.runs / "llama-1").hold(record):
        with RunFolder(state.runs / "gpt-1").hold(msgspec.structs.replace(record, name="gpt")):
            pass
        assert complete("capture", "") == complete("top", "") == ["plain,llama"]


def test_another_state_directory_is_looked_at_where_the_line_names_it(
    complete: Complete, captures: None, state: StateDirectory, tmp_path: Path
) -> None:
    assert complete("report", "--state", str(tmp_path / "other"), "") == []
    assert not (tmp_path / "other").exists()
