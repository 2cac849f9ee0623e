"""`fleetprof run`: the command is as it would be without us, and can be captured."""

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.memory_shortage import SERVICE
from fleetprof_cli.local.run.run_folder import run_folders
from fleetprof_cli.local.state import StateDirectory
from harness.forked import StartedCommand
from harness.training.local_job import processes_of
from harness.waiting import wait_until

SIMULATION = Path(__file__).parents[2] / "simulation" / "trainer.py"
Finished = subprocess.CompletedProcess[str]


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", -15),
        ("kill -INT $$", -2),
        ("kill -SEGV $$", -11),
        ("kill -KILL $$", -9),
        ("kill -HUP $$; sleep 9", -1),
        ("kill -ABRT $$; sleep 9", -6),
        ("kill -PIPE $$; sleep 9", -13),
        ("kill -XFSZ $$; sleep 9", -25),
        ("kill -37 $$; sleep 9", -37),
        ("exit 143", 143),  # as a shell says of SIGTERM
    ],
)
def test_the_exit_code_is_that_of_the_command(fleetprof: Callable[..., Finished], script: str, code: int) -> None:
    assert fleetprof("run", "--no-hub", "--", "bash", "-c", script).returncode == code


def test_traces_that_could_not_be_stored_are_sent_by_the_next_hub(
    start: Callable[..., StartedCommand],
    fleetprof: Callable[..., Finished],
    state: StateDirectory,
    tmp_path: Path,
) -> None:
    first = start("up", "--no-ui", log="up.log")
    wait_until(state.hub, "the hub")
    trainers = f'exec "{sys.executable}" "{SIMULATION}" --directory "$KINETO_IPC_SOCKET_DIR" --ranks 2 --poll-ms 300'
    job = start("run", "--no-hub", "--name", "sim", "--linger", "1", "--", "bash", "-c", trainers, log="job.log")
    wait_until(lambda: fleetprof("list", "-o", "json").stdout.count('"step": ') >= 2, "two ranks")
    uid = fleetprof("capture", "--no-wait", "--iterations", "40", "--canary", "never", "-o", "text").stdout.strip()
    (folder,) = run_folders(state)
    wait_until(lambda: len(list((folder.spool / "journal").glob(f"{uid}-*"))) == 2, "the orders")
    first.kill()
    first.wait()
    wait_until(lambda: len(list(folder.spool.rglob("*.trace.json.gz"))) == 2, "the traces")
    job.terminate()
    job.wait(60)
    assert "the next hub (`fleetprof up`, or a job) sends them" in (tmp_path / "job.log").read_text()
    assert folder.unsent_bytes() > 0

    start("up", "--no-ui", log="up2.log")
    wait_until(lambda: not folder.path.exists(), f"the folder to go; {tmp_path / 'up2.log'}")
    wait_until(lambda: fleetprof("report", uid, "-o", "json").returncode == 0, "the report")
    report = json.loads(fleetprof("report", uid, "-o", "json").stdout)
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
    assert "traces that the job 'sim' could not store" in (tmp_path / "up2.log").read_text()


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGTERM, "ProcessExited"), (signal.SIGKILL, "ProcessKilled")])
def test_a_capture_whose_job_ends_while_no_hub_runs_is_finished_by_the_next_hub(
    start: Callable[..., StartedCommand],
    fleetprof: Callable[..., Finished],
    state: StateDirectory,
    tmp_path: Path,
    number: signal.Signals,
    reason: str,
) -> None:
    """Rank 0 is stored; then the hub dies, and after it the whole job, before rank 1 has begun its trace."""

    def find_capture() -> dict[str, Any]:
        return next(one for one in json.loads(fleetprof("list", "-o", "json").stdout)["captures"] if one["uid"] == uid)

    first = start("up", "--no-ui", log="up.log")
    wait_until(state.hub, "the hub")
    simulation = f'"{SIMULATION}" --directory "$KINETO_IPC_SOCKET_DIR" --ranks 2 --poll-ms 300'
    trainers = f'exec "{sys.executable}" {simulation} --fault late_steps=400 --fault orderly_end --faulty-rank 1'
    job = start("run", "--no-hub", "--name", "sim", "--", "bash", "-c", trainers, log="job.log")
    wait_until(lambda: fleetprof("list", "-o", "json").stdout.count('"step": ') >= 2, "two ranks")
    options = ("--iterations", "10", "--canary", "never", "--no-wait", "-o", "text")
    uid = fleetprof("capture", *options).stdout.strip()
    wait_until(lambda: "UPLOADED" in json.dumps(find_capture()), "rank 0's trace")
    first.kill()
    first.wait()
    os.killpg(job.pid, number)
    job.wait(60)

    start("up", "--no-ui", log="up2.log")
    wait_until(lambda: find_capture()["finished"], f"the capture's end; {tmp_path / 'up2.log'}")
    assert reason in json.dumps(find_capture())
    assert [rank["rank"] for rank in json.loads(fleetprof("report", uid, "-o", "json").stdout)["ranks"]] == [0]
    wait_until(lambda: not run_folders(state), "the folder to go")


