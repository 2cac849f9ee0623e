"""Capture, list and report through the commands that a user types, with simulated trainers behind a real hub."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from fleetprof_cli.local.state import StateDirectory
from harness.forked import StartedCommand
from harness.waiting import wait_until

Finished = subprocess.CompletedProcess[str]
Start = Callable[..., StartedCommand]
ROOT = Path(__file__).parents[3]


def test_a_capture_from_the_command_to_the_report(
    job: StartedCommand, fleetprof: Callable[..., Finished], environment: dict[str, str]
) -> None:
    result = fleetprof("capture", "sim", "--iterations", "3", "-o", "json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert [rank["state"] for rank in document["ranks"]] == ["UPLOADED"] * 4
    assert document["start_mode"] == "step"
    assert "4 of 4 ranks uploaded" in result.stderr

    report = json.loads(fleetprof("report", document["uid"][:8], "-o", "json").stdout)
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1, 2, 3]
    assert Path(fleetprof("report", "-o", "path").stdout.strip()).name == "report.html"
    assert document["name"] in fleetprof("report").stdout

    listed = json.loads(fleetprof("list", "-o", "json").stdout)
    assert [capture["uid"] for capture in listed["captures"]] == [document["uid"]]
    assert (listed["jobs"][0]["name"], listed["jobs"][0]["ranks"]) == ("sim", [0, 1, 2, 3])
    text = fleetprof("list", env=environment | {"COLUMNS": "30"}).stdout  # ids are whole, however narrow it is
    assert "sim" in text
    assert document["uid"] in text


def test_chosen_ranks_from_a_file(job: StartedCommand, fleetprof: Callable[..., Finished], tmp_path: Path) -> None:
    request = (
        "apiVersion: fleetprof.io/v1alpha1\nkind: ProfileRequest\nmetadata: {name: two}\n"
        "spec: {target: {workload: {apiVersion: batch/v1, kind: Job, name: sim}}, "
        "ranks: {list: [1, 3]}, window: {iterations: 2}}\n"
    )
    (tmp_path / "request.yaml").write_text(request)
    result = fleetprof("capture", "-f", str(tmp_path / "request.yaml"), "-o", "json")
    assert result.returncode == 0, result.stderr
    assert [rank["rank"] for rank in json.loads(result.stdout)["ranks"]] == [1, 3]


def test_without_waiting_the_id_comes_back_at_once(job: StartedCommand, fleetprof: Callable[..., Finished]) -> None:
    result = fleetprof("capture", "--no-wait", "--iterations", "2")
    assert result.returncode == 0, result.stderr
    uid = result.stdout.strip()

    def finished() -> bool:
        captures = json.loads(fleetprof("list", "-o", "json").stdout)["captures"]
        return any(capture["uid"] == uid and capture["finished"] for capture in captures)

    wait_until(finished, "the capture's end")


def test_who_waits_for_a_job_may_leave(hub: StartedCommand, start: Start, tmp_path: Path) -> None:
    capture = start("capture", "--wait-for-job", log="capture.log")
    wait_until(lambda: "waiting for a job" in (tmp_path / "capture.log").read_text(), "the notice")
    capture.send_signal(signal.SIGINT)
    assert capture.wait(30) == 130
    assert "Traceback" not in (tmp_path / "capture.log").read_text()


def test_a_job_that_was_killed_is_none_any_more(
    hub: StartedCommand, start: Start, fleetprof: Callable[..., Finished]
) -> None:
    def jobs() -> list[str]:
        return [one["name"] for one in json.loads(fleetprof("list", "-o", "json").stdout)["jobs"]]

    killed_job = start("run", "--name", "gone", "--", "sleep", "60", log="gone.log")
    wait_until(lambda: jobs() == ["gone"], "the job")
    killed_job.kill()
    wait_until(lambda: jobs() == [], "its end")
    checks = json.loads(fleetprof("doctor", "-o", "json").stdout)["checks"]
    assert "gone" not in json.dumps([check for check in checks if check["verdict"] == "fail"])


def test_ctrl_c_takes_the_capture_back(
    job: StartedCommand, start: Start, fleetprof: Callable[..., Finished], tmp_path: Path
) -> None:
    capture = start("capture", "--iterations", "100", "-o", "json", log="capture.log")
    wait_until(lambda: "recording" in (tmp_path / "capture.log").read_text(), "the recording")
    capture.send_signal(signal.SIGINT)
    assert capture.wait(120) == 4
    log = (tmp_path / "capture.log").read_text()
    assert "cancelling the capture" in log
    document = json.loads(log[log.index("{") : log.rindex("}") + 1])
    assert {rank["reason"] for rank in document["ranks"]} == {"Cancelled"}


def test_another_terminal_cancels_a_capture(
    job: StartedCommand, start: Start, fleetprof: Callable[..., Finished], tmp_path: Path
) -> None:
    capture = start("capture", "--iterations", "100", "-o", "json", log="cancelled.log")
    wait_until(lambda: "recording" in (tmp_path / "cancelled.log").read_text(), "the recording")
    (running,) = [one for one in json.loads(fleetprof("list", "-o", "json").stdout)["captures"] if not one["finished"]]
    assert fleetprof("cancel", running["uid"][:8]).returncode == 0
    assert capture.wait(120) == 4
    again = fleetprof("cancel", running["uid"])
    assert (again.returncode, "is under way" in again.stderr) == (5, True)


def test_a_capture_outlives_its_hub(
    job: StartedCommand, hub: StartedCommand, start: Start, state: StateDirectory, tmp_path: Path
) -> None:
    capture = start("capture", "--iterations", "60", log="capture.log")
    wait_until(lambda: "recording" in (tmp_path / "capture.log").read_text(), "the recording")
    hub.kill()
    hub.wait()
    wait_until(lambda: "the hub does not answer any more" in (tmp_path / "capture.log").read_text(), "the notice")
    start("up", "--no-ui", log="up2.log")
    assert capture.wait(120) == 0, (tmp_path / "capture.log").read_text()


WRONG = [
    (["capture", "nobody"], 5, "no job nobody is running"),
    (["capture", "gc_one_rank", "--wait-for-job"], 2, "none can be: 'gc_one_rank' must be 1 to 52 of a-z, 0-9 and '-'"),
    (["capture", "Job/Sim", "--wait-for-job"], 2, "for example 'sim'"),
    (["capture", "sim", "--namespace", "my_team", "--wait-for-job"], 2, "for example 'my-team'"),
    (["capture", "s" * 53, "--wait-for-job"], 2, "no job " + "s" * 53),
    (["capture", "sim", "--ranks", "9"], 5, "9"),
    (["report", "nothing"], 5, "there is no capture nothing, nor any other"),
]


def test_what_is_wrong_is_said_with_its_code(job: StartedCommand, fleetprof: Callable[..., Finished]) -> None:
    # One hub and one job for all: to start them is most of what these cost, and none of them changes anything.
    for words, code, message in WRONG:
        result = fleetprof(*words)
        assert result.returncode == code, result.stderr
        assert message in result.stderr
        assert result.stdout == ""


def test_every_problem_of_a_file_is_printed(
    hub: StartedCommand, fleetprof: Callable[..., Finished], tmp_path: Path
) -> None:
    (tmp_path / "bad.yaml").write_text("apiVersion: v2\nkind: Foo\nspec: {window: {iterations: 0}}\n")
    result = fleetprof("capture", "-f", str(tmp_path / "bad.yaml"))
    assert result.returncode == 2
    for field in ("apiVersion", "kind", "spec.target", "spec.window.iterations"):
        assert f"  {field}: " in result.stderr


@pytest.mark.parametrize("flags", [["--iterations", "3"], ["--wait-for-job"]])
def test_a_file_and_flags_together_are_refused(
    fleetprof: Callable[..., Finished], flags: list[str], tmp_path: Path
) -> None:
    (tmp_path / "r.yaml").write_text("")
    result = fleetprof("capture", "-f", str(tmp_path / "r.yaml"), *flags)
    assert result.returncode == 2
    assert "-f holds the whole request" in result.stderr


@pytest.mark.parametrize("words", [["capture"], ["capture", "x", "-o", "json"]])
def test_without_a_hub_the_next_step_is_to_start_the_one_of_this_directory(
    fleetprof: Callable[..., Finished], state: StateDirectory, words: list[str]
) -> None:
    result = fleetprof(*words)
    assert (result.returncode, result.stdout) == (6, "")
    assert f"it starts with a job, or in another terminal: fleetprof up --state {state.path}\n" in result.stderr


def test_a_wrong_token_is_told_from_a_missing_hub(
    hub: StartedCommand, fleetprof: Callable[..., Finished], state: StateDirectory
) -> None:
    state.token_file.write_text("x" * 40)
    result = fleetprof("capture")
    assert result.returncode == 6
    assert "does not accept the token" in result.stderr


def test_a_hub_that_died_is_told(
    hub: StartedCommand, fleetprof: Callable[..., Finished], state: StateDirectory
) -> None:
    hub.kill()
    hub.wait()
    assert state.hub() is not None
    result = fleetprof("capture")
    assert result.returncode == 6
    assert "does not answer" in result.stderr
    assert "it starts with a job" in result.stderr
    record = state.hub()
    assert record is not None
    state.publish(msgspec.structs.replace(record, host_name="elsewhere"))
    assert "it was started on elsewhere, for jobs there" in fleetprof("capture").stderr


def test_without_a_hub_the_store_is_listed(fleetprof: Callable[..., Finished], state: StateDirectory) -> None:
    state.prepare()
    result = fleetprof("list", "-o", "json")
    assert result.returncode == 0
    assert json.loads(result.stdout) == {"jobs": [], "captures": []}
    assert "this is what the object store holds" in result.stderr
