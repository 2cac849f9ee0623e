"""`fleetprof ui`, `fleetprof catalog rebuild`, and the web UI of `fleetprof up`, as real processes."""

import json
import logging
import re
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.local.web_ui.address import forget_page, open_in_browser
from fleetprof_cli.local.web_ui.log import make_handler
from harness.forked import StartedCommand
from harness.waiting import wait_until

Finished = subprocess.CompletedProcess[str]
Start = Callable[..., StartedCommand]
REQUEST = """
apiVersion: fleetprof.io/v1alpha1
kind: ProfileRequest
metadata: {name: from-the-page}
spec:
  target: {workload: {apiVersion: batch/v1, kind: Job, name: sim}}
  window: {iterations: 20}
  canary: Never
"""


@dataclass(frozen=True)
class Page:
    """A browser that has opened the printed address."""

    client: httpx2.Client
    headers: dict[str, str]
    port: int


def open_page(log: Path, before: str = "") -> Page:
    """Signs in with the address in a command's output, the one that stands behind the words `before`."""
    address = re.compile(before + r"(http://127\.0\.0\.1:(\d+))/\w*#token=(\S+)")
    found = wait_until(lambda: address.search(log.read_text()), "the address")
    base, port, token = found[1], int(found[2]), found[3]
    headers = {"Origin": base, "X-Fleetprof-Request": "1"}
    client = httpx2.Client(base_url=base, headers={"Accept": "application/json"}, trust_env=False)
    assert client.post("/session", json={"token": token}, headers=headers).status_code == 204
    return Page(client, headers, port)


def listening(pid: int) -> set[str]:
    """Addresses (as /proc has them) that a process listens at."""
    inodes = {str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                found.add(fields[1].partition(":")[0])
    return found


def test_it_serves_a_store_on_loopback_without_a_hub(
    start: Start, fleetprof: Callable[..., Finished], state: StateDirectory, tmp_path: Path
) -> None:
    process = start("ui", "--port", "0", "--no-open", log="ui.log")
    page = open_page(tmp_path / "ui.log")
    other = httpx2.Client(base_url=page.client.base_url, headers={"Accept": "application/json"}, trust_env=False)
    assert other.get("/whoami").status_code == 401
    open_page(tmp_path / "ui.log", "for another browser, once: ").client.close()
    wait_until(lambda: page.client.get("/readyz").status_code == 200, "a look at the store")
    assert page.client.get("/fleet").json()["items"] == []
    assert listening(process.pid) == {"0100007F"}
    for path in ("/requests", "/requests/check"):
        refused = page.client.post(path, json={"yaml": REQUEST}, headers=page.headers)
        assert (refused.status_code, "fleetprof up" in refused.json()["next_step"]) == (409, True)
    terminal = (tmp_path / "ui.log").read_text()
    assert "fleetprof: the web UI refused POST /requests: 409 Conflict\n" in terminal
    assert "{" not in terminal
    second = fleetprof("ui", "--port", str(page.port), "--no-open")
    assert (second.returncode, "choose another port" in second.stderr) == (1, True)
    assert all(path.stat().st_mode & 0o077 == 0 for path in state.path.iterdir())
    other.close()
    page.client.close()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("method", "path", "status", "sentence"),
    [
        ("POST", "/session", 204, "a browser has signed in"),
        ("DELETE", "/session", 200, "a browser has signed out"),
        ("POST", "/requests", 200, "a capture was asked for in the web UI"),
        ("POST", "/requests/local/some-uid/cancel", 200, "a capture was cancelled in the web UI: local/some-uid"),
        ("GET", "/fleet", 400, "the web UI refused GET /fleet: 400 Bad Request"),
        ("POST", "/requests/check", 200, "the web UI answered POST /requests/check: 200"),
        ("GET", "/fleet", 401, ""),
    ],
)
def test_the_terminal_says_in_words_what_the_audit_log_says(
    method: str, path: str, status: int, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    handler = make_handler()
    with caplog.at_level(logging.INFO, "fleetprof.audit"):
        logging.getLogger("fleetprof.audit").info(
            "%s", json.dumps({"who": "ann", "method": method, "path": path, "status": status})
        )
    (record,) = caplog.records
    shown = handler.format(record) if handler.filter(record) else ""
    assert shown == (sentence and f"fleetprof: {sentence}")


def test_a_catalog_is_made_anew(fleetprof: Callable[..., Finished], state: StateDirectory, tmp_path: Path) -> None:
    (state.default_store / "v1/local/some-uid").mkdir(parents=True)
    (state.default_store / "v1/local/some-uid/ledger.json").write_text(
        '{"uid": "some-uid", "name": "n", "namespace": "local"}'
    )
    for _ in range(2):
        result = fleetprof("catalog", "rebuild")
        assert result.returncode == 0, result.stderr
        assert "holds the 1 captures" in result.stderr
    unusable = fleetprof("catalog", "rebuild", "--catalog", "mysql://user@host/name")
    assert (unusable.returncode, "PostgreSQL" in unusable.stderr) == (1, True)


@pytest.mark.usefixtures("job")
def test_a_capture_is_asked_for_and_cancelled_through_the_hub(start: Start, tmp_path: Path) -> None:
    start("ui", "--port", "0", "--no-open", log="ui.log")
    page = open_page(tmp_path / "ui.log")
    assert page.client.get("/whoami").json()["may_capture"] is True
    wrong = page.client.post("/requests", json={"yaml": "kind: Pod"}, headers=page.headers)
    assert (wrong.status_code, any(field.startswith("spec: ") for field in wrong.json()["fields"])) == (422, True)
    answer = page.client.post("/requests", json={"yaml": REQUEST}, headers=page.headers)
    assert answer.status_code == 200, answer.text
    name = f"/requests/{answer.json()['namespace']}/{answer.json()['uid']}"
    with page.client.stream("GET", f"{name}/events", timeout=120) as events:
        lines = events.iter_lines()
        assert next(line for line in lines if line.startswith("event: ")) == "event: ledger"
        wait_until(lambda: page.client.get(name).json()["ledger"]["rank"], "the ledger's lines")
        again = page.client.post(f"{name}/cancel", headers=page.headers)
        assert again.status_code == 200, again.text
        assert next(line for line in lines if line == "event: finished")
    shown = page.client.get(name).json()
    assert shown["request"]["finished"] is True
    assert shown["ledger"]["rank"] == [0, 1, 2, 3]
    assert shown["may_cancel"] is False
    page.client.close()


def test_up_serves_it_beside_the_hub_and_takes_it_along(start: Start, state: StateDirectory, tmp_path: Path) -> None:
    process = start("up", log="up.log")
    page = open_page(tmp_path / "up.log")
    assert page.client.get("/whoami").json()["may_capture"] is True
    page.client.close()
    process.terminate()
    assert process.wait(60) == 0
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"http://127.0.0.1:{page.port}/healthz", trust_env=False)