@pytest.mark.parametrize(("command", "code"), [("no-such-program", 127), (__file__, 126)])
def test_a_command_that_cannot_be_started_ends_as_in_a_shell(
    fleetprof: Callable[..., Finished], command: str, code: int
) -> None:
    result = fleetprof("run", "--no-hub", "--", command)
    assert result.returncode == code
    assert command in result.stderr
    assert code == 126 or "can be captured" not in result.stderr


def test_output_and_arguments_pass_through_untouched(fleetprof: Callable[..., Finished]) -> None:
    result = fleetprof("run", "--no-hub", "--name", "x", "--", "printf", "%s|", "a b", "--name", "-o", "")
    assert result.stdout == "a b|--name|-o||"


def test_the_command_gets_what_kineto_needs(fleetprof: Callable[..., Finished], state: StateDirectory) -> None:
    result = fleetprof(
        "run", "--no-hub", "--", sys.executable, "-c", "import os, json; print(json.dumps(dict(os.environ)))"
    )
    environment = json.loads(result.stdout)
    directory = environment["KINETO_IPC_SOCKET_DIR"]
    assert environment["KINETO_USE_DAEMON"] == "1"
    assert environment["KINETO_ONDEMAND_TRACE_DIR"] == f"{directory}/traces"
    assert not Path(directory).exists()
    # Nobody else can ever make them anew for a child that outlives the run.
    assert stat.S_IMODE(Path(directory).parent.stat().st_mode) == 0o700
    agent = Path(environment["PYTHONPATH"].split(":")[0])
    assert (agent.name, agent.parents[2], agent.exists()) == ("agent", state.path, False)


LOOK = """
import os
def read(pid): return int(open(f"/proc/{pid}/oom_score_adj").read())
parent = os.getppid()
others = {int(pid) for pid in open(f"/proc/{parent}/task/{parent}/children").read().split()} - {os.getpid()}
print(read(os.getpid()), read(parent), *(read(pid) for pid in others))
"""


@pytest.mark.attack
def test_the_kernel_prefers_the_sidecar_to_the_command_when_memory_is_short(fleetprof: Callable[..., Finished]) -> None:
    """`fleetprof run` itself stays as it is: its end would be the job's, and the command would inherit its score."""
    own = int(Path("/proc/self/oom_score_adj").read_text())
    result = fleetprof("run", "--no-hub", "--", sys.executable, "-c", LOOK)
    assert [int(score) for score in result.stdout.split()] == [own, own, max(own, SERVICE)], result.stderr


ANOTHER_USER = """
import os, sys
os.setgroups([]); os.setgid(12345); os.setuid(12345)
for path in sys.argv[1:]:
    for act in (os.makedirs, os.rmdir, lambda p: os.rename(p, p + "-away"), lambda p: os.symlink("/", p)):
        try:
            act(path)
            print("did", path)
        except (PermissionError, FileExistsError):
            print("refused")
        except FileNotFoundError:
            print("absent")
"""


