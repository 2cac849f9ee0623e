"""`fleetprof doctor`: each fault of a set-up is found and comes with what to do."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_cli.doctor.check import Verdict
from fleetprof_cli.doctor.checks import check_state, judge_environment, judge_leftovers, judge_store
from fleetprof_cli.doctor.fleet_checks import judge_fleet
from fleetprof_cli.doctor.interpreter import (
    choose_interpreter,
    find_interpreters,
    judge_interpreter,
    judge_others,
    judge_torch,
    probe_interpreter,
)
from fleetprof_cli.local.hub_client import advise_start
from fleetprof_cli.local.run.run_folder import RunRecord, new_run_folder, run_folders
from fleetprof_cli.local.run.socket_directories import socket_directories
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.store_location import StoreLocation

Finished = subprocess.CompletedProcess[str]
S = 10**9
NOW = 1000 * S


@pytest.mark.parametrize(
    ("version", "kineto", "verdict", "advice"),
    [
        ("2.15.0+cu132", True, Verdict.OK, ""),
        ("2.10.0", True, Verdict.OK, ""),
        ("2.9.1", True, Verdict.FAIL, "too old: use PyTorch 2.10 or later"),
        ("2.10.0a0+git1", True, Verdict.OK, ""),
        ("master", True, Verdict.OK, ""),
        ("2.15.0", False, Verdict.FAIL, "official build"),
    ],
)
def test_pytorch_is_judged_by_its_version(version: str, kineto: bool, verdict: Verdict, advice: str) -> None:
    check = judge_torch(version, kineto, 0)
    assert check.verdict == verdict
    assert advice in check.advice


@pytest.mark.parametrize(
    ("facts", "verdicts"),
    [
        ({"error": "no such program", "missing": True}, {"interpreter": Verdict.FAIL}),
        ({"python": "3.11.7", "isolated": False, "error": "No module"}, {"pytorch": Verdict.FAIL}),
        ({"python": "3.8.1", "isolated": False, "error": ""}, {"interpreter": Verdict.WARN}),
        ({"python": "3.11.7", "isolated": True, "error": ""}, {"interpreter": Verdict.WARN}),
    ],
)
def test_the_interpreter_is_judged(facts: dict[str, Any], verdicts: dict[str, Verdict]) -> None:
    found = {check.name: check for check in judge_interpreter("python3", facts)}
    for name, verdict in verdicts.items():
        assert found[name].verdict == verdict
        assert found[name].advice


def test_an_interpreter_says_what_it_is(tmp_path: Path) -> None:
    assert probe_interpreter(sys.executable)["python"].startswith("3.")
    assert probe_interpreter(str(tmp_path / "none"))["missing"]
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho nonsense\n")
    broken.chmod(0o755)
    assert probe_interpreter(str(broken))["missing"]


@pytest.mark.parametrize(
    ("environment", "verdict"),
    [
        ({"KINETO_IPC_SOCKET_DIR": "/x"}, Verdict.FAIL),
        ({"KINETO_ONDEMAND_TRACE_DIR": "/x"}, Verdict.FAIL),
        ({"KINETO_CONFIG": "/x"}, Verdict.WARN),
        ({"FLEETPROF_AGENT": "0"}, Verdict.WARN),
        ({"FLEETPROF_AGENT": "1", "PATH": "/bin"}, Verdict.OK),
    ],
)
def test_variables_that_are_in_the_way_are_named(environment: dict[str, str], verdict: Verdict) -> None:
    (check,) = judge_environment(environment)
    assert check.verdict == verdict


def test_secrets_that_others_can_read_are_named(state: StateDirectory) -> None:
    state.prepare()
    state.token()
    assert [check.verdict for check in check_state(state)] == [Verdict.OK]
    state.token_file.chmod(0o644)
    (check,) = check_state(state)
    assert (check.verdict, check.advice) == (Verdict.FAIL, f"close it: chmod go= {state.token_file}")


@pytest.mark.parametrize(
    ("place", "is_writable", "flags", "verdict", "reason"),
    [
        ("there", True, 0, Verdict.WARN, "is not there yet"),
        ("there", False, os.ST_RDONLY, Verdict.FAIL, "cannot be used: Read-only file system"),
        ("there", False, 0, Verdict.FAIL, "cannot be used: Permission denied"),
        ("file", True, 0, Verdict.FAIL, "file: Not a directory"),
        ("x" * 300, True, 0, Verdict.FAIL, "cannot be used: File name too long"),
    ],
)
def test_a_state_directory_that_cannot_be_made_is_named_before_it_is_needed(
    place: str, is_writable: bool, flags: int, verdict: Verdict, reason: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "access", lambda *_: is_writable)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flags))
    state = StateDirectory(tmp_path / place / "state")
    (check,) = check_state(state)
    assert (check.verdict, reason in check.found) == (verdict, True)
    assert ("--state" in check.advice) == (verdict is Verdict.FAIL)
    assert ("--state or FLEETPROF_STATE" in advise_start(state)) == (verdict is Verdict.FAIL)


def test_what_dead_runs_left_is_named(state: StateDirectory, tmp_path: Path) -> None:
    state.prepare()
    dead, alive = new_run_folder(state, "dead"), new_run_folder(state, "alive")

    def record(directory: str) -> RunRecord:
        return RunRecord(name="x", namespace="l", pid=1, socket_directory=directory, started_unix_ns=1, command=["x"])

    directories = [tmp_path / "alive", tmp_path / "dead"]
    for directory in directories:
        directory.mkdir()
    with dead.hold(record(str(tmp_path / "dead"))):
        (dead.spool / "trace.json.gz").write_bytes(b"x" * 2048)
    with alive.hold(record(str(tmp_path / "alive"))):
        checks = list(judge_leftovers(run_folders(state), directories))
    assert [check.verdict for check in checks] == [Verdict.WARN] * 2
    assert "2.00 KiB of traces not uploaded" in checks[0].found
    assert checks[0].advice.startswith("the next `fleetprof up` sends them")
    assert checks[1].advice.endswith(f"rm -r {tmp_path}/dead")
    (dead.spool / "trace.json.gz").unlink()
    (dead.spool / "journal").mkdir()
    (dead.spool / "journal" / "capture.json").touch()
    assert next(iter(judge_leftovers([dead], []))).advice.startswith("the next `fleetprof up` finishes its captures")


def test_a_socket_that_somebody_listens_at_is_of_a_run_with_another_state_directory(sockets: Path) -> None:
    directory = sockets / "x"
    directory.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as held:
        held.bind(str(directory / "dynolog"))
        assert [check.verdict for check in judge_leftovers([], [directory])] == [Verdict.OK]
    assert [check.verdict for check in judge_leftovers([], [directory])] == [Verdict.WARN]


HOSTILE = [
    "a b; touch pwned",
    "$(touch pwned)",
    "it's",
    "\x1b]0;owned\x07",
    "new\nline",
    "\u202eevil",
    "-rf",
    "\udcff\\",
]


@pytest.mark.attack
@pytest.mark.parametrize("name", HOSTILE)
def test_a_pasted_advice_touches_what_it_names_and_nothing_else(tmp_path: Path, name: str) -> None:
    victim = tmp_path / name
    victim.mkdir()
    (tmp_path / "other").mkdir()
    (check,) = [check for check in judge_leftovers([], [victim]) if check.verdict is Verdict.WARN]
    assert (check.found + check.advice).isprintable()
    command = check.advice.partition(": ")[2]
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, timeout=60)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


@pytest.mark.attack
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a directory away")
def test_nothing_of_another_user_is_named(
    state: StateDirectory, tmp_path: Path, sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(sockets))
    planted = sockets / "fp0-$(touch pwned)" / "x"
    planted.mkdir(parents=True, mode=0o700)
    planted.parent.chmod(0o700)
    assert planted in socket_directories()
    os.chown(planted.parent, 12345, -1)
    assert planted not in socket_directories()
    os.chown(planted, 12345, -1)
    assert [check.verdict for check in judge_leftovers([], [planted])] == [Verdict.OK]
    state.prepare()
    os.chown(state.path, 12345, -1)
    (check,) = check_state(state)
    assert (check.verdict, "another user" in check.found) == (Verdict.FAIL, True)


def test_a_store_that_others_can_enter_is_named(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store").chmod(0o750)
    tmp_path.chmod(0o755)
    (check,) = judge_store(StoreLocation(directory=str(tmp_path / "store")))
    assert (check.verdict, check.advice) == (
        Verdict.WARN,
        f"unless it is meant for them: chmod -R go= {tmp_path}/store",
    )
    (tmp_path / "store").chmod(0o700)
    assert list(judge_store(StoreLocation(directory=str(tmp_path / "store")))) == []


def make_trainer(**fields: Any) -> pb.Process:
    values: dict[str, Any] = {
        "pid": 7,
        "role": pb.TRAINER,
        "rank": 0,
        "polls_kineto": True,
        "has_agent": True,
        "poll_interval_ns": S,
        "step": pb.StepState(step=9),
    }
    return pb.Process(**{name: value for name, value in (values | fields).items() if value is not None})


def make_sidecar(*processes: pb.Process, heard_s: float = 1, left: bool = False, ahead_s: int = 0) -> pb.SidecarStatus:
    identity = pb.Identity(
        namespace="local", pod_name="pod", host_name="host", workload=pb.Workload(kind="Job", name="train")
    )
    return pb.SidecarStatus(
        identity=identity,
        processes=processes,
        connected_unix_ns=0 if left else NOW - 100 * S,
        last_heartbeat_unix_ns=NOW - int(heard_s * S),
        clock_ahead_ns=ahead_s * S,
    )


@pytest.mark.parametrize(
    ("sidecar", "verdict", "finding"),
    [
        (make_sidecar(make_trainer()), Verdict.OK, "1 training process asks for captures, 1 with the agent"),
        (make_sidecar(), Verdict.FAIL, "has it imported torch yet?"),
        (
            make_sidecar(make_trainer(polls_kineto=False, torch_version="2.9.1", first_seen_unix_ns=NOW - S)),
            Verdict.FAIL,
            "cannot be captured PyTorch 2.9.1 is too old: use PyTorch 2.10 or later",
        ),
        (make_sidecar(make_trainer(role=pb.LAUNCHER)), Verdict.FAIL, "1 process, no training process among them"),
        (
            make_sidecar(make_trainer(role=pb.LAUNCHER, first_seen_unix_ns=NOW - 20 * S)),
            Verdict.WARN,
            "no training process among them that asks for captures yet; the newest began 20s ago",
        ),
        (make_sidecar(make_trainer(has_agent=False)), Verdict.WARN, "captures start by time"),
        (make_sidecar(make_trainer(step=None)), Verdict.WARN, "waits for the first optimizer steps of all ranks"),
        (
            make_sidecar(make_trainer(step=None, has_agent=False, agent_waits=True)),
            Verdict.WARN,
            "waits for the first optimizer steps of all ranks",
        ),
        (make_sidecar(make_trainer(rank=None)), Verdict.WARN, "1 training process does not tell its rank"),
        (make_sidecar(make_trainer(poll_interval_ns=5 * S)), Verdict.WARN, "polls every 5.00 s"),
        (make_sidecar(make_trainer(busy=True)), Verdict.OK, "1 process is being profiled"),
        (make_sidecar(make_trainer(), heard_s=60), Verdict.WARN, "last heard of 60s ago"),
        (make_sidecar(heard_s=60, left=True), Verdict.OK, "left 60s ago"),
        (make_sidecar(make_trainer(), ahead_s=5), Verdict.WARN, "its clock is 5.00 s ahead"),
        (make_sidecar(make_trainer(), ahead_s=-5), Verdict.WARN, "its clock is 5.00 s behind"),
        (
            make_sidecar(make_trainer(), ahead_s=-300),
            Verdict.FAIL,
            "the clock of host is 5 minutes behind the hub's; set",
        ),
    ],
)
def test_what_the_hub_sees_is_judged(sidecar: pb.SidecarStatus, verdict: Verdict, finding: str) -> None:
    checks = list(judge_fleet([sidecar], NOW))
    assert any(check.verdict == verdict and finding in f"{check.found} {check.advice}" for check in checks), checks


def test_a_job_that_has_ended_is_no_fault() -> None:
    checks = list(judge_fleet([make_sidecar(heard_s=60, left=True), make_sidecar(make_trainer())], NOW))
    assert {check.verdict for check in checks} == {Verdict.OK}
    assert [check.name for check in checks].count("job train") == 1


@pytest.mark.parametrize(("hosts", "expected"), [(["a", "a"], False), (["a", "b"], True)])
def test_clocks_are_spoken_of_where_there_are_several(hosts: list[str], expected: bool) -> None:
    sidecars = [make_sidecar(make_trainer()) for _ in hosts]
    for sidecar, host in zip(sidecars, hosts, strict=True):
        sidecar.identity.host_name = host
    found = [check for check in judge_fleet(sidecars, NOW) if check.name == "clocks"]
    assert [check.found for check in found] == (["the sidecars run on 2 hosts"] if expected else [])


@pytest.mark.parametrize(
    ("location", "advice"),
    [
        (StoreLocation(directory="/d"), []),
        (StoreLocation(bucket="b", prefix="p"), ["AbortIncompleteMultipartUpload"]),
    ],
)
def test_a_bucket_needs_a_rule_of_its_owner(location: StoreLocation, advice: list[str]) -> None:
    checks = list(judge_store(location))
    assert len(checks) == len(advice)
    for check, phrase in zip(checks, advice, strict=True):
        assert (check.verdict, check.found) == (Verdict.OK, "s3://b/p")
        assert phrase in check.advice


def test_a_job_without_the_agent_is_warned_of_its_forks() -> None:
    checks = [
        *judge_environment({"FLEETPROF_AGENT": "0"}),
        *judge_interpreter("python3", {"python": "3.11.7", "isolated": True, "error": ""}),
        *judge_fleet([make_sidecar(make_trainer(has_agent=False))], NOW),
    ]
    assert sum("os.fork() child" in check.advice for check in checks) == 3


def test_no_sidecar_at_all_is_a_warning() -> None:
    (check,) = judge_fleet([], NOW)
    assert check.verdict == Verdict.WARN


OWN = os.path.dirname(sys.executable)


@pytest.mark.parametrize(
    ("active", "expected"),
    [({}, [OWN, "path"]), ({"VIRTUAL_ENV": "env"}, ["env/bin", OWN, "path"]),
     ({"CONDA_PREFIX": "env"}, ["env/bin", OWN, "path"]), ({"VIRTUAL_ENV": "gone"}, [OWN, "path"]),
     ({"VIRTUAL_ENV": "env", "CONDA_PREFIX": "env"}, ["env/bin", OWN, "path"])],
)  # fmt: skip
def test_interpreters_that_may_train_are_looked_for(
    active: dict[str, str], expected: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in ("env/bin", "path"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "python").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    found = find_interpreters({name: str(tmp_path / folder) for name, folder in active.items()})
    assert [os.path.dirname(python) for python in found] == [str(tmp_path / folder) for folder in expected]


@pytest.mark.parametrize(
    ("versions", "chosen", "warned"),
    [
        ({"env": "2.9.1", "own": "2.15.0"}, "env", []),
        ({"own": "2.15.0", "path": "2.9.1"}, "own", ["2.9.1 in path"]),
        ({"env": "", "own": "2.15.0", "path": "2.13.0"}, "own", []),
        ({"own": "", "path": ""}, "path", []),
        ({"own": "", "path": "2.9.1"}, "path", []),
    ],
)
def test_the_first_interpreter_with_pytorch_is_checked_and_others_that_are_too_old_named(
    versions: dict[str, str], chosen: str, warned: list[str]
) -> None:
    assert choose_interpreter(versions) == chosen
    assert [check.found for check in judge_others(chosen, versions)] == warned


def test_the_command_says_it_in_json_and_in_its_code(
    fleetprof: Callable[..., Finished], state: StateDirectory, tmp_path: Path
) -> None:
    result = fleetprof("doctor", "--python", str(tmp_path / "none"), "-o", "json")
    document = json.loads(result.stdout)
    assert (result.returncode, document["ok"]) == (1, False)
    found = {check["name"]: check for check in document["checks"]}
    assert found["interpreter"]["verdict"] == "fail"
    advice = f"it starts with a job, or in another terminal: fleetprof up --state {state.path}"
    assert found["hub"]["advice"] == advice
    text = fleetprof("doctor", "--python", str(tmp_path / "none")).stdout
    assert "fail interpreter: " in text
    assert f"     -> {advice}" in text