@pytest.mark.attack
def test_the_token_is_on_no_command_line_and_in_no_file_of_others(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []

    def take(address: str) -> bool:
        given.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", take)
    state.prepare()
    address = "http://127.0.0.1:8770/#token=a&b<c"
    for _ in range(2):
        assert open_in_browser(state.path, address)
    assert given[0].startswith("file:///")
    assert "token=" not in given[0]
    page = Path(given[0].removeprefix("file://"))
    assert (page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert 'content="0; url=http://127.0.0.1:8770/#token=a&amp;b&lt;c"' in page.read_text()
    forget_page(state.path)
    assert not page.exists()


TRACES = Path(__file__).parents[2] / "data/traces"


def test_traces_and_folders_are_analyzed_and_shown_with_progress(start: Start, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    process = start("ui", str(TRACES / "late_rank"), str(empty), "--port", "0", "--no-open", log="ui.log")
    page = open_page(tmp_path / "ui.log", "what you opened, for you alone: ")
    opened = wait_until(
        lambda: found if (found := page.client.get("/opened").json())["finished"] else None, "the end of the analysis"
    )
    one, other = opened["items"]
    assert (one["what"], one["count"], one["total"], one["problem"]) == ("late_rank", 4, 4, "")
    assert "give the folder that holds the traces" in other["problem"]
    (capture,) = one["captures"]
    address = f"/reports/{capture['namespace']}/{capture['uid']}"
    report = page.client.get(f"{address}/slices/overview").json()
    assert (report["title"], report["facts"]["rank_count"]) == ("late_rank", 4)
    assert page.client.get(address).json()["has_timeline"]
    assert "analyzed 4 traces in " in (tmp_path / "ui.log").read_text()
    page.client.close()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["ui", str(TRACES), "--store", "/tmp/elsewhere"], "traces to open, or a store; not both"),
        (["analyze", str(TRACES / "late_rank"), "--open", "-o", "html"], "--open shows the report in the browser"),
    ],
)
def test_what_cannot_be_opened_together_is_refused(
    fleetprof: Callable[..., Finished], words: list[str], sentence: str
) -> None:
    refused = fleetprof(*words)
    assert (refused.returncode, sentence in refused.stderr) == (2, True)