@pytest.mark.attack
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as another user")
def test_another_user_cannot_make_anew_what_children_of_a_finished_run_still_name(
    fleetprof: Callable[..., Finished], environment: dict[str, str]
) -> None:
    """A helper that the job left behind has them on PYTHONPATH and in KINETO_IPC_SOCKET_DIR."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o1777)  # as /tmp is
        more = {"TMPDIR": folder, "FLEETPROF_STATE": f"{folder}/state"}
        result = fleetprof(
            "run",
            "--no-hub",
            "--",
            "printenv",
            "KINETO_IPC_SOCKET_DIR",
            "KINETO_CONFIG",
            "PYTHONPATH",
            env=environment | more,
        )
        named = [line.split(":")[0] for line in result.stdout.split()]
        assert len(named) == 3
        assert all(path.startswith(folder) for path in named)
        above = {str(parent) for path in named for parent in Path(path).parents if parent.is_relative_to(folder)}
        tried = subprocess.run(
            [sys.executable, "-c", ANOTHER_USER, *named, *sorted(above - {folder})],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    assert set(tried.stdout.split()) == {"refused"}


def test_without_the_agent_pythonpath_is_as_it_was(fleetprof: Callable[..., Finished]) -> None:
    result = fleetprof(
        "run", "--no-hub", "--no-agent", "--", "bash", "-c", "echo ${PYTHONPATH:-none} $KINETO_USE_DAEMON"
    )
    assert result.stdout.split()[-1] == "1"
    assert "agent" not in result.stdout


def test_signal_dispositions_and_mask_are_those_of_a_shell(fleetprof: Callable[..., Finished]) -> None:
    script = "grep -E '^Sig(Blk|Ign)' /proc/self/status"
    bare = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
    ours = fleetprof("run", "--no-hub", "--", "bash", "-c", script).stdout

    def sets(status: str) -> list[int]:
        # glibc's posix_spawn leaves its own signals 32 and 33 ignored; glibc sets them up anew where it uses them.
        return [int(line.split()[1], 16) & ~(3 << 31) for line in status.splitlines()]

    assert sets(ours) == sets(bare)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_reaches_the_command_once(
    start: Callable[..., StartedCommand], tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "got"
    script = (
        f"import signal, sys, time\n"
        f"def note(n, _): open({str(file)!r}, 'a').write(f'{{n}} ')\n"
        f"signal.signal({int(number)}, note); open({str(file)!r}, 'w').close()\n"
        "end = time.time() + 30\n"
        f"while time.time() < end and not open({str(file)!r}).read(): time.sleep(0.02)\n"
        "time.sleep(0.3); sys.exit(5)"
    )
    process = start("run", "--no-hub", "--", sys.executable, "-c", script)
    wait_until(file.exists, "the command")
    process.send_signal(number)
    assert process.wait(60) == 5
    assert file.read_text() == f"{int(number)} "


def test_nothing_is_left_behind(fleetprof: Callable[..., Finished], state: StateDirectory, sockets: Path) -> None:
    assert fleetprof("run", "--no-hub", "--", "true").returncode == 0
    assert list(sockets.glob("*/*")) == []
    assert run_folders(state) == []


@pytest.mark.parametrize("place", ["file", "file/state"])
def test_the_job_runs_even_when_nothing_of_ours_can(
    fleetprof: Callable[..., Finished], environment: dict[str, str], tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("")
    result = fleetprof(
        "run",
        "--no-hub",
        "--",
        "bash",
        "-c",
        "echo ${KINETO_USE_DAEMON:-unset}; exit 3",
        env=environment | {"FLEETPROF_STATE": str(tmp_path / place)},
    )
    assert (result.returncode, result.stdout) == (3, "unset\n")
    (line,) = result.stderr.splitlines()
    assert "this job cannot be captured: cannot use the state directory" in line
    assert line.endswith("; choose another with --state or FLEETPROF_STATE")


def test_a_sidecar_that_cannot_start_does_not_stop_the_job(
    fleetprof: Callable[..., Finished], environment: dict[str, str], tmp_path: Path
) -> None:
    broken = tmp_path / "broken" / "fleetprof_sidecar"
    (broken / "sockets").mkdir(parents=True)
    (broken / "__init__.py").write_text("")
    (broken / "sockets" / "__init__.py").write_text("")
    (broken / "main.py").write_text("raise SystemExit('broken on purpose')")
    (broken / "sockets" / "directory.py").write_text(
        "from os import environ\n\ndef trainer_environment(p, e): return dict(e)"
    )
    result = fleetprof(
        "run", "--no-hub", "--", "bash", "-c", "exit 3", env=environment | {"PYTHONPATH": str(broken.parent)}
    )
    assert result.returncode == 3
    assert (
        "this job cannot be captured: the sidecar did not start; its log ends with: broken on purpose" in result.stderr
    )


def test_a_sidecar_that_dies_is_started_again(
    start: Callable[..., StartedCommand], tmp_path: Path, state: StateDirectory
) -> None:
    process = start("run", "--no-hub", "--", "sleep", "60")

    def sidecar(other_than: int = 0) -> int:
        found = [pid for pid, _, words in processes_of(process.pid) if "fleetprof_sidecar.main" in words]
        return next((pid for pid in found if pid != other_than), 0)

    first = wait_until(sidecar, "the sidecar")
    wait_until(lambda: "can be captured" in (tmp_path / "log").read_text(), "the command")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: sidecar(first), "its successor")
    process.terminate()
    assert process.wait(60) == -signal.SIGTERM
    assert "the job is not affected" in (tmp_path / "log").read_text()


def test_the_sidecar_ends_when_run_is_killed(start: Callable[..., StartedCommand]) -> None:
    process = start("run", "--no-hub", "--", "sleep", "1000")

    def family() -> dict[str, int]:
        return {
            name: pid
            for pid, _, words in processes_of(process.pid)
            for name in ("fleetprof_sidecar.main", "sleep 1000")
            if name in words and "fleetprof_cli.main" not in words
        }

    wait_until(lambda: len(family()) == 2, "sidecar and command")
    known = family()
    process.kill()
    process.wait()
    wait_until(lambda: not Path(f"/proc/{known['fleetprof_sidecar.main']}").exists(), "the sidecar's end")
    # The command goes on, as it would when a shell is killed; it is ours to end here.
    os.kill(known["sleep 1000"], signal.SIGTERM)


def test_two_runs_of_one_script_have_two_names(
    start: Callable[..., StartedCommand], fleetprof: Callable[..., Finished], state: StateDirectory
) -> None:
    start("run", "--no-hub", "--", "sleep", "30")
    wait_until(lambda: any(folder.is_alive() for folder in run_folders(state)), "the first run")
    assert "job 'sleep-2' can be captured" in fleetprof("run", "--no-hub", "--", "sleep", "0").stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "Missing argument"),
        (["run", "--name", "My Job", "--", "true"], "for example 'my-job'"),
        (["run", "--namespace", "My Team", "--", "true"], "for example 'my-team'"),
        (["run", "--label", "x", "--", "true"], "must be KEY=VALUE"),
        (["run", "--label", "a=b,c", "--", "true"], "without a comma"),
    ],
)
def test_a_wrong_command_line_is_code_2(fleetprof: Callable[..., Finished], words: list[str], message: str) -> None:
    result = fleetprof(*words)
    assert result.returncode == 2
    assert message in result.stderr


def test_it_costs_the_job_little_to_start(fleetprof: Callable[..., Finished]) -> None:
    # What `run` imports is what a job waits for: none of the heavy packages may be among it.
    code = (
        "import sys; import fleetprof_cli.main, fleetprof_cli.commands.local.run; "
        "print([m for m in ('grpc', 'numpy', 'pydantic', 'boto3', 'rich', 'aiohttp') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
