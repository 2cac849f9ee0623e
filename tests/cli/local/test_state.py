"""The state directory: private, one `up` at a time, and readable by whoever comes later."""

import contextlib
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fleetprof_api.hub.local_hub import HubRecord
from fleetprof_cli.local import hub_lock
from fleetprof_cli.local.leftovers import send_leftovers
from fleetprof_cli.local.run.run_folder import RunRecord, new_run_folder, run_folders
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure
from fleetprof_cli.store_location import StoreLocation

RECORD = HubRecord(address="127.0.0.1:1", pid=7, store=StoreLocation(directory="/d"), started_unix_ns=5)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_can_read_it(state: StateDirectory) -> None:
    state.prepare()
    state.token()
    state.upload_secret()
    state.publish(RECORD)
    assert mode(state.path) == 0o700
    assert {mode(path) for path in state.path.iterdir()} == {0o600}


def test_the_secrets_stay(state: StateDirectory) -> None:
    state.prepare()
    again = StateDirectory(state.path)
    assert state.token() == again.token() != ""
    assert state.upload_secret() == again.upload_secret()
    assert len(state.token()) >= 32


def test_a_hub_is_found_while_it_is_published(state: StateDirectory) -> None:
    state.prepare()
    assert state.hub() is None
    state.publish(RECORD)
    assert state.hub() == RECORD
    state.withdraw()
    assert state.hub() is None
    assert state.store() == RECORD.store


def test_without_any_hub_results_are_looked_for_in_the_default_store(state: StateDirectory) -> None:
    assert state.store() == StoreLocation(directory=str(state.default_store))


def test_a_second_up_is_refused_while_the_first_one_runs(state: StateDirectory) -> None:
    state.prepare()
    hold = (
        "import sys; from pathlib import Path; from fleetprof_cli.local.state import StateDirectory\n"
        "from fleetprof_cli.local import hub_lock\n"
        "with hub_lock.hold(StateDirectory(Path(sys.argv[1]))):\n  print('held', flush=True); sys.stdin.read()"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", hold, state.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    first.stdout.readline()
    with pytest.raises(Failure, match=f"pid {first.pid}"), hub_lock.hold(state):
        pass
    first.kill()
    first.communicate()
    with hub_lock.hold(state):
        pass


RUN = RunRecord(name="x", namespace="l", pid=1, socket_directory="/x", started_unix_ns=1, command=["a"])


def hold_run(state: StateDirectory) -> None:
    """As `fleetprof run` does."""
    with state.errors(), new_run_folder(state, "train").hold(RUN):
        pass


def lock(state: StateDirectory) -> None:
    """As `fleetprof up` does."""
    with hub_lock.hold(state):
        pass


def test_a_full_disk_is_named_with_the_next_step_and_nothing_is_left(state: StateDirectory) -> None:
    state.path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(state.path)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small volume needs root")
    try:
        state.prepare()
        state.runs.mkdir()
        with contextlib.suppress(OSError), (state.path / "ballast").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        for write in (lock, hold_run, StateDirectory.token, StateDirectory.upload_secret, publish):
            with pytest.raises(Failure, match=f"cannot use the state directory {state.path}: No space left") as failed:
                write(state)
            assert failed.value.next_step.startswith("free some space on its volume, or choose another with --state")
        assert sorted(path.name for path in state.path.rglob("*")) == ["ballast", "lock", "runs"]
    finally:
        subprocess.run(["umount", "-l", str(state.path)], check=True)


def publish(state: StateDirectory) -> None:
    """As `fleetprof up` does when its hub answers."""
    state.publish(RECORD)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a directory away")
def test_a_directory_of_somebody_else_is_refused(state: StateDirectory) -> None:
    state.path.mkdir()
    os.chown(state.path, 12345, -1)
    with pytest.raises(Failure, match="belongs to another user"):
        state.prepare()


def test_a_run_is_alive_while_it_holds_its_folder(state: StateDirectory) -> None:
    state.prepare()
    folder = new_run_folder(state, "train")
    record = RunRecord(
        name="train", namespace="local", pid=1, socket_directory="/x", started_unix_ns=1, command=["a", "b"]
    )
    with folder.hold(record):
        (found,) = run_folders(state)
        assert found.is_alive()
        assert found.record() == record
    assert not found.is_alive()
    found.remove()
    assert run_folders(state) == []


@pytest.mark.parametrize("host_name", ["another-host", ""])
async def test_traces_of_a_run_elsewhere_are_left_to_it(
    state: StateDirectory, capsys: pytest.CaptureFixture[str], host_name: str
) -> None:
    state.prepare()
    folder = new_run_folder(state, "train")
    record = RunRecord(
        name="train",
        namespace="local",
        pid=1,
        socket_directory="/x",
        started_unix_ns=1,
        command=["a"],
        host_name=host_name,
    )
    with folder.hold(record):
        (folder.spool / "a.trace.json.gz").write_bytes(b"x")
    await send_leftovers(state)
    assert folder.unsent_bytes() == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", [["list"], ["report"], ["doctor"]])
def test_looking_makes_nothing(
    fleetprof: Callable[..., subprocess.CompletedProcess[str]], state: StateDirectory, words: list[str]
) -> None:
    fleetprof(*words)
    assert not state.path.exists()
