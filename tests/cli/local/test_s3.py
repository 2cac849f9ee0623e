"""Results in S3 through the command line: a whole capture, and credentials that are wrong from the start or run out."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api import keys
from fleetprof_cli.local.run.run_folder import run_folders
from fleetprof_cli.local.state import StateDirectory
from harness.forked import StartedCommand
from harness.waiting import wait_until

pytestmark = pytest.mark.s3

Finished = subprocess.CompletedProcess[str]
Start = Callable[..., StartedCommand]


@pytest.fixture
def environment(environment: dict[str, str], s3_server: Any) -> dict[str, str]:
    """The commands' environment with this server's credentials, and no others."""
    clean = {name: value for name, value in environment.items() if not name.startswith("AWS_")}
    return clean | {"AWS_ACCESS_KEY_ID": s3_server.access_key, "AWS_SECRET_ACCESS_KEY": s3_server.secret_key}


@pytest.fixture
def place(s3_server: Any) -> list[str]:
    """The flags of `up` for a bucket of this test's own."""
    return ["--store", f"s3://{s3_server.make_bucket()}/team/one", "--s3-endpoint", s3_server.endpoint_url]


@pytest.fixture
def hub(start: Start, state: StateDirectory, place: list[str]) -> StartedCommand:
    process = start("up", "--no-ui", *place, log="up.log")
    wait_until(lambda: state.hub() is not None or process.poll() is not None, "the hub")
    assert process.poll() is None
    return process


def test_a_capture_from_the_command_to_the_report_in_a_bucket(
    job: StartedCommand,
    fleetprof: Callable[..., Finished],
    state: StateDirectory,
    place: list[str],
    hub: Any,
    s3_server: Any,
) -> None:
    result = fleetprof("capture", "sim", "--iterations", "3", "-o", "json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert [rank["state"] for rank in document["ranks"]] == ["UPLOADED"] * 4
    uid = document["uid"]
    page = f"{place[1]}/v1/local/{uid}/report.html"
    assert fleetprof("report", "-o", "path").stdout.strip() == page
    # Without a hub: what the store holds is enough.
    hub.terminate()
    assert hub.wait(60) == 0
    report = json.loads(fleetprof("report", uid[:8], "-o", "json").stdout)
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1, 2, 3]
    assert document["name"] in fleetprof("report").stdout
    assert uid in fleetprof("list").stdout
    same = fleetprof("diff", uid, f"{place[1]}?endpoint={place[3]}/v1/local/{uid}/report.html", "-o", "json")
    assert json.loads(same.stdout)["notes"][0] == "both are the same capture", same.stderr
    assert not state.default_store.exists()
    bucket, _, prefix = place[1].removeprefix("s3://").partition("/")
    stored = s3_server.make_store(bucket, prefix).get(keys.report_page_key("local", uid)).decode()
    assert "<a href" not in stored
    assert f"<code>fleetprof report {uid} --trace-window all</code> fetches the traces" in stored


def test_credentials_that_are_wrong_are_said_by_up(
    start: Start, fleetprof: Callable[..., Finished], place: list[str], environment: dict[str, str]
) -> None:
    result = fleetprof("up", *place, env=environment | {"AWS_SECRET_ACCESS_KEY": "wrong"})
    assert result.returncode == 1
    assert "refuses these credentials (SignatureDoesNotMatch); check the access key, its secret" in result.stderr
    assert environment["AWS_SECRET_ACCESS_KEY"] not in result.stderr


@pytest.fixture
def revoke(s3_server: Any) -> Iterator[Callable[[], None]]:
    """Makes the server refuse the credentials that everybody has."""
    before = s3_server.secret_key

    def set_secret(secret: str) -> None:
        s3_server.stop()
        s3_server.secret_key = secret
        s3_server.start()

    yield lambda: set_secret("somebody-elses-secret")
    set_secret(before)


def test_credentials_that_run_out_end_the_capture_with_their_sentence_and_keep_the_traces_until_then(
    job: StartedCommand,
    start: Start,
    state: StateDirectory,
    revoke: Callable[[], None],
    tmp_path: Path,
) -> None:
    capture = start("capture", "sim", "--iterations", "60", "--deadline", "30", "-o", "json", log="capture.log")
    wait_until(lambda: "recording" in (tmp_path / "capture.log").read_text(), "the recording")
    revoke()
    (folder,) = run_folders(state)
    wait_until(
        lambda: len(list(folder.spool.rglob("*.trace.json.gz"))) == 4 or capture.poll() is not None, "the traces"
    )
    assert capture.poll() is None, (tmp_path / "capture.log").read_text()
    assert capture.wait(120) == 4
    log = (tmp_path / "capture.log").read_text()
    document = json.loads(log[log.index("{") : log.rindex("}") + 1])
    for rank in document["ranks"]:
        assert rank["reason"] == "UploadFailed"
        assert "the deadline of 30 s has passed" in rank["message"]
        assert "refuses these credentials (SignatureDoesNotMatch)" in rank["message"]
