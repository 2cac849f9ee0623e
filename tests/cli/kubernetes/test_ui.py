"""`kubectl fleetprof ui` against a real API server and a real web UI; kubectl, which forwards the port, is a script."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from fleetprof_webui.catalog.database import sqlite_url
from harness.identity.webui_process import in_cluster
from harness.kubernetes.request_ground import RequestGround
from harness.waiting import wait_until

pytestmark = pytest.mark.cluster

KUBECTL = """#!{python}
import sys, time
with open({log!r}, "a") as log:
    print(*sys.argv[1:], file=log)
print("Forwarding from 127.0.0.1:{port} -> 8770", flush=True)
time.sleep(600)
"""
Serve = Callable[..., dict[str, str]]


@pytest.fixture
def serve(ground: RequestGround, tmp_path: Path) -> Iterator[Serve]:
    """Starts the web UI; the answer is the environment of somebody whose kubectl forwards a port to it."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*flags: str) -> dict[str, str]:
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            port, probes = one.getsockname()[1], other.getsockname()[1]
        token = yaml.safe_load(ground.api.kubeconfig().read_text())["users"][0]["user"]["token"]
        account = tmp_path / "account"
        account.mkdir(exist_ok=True)
        program, environment = in_cluster(ground.api, account, token)
        settings = {
            "STORE": tmp_path / "store",
            "CATALOG": sqlite_url(tmp_path / "catalog.sqlite"),
            "LISTEN": f"pages=127.0.0.1:{port},http=127.0.0.1:{probes},metrics=127.0.0.1:0",
        }
        environment |= {f"FLEETPROF_{name}": str(value) for name, value in settings.items()}
        log = (tmp_path / "webui.log").open("wb")
        running.append(subprocess.Popen([*program, *flags], env=environment, stdout=log, stderr=log))
        log.close()
        wait_until(lambda: _answers(port), "the web UI to answer")
        (tmp_path / "bin").mkdir()
        kubectl = tmp_path / "bin" / "kubectl"
        kubectl.write_text(KUBECTL.format(python=sys.executable, log=str(tmp_path / "log"), port=port))
        kubectl.chmod(0o755)
        return {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}

    yield start
    for process in running:
        process.terminate()
        process.wait(30)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def enter(address: str) -> Iterator[httpx2.Client]:
    """A browser that has opened the address."""
    home, _, token = address.partition("/#token=")
    with httpx2.Client(base_url=home, headers={"Accept": "application/json"}, trust_env=False) as browser:
        opened = browser.post("/session", json={"token": token}, headers={"Origin": home, "X-Fleetprof-Request": "1"})
        assert opened.status_code == 204, opened.text
        yield browser


async def read_address(process: asyncio.subprocess.Process) -> str:
    """The address that the command prints."""
    assert process.stderr is not None
    line = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
    assert "the cluster's web UI, for you alone: http://127.0.0.1:" in line, line
    return line.split()[-1]


@pytest.mark.attack
async def test_it_opens_with_the_person_s_own_rights_and_leaves_nothing(
    serve: Serve, start: Any, ground: RequestGround, tmp_path: Path
) -> None:
    environment = serve("--kubectl-sign-in")
    command = await start("ui", "--no-open", user="guest", **environment, TMPDIR=str(tmp_path))
    with enter(await read_address(command)) as browser:
        who = browser.get("/whoami").json()
        assert (who["name"], who["mode"], who["namespaces"]) == ("guest", "kubectl", [])
        secret = yaml.safe_load(ground.api.kubeconfig("guest").read_text())["users"][0]["user"]["token"]
        assert secret not in (words := (tmp_path / "log").read_text())
        assert words.strip() == (
            "--namespace=fleetprof-system port-forward --address=127.0.0.1 service/fleetprof-webui :8770"
        )
        command.terminate()
        await asyncio.wait_for(command.communicate(), 60)
        assert command.returncode == 0
        assert browser.get("/whoami").status_code == 401
    assert not list(tmp_path.glob("fleetprof-ui-*"))


async def test_a_certificate_s_owner_comes_as_an_account_whose_token_they_may_ask_for(
    serve: Serve, start: Any, run: Any, ground: RequestGround, tmp_path: Path
) -> None:
    environment = serve("--kubectl-sign-in")
    config = yaml.safe_load(ground.api.kubeconfig("admin", ground.namespace).read_text())
    config["users"][0]["user"] = {"username": "ann", "password": "by another way than a token"}
    (tmp_path / "no-token").write_text(yaml.safe_dump(config))
    refused = await run("ui", "--no-open", **environment, KUBECONFIG=str(tmp_path / "no-token"))
    assert refused.returncode == 5, refused.stderr
    assert "your kubeconfig has no token" in refused.stderr
    assert "--service-account NAME" in refused.stderr

    ground.must("POST", f"/api/v1/namespaces/{ground.namespace}/serviceaccounts", {"metadata": {"name": "reader"}})
    command = await start("ui", "--no-open", "--service-account", "reader", **environment)
    with enter(await read_address(command)) as browser:
        assert browser.get("/whoami").json()["name"] == f"system:serviceaccount:{ground.namespace}:reader"
    command.terminate()  # killed, it would leave its kubectl behind
    await asyncio.wait_for(command.communicate(), 60)


async def test_what_is_wrong_is_said_with_the_next_step(serve: Serve, run: Any) -> None:
    environment = serve("--proxy-jwt-header=X-Token", "--proxy-jwks-url=https://proxy.example", "--proxy-jwt-issuer=a",
                        "--proxy-jwt-audience=b", "--public-url=https://ui.example")  # fmt: skip
    other = await run("ui", "--no-open", **environment)
    assert (other.returncode, "webui.kubectl=true" in other.stderr) == (5, True), other.stderr
    somebody = await run("ui", "--as", "ann", **environment)
    assert (somebody.returncode, "--as:" in somebody.stderr) == (2, True), somebody.stderr
    unknown = await run("ui", "--service-account", "nobody", **environment)
    assert (unknown.returncode, 'serviceaccounts "nobody" not found' in unknown.stderr) == (5, True), unknown.stderr
    no_right = await run("ui", "--service-account", "nobody", user="guest", **environment)
    assert (no_right.returncode, "cannot create resource" in no_right.stderr) == (5, True), no_right.stderr
    without = await run("ui", "--no-open", **(environment | {"PATH": "/nowhere"}))
    assert (without.returncode, "there is no kubectl on PATH" in without.stderr) == (1, True), without.stderr
