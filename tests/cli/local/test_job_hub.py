"""The hub that a job starts: one for all jobs of a state directory, gone with the last one, however that ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from fleetprof_api.hub.local_hub import HubRecord
from fleetprof_cli.local import hub_lock, job_hub
from fleetprof_cli.local.run.run_folder import RunRecord, live_runs, new_run_folder, run_folders
from fleetprof_cli.local.run.shared_hub import choose_place
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.store_location import StoreLocation
from harness.forked import StartedCommand
from harness.waiting import wait_until

SIMULATION = Path(__file__).parents[2] / "simulation" / "trainer.py"
TRAINERS = f'exec "{sys.executable}" "{SIMULATION}" --directory "$KINETO_IPC_SOCKET_DIR" --ranks 2 --poll-ms 300'
Finished = subprocess.CompletedProcess[str]
Start = Callable[..., StartedCommand]


def find_hub(state: StateDirectory) -> HubRecord:
    return wait_until(state.hub, "the hub")


def await_end(state: StateDirectory, hub: HubRecord, sockets: Path) -> None:
    """Returns when no process, no socket and no file of the hub or of a run is left."""
    wait_until(lambda: not Path(f"/proc/{hub.pid}").exists(), "the hub's end")
    assert not hub_lock.is_held(state)
    assert {path.name for path in state.path.iterdir()} <= {"lock", "runs", "secret", "store", "store.json", "token"}
    assert run_folders(state) == []
    assert list(sockets.glob("*/*")) == []


def test_a_job_brings_its_hub_and_can_be_captured_and_read_when_both_are_gone(
    start: Start, fleetprof: Callable[..., Finished], state: StateDirectory, sockets: Path
) -> None:
    job = start("run", "--name", "sim", "--", "bash", "-c", TRAINERS)
    hub = find_hub(state)
    options = ("--wait-for-job", "--iterations", "5", "--canary", "never")
    assert fleetprof("capture", "sim", *options).returncode == 0
    job.terminate()
    assert job.wait(60) == 0  # the simulated trainers end so
    await_end(state, hub, sockets)
    assert len(json.loads(fleetprof("report", "latest", "-o", "json").stdout)["ranks"]) == 2


def test_a_capture_under_way_is_finished_when_the_last_job_ends(
    start: Start, fleetprof: Callable[..., Finished], state: StateDirectory, sockets: Path
) -> None:
    job = start("run", "--name", "sim", "--", "bash", "-c", TRAINERS)
    hub = find_hub(state)
    options = ("--wait-for-job", "--iterations", "100", "--canary", "never", "--no-wait", "-o", "text")
    result = fleetprof("capture", "sim", *options)
    assert (uid := result.stdout.strip()), result.stderr
    job.terminate()
    job.wait(60)
    await_end(state, hub, sockets)
    (capture,) = json.loads(fleetprof("list", "-o", "json").stdout)["captures"]
    assert (capture["uid"], capture["finished"]) == (uid, True)


def test_jobs_share_one_hub_which_the_last_one_ends(
    start: Start, fleetprof: Callable[..., Finished], state: StateDirectory, sockets: Path
) -> None:
    jobs = {name: start("run", "--name", name, "--", "sleep", "120") for name in ("one", "two")}
    hub = find_hub(state)
    for name in jobs:
        wait_until(lambda name=name: f'"name": "{name}"' in fleetprof("list", "-o", "json").stdout, name)  # type: ignore[misc]
    jobs["one"].terminate()
    assert jobs["one"].wait(60) == -signal.SIGTERM
    assert state.hub() == hub
    jobs["two"].terminate()
    assert jobs["two"].wait(60) == -signal.SIGTERM
    await_end(state, hub, sockets)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_however_a_run_ends_nothing_stays(
    start: Start, state: StateDirectory, sockets: Path, number: signal.Signals
) -> None:
    job = start("run", "--", sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)")
    hub = find_hub(state)
    (record,) = wait_until(lambda: list(live_runs(state)), "the run")
    command = [int(pid) for pid in Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()]
    os.kill(record.pid, number)
    job.wait(60)
    await_end(state, hub, sockets)
    for pid in command:  # the command outlives a run that is killed, as it would a shell
        if Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGTERM)


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -TERM $$", -15)])
def test_the_exit_code_is_still_that_of_the_command(
    fleetprof: Callable[..., Finished], state: StateDirectory, script: str, code: int
) -> None:
    result = fleetprof("run", "--", "bash", "-c", script)
    assert result.returncode == code
    pid = hub_lock.read_holder(state).pid
    assert not Path(f"/proc/{pid}").exists()
    assert not hub_lock.is_held(state)


def test_up_takes_over_and_stays(start: Start, fleetprof: Callable[..., Finished], state: StateDirectory) -> None:
    job = start("run", "--name", "here", "--", "sleep", "120")
    first = find_hub(state)
    up = start("up", "--no-ui", log="up.log")
    wait_until(lambda: (found := state.hub()) is not None and found.pid != first.pid, "the other hub")
    wait_until(lambda: '"name": "here"' in fleetprof("list", "-o", "json").stdout, "the job")
    job.terminate()
    job.wait(60)
    assert up.poll() is None
    assert fleetprof("list", "-o", "json").returncode == 0


def test_what_keeps_its_hub_from_serving_is_said_and_the_job_goes_on(
    start: Start, state: StateDirectory, tmp_path: Path
) -> None:
    state.prepare()
    (state.path / "store.json").write_bytes(msgspec.json.encode(StoreLocation(directory="/proc/store")))
    log = tmp_path / "log"
    waits = f"until grep -q 'its hub ended' {log}; do sleep 0.2; done; exit 3"
    assert start("run", "--", "timeout", "60", "bash", "-c", waits).wait(90) == 3
    assert "this job cannot be captured, its hub ended: cannot use the store /proc/store" in log.read_text()


def test_a_hub_of_another_version_is_named(fleetprof: Callable[..., Finished], state: StateDirectory) -> None:
    state.prepare()
    with hub_lock.hold(state):
        store = StoreLocation(directory=str(state.default_store))
        state.publish(HubRecord(address="unix:x", pid=17, store=store, started_unix_ns=1, version="0.0.9"))
        result = fleetprof("run", "--", "true")
    assert result.returncode == 0
    assert "the hub here (pid 17) is of 0.0.9, and this job of " in result.stderr


def test_a_run_that_begins_while_the_hub_ends_gets_one(state: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    state.prepare()
    served: list[bool] = []
    run = RunRecord(name="x", namespace="l", pid=1, socket_directory="/x", started_unix_ns=1, command=["a"])
    with ExitStack() as late:

        async def serve(_state: StateDirectory, _listen: object) -> bool:
            served.append(True)
            late.enter_context(new_run_folder(state, "late").hold(run)) if len(served) == 1 else late.close()
            return True

        monkeypatch.setattr(job_hub, "_serve", serve)
        with hub_lock.try_hold(state) as lock:
            assert lock is not None
            job_hub._serve_while_jobs_come(state, None, lock)
    assert served == [True, True]
    assert not hub_lock.is_held(state)


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({}, ""),
        ({"SLURM_NNODES": "1", "SLURM_NODEID": "0"}, ""),
        ({"SLURM_NNODES": "2", "SLURM_NODEID": "0"}, "0.0.0.0:0"),
        ({"SLURM_NNODES": "2", "SLURM_NODEID": "1"}, None),
        ({"SLURM_NNODES": "2"}, "0.0.0.0:0"),  # the batch script itself, on the first host
        ({"SLURM_NNODES": "2", "SLURM_STEP_NUM_NODES": "1", "SLURM_NODEID": "0"}, ""),
    ],
)
def test_in_an_allocation_the_first_host_leads(environment: Mapping[str, str], place: str | None) -> None:
    assert choose_place(environment) == place
