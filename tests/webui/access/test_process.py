"""The process itself, in front of a real API server, a real identity provider and a real Chromium."""

import json
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_store.directory import DirectoryStore
from fleetprof_webui.catalog.database import sqlite_url
from fleetprof_webui.pages import STATIC
from harness.browser import keep_picture, miss, run_chromium
from harness.identity.provider import CLIENT, SECRET, Issuer
from harness.identity.webui_process import in_cluster
from harness.kubernetes.api_server import ApiServer
from harness.waiting import wait_until
from playwright.sync_api import Browser, Page

from .conftest import RBAC, SYSTEM, grant, make, put_capture

pytestmark = pytest.mark.cluster

JSON = {"Accept": "application/json"}
RUNNING = "uid-running"

FOLLOW = """address => {
    window.events = [];
    const stream = new EventSource(address);
    for (const kind of ['ledger', 'signed_out', 'finished'])
        stream.addEventListener(kind, () => { window.events.push(kind); if (kind !== 'ledger') stream.close(); });
}"""


@dataclass(frozen=True)
class Process:
    """The service, as the Deployment starts it; `address` is where browsers find it."""

    address: str
    log: Path

    def audit(self) -> list[dict[str, object]]:
        """The lines of the audit log."""
        lines = map(json.loads, self.log.read_text().splitlines())
        return [json.loads(line["message"]) for line in lines if line["logger"] == "fleetprof.audit"]


@pytest.fixture(scope="module")
def process(provider: Issuer, cluster: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """Told by variables and by flags, with captures in a folder, until the module ends."""
    if not (STATIC / "index.html").is_file():
        miss("the pages are not built: make webui")
    folder = tmp_path_factory.mktemp("process")
    store = DirectoryStore(folder / "store", os.urandom(32), "")
    for namespace in ("team-a", "team-b"):
        put_capture(store, namespace, f"uid-{namespace}")
    ledger = Ledger(uid=RUNNING, name="running", namespace="team-c", submitted_unix_ns=1_790_000_000_000_000_000)
    store.put(keys.ledger_key("team-c", RUNNING), msgspec.json.encode(ledger))
    account = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/webui/token"
    token = make(cluster, account, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    program, variables = in_cluster(cluster, folder, token)
    (folder / "secret").write_text(SECRET)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        port, probes = one.getsockname()[1], other.getsockname()[1]
    environment = {
        "STORE": folder / "store",
        "CATALOG": sqlite_url(folder / "catalog.sqlite"),
        "PUBLIC_URL": f"http://localhost:{port}",
        "LISTEN": f"pages=127.0.0.1:{port},http=127.0.0.1:{probes},metrics=127.0.0.1:0",
        "OIDC_ISSUER_URL": provider.issuer,
        "OIDC_CLIENT_ID": CLIENT,
        "OIDC_CLIENT_SECRET_FILE": folder / "secret",
        "IDENTITY_CA_FILE": provider.ca_file,
    }
    variables |= {f"FLEETPROF_{name}": str(value) for name, value in environment.items()}
    flags = ["--groups-claim=groups", "--groups-prefix=oidc:"]
    log = folder / "log"
    with log.open("wb") as out:
        running = subprocess.Popen(
            [*program, *flags],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        wait_until(lambda: _is_ready(running, probes, log), "the process to be ready")
        yield Process(f"http://localhost:{port}", log)
        running.terminate()
        assert running.wait(30) == 0, log.read_text()
    finally:
        running.kill()
        running.wait()


@pytest.fixture(scope="module")
def chromium(process: Process) -> Iterator[Browser]:
    with run_chromium() as launched:
        yield launched


def _is_ready(running: "subprocess.Popen[bytes]", probes: int, log: Path) -> bool:

    assert running.poll() is None, log.read_text()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{probes}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def sign_in(browser: Browser, process: Process, then: str) -> Page:
    """A person opens an address, is not known yet, signs in at the provider, and comes back to that address."""
    page = browser.new_context(base_url=process.address, ignore_https_errors=True).new_page()
    page.goto(then)
    page.get_by_role("link", name="Sign in").first.click()
    page.wait_for_url(f"**{then}")
    return page


def test_who_may_read_reads_and_the_cookie_is_the_browser_s_strictest(
    chromium: Browser, process: Process, provider: Issuer
) -> None:
    provider.sign_in_as("ann", "team-a")
    page = sign_in(chromium, process, "/requests")
    page.get_by_text("uid-team-a-name").first.wait_for()
    assert page.get_by_text("uid-team-b-name").count() == 0
    (cookie,) = (each for each in page.context.cookies() if each["name"] == "__Host-fleetprof")
    assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, True, "Lax", "/")
    assert page.request.get("/requests/team-a/uid-team-a", headers=JSON).status == 200
    page.goto("/whoami")
    page.get_by_text(f"{provider.issuer}#ann").first.wait_for()
    page.get_by_text("oidc:team-a").first.wait_for()
    page.set_viewport_size({"width": 1400, "height": 300})
    keep_picture(page, "whoami")  # webui/screenshots.py takes it from there
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{process.address}/fleet")  # by way of the provider
    page.get_by_role("link", name="Sign in").first.wait_for()
    assert page.request.get("/requests/team-a/uid-team-a", headers=JSON).status == 401
    page.context.close()


@pytest.mark.attack
def test_a_right_that_is_taken_away_ends_the_stream_and_who_has_none_sees_nothing(
    chromium: Browser, process: Process, provider: Issuer, cluster: ApiServer
) -> None:
    reads = {"apiGroups": ["fleetprof.io"], "resources": ["profilerequests"], "verbs": ["get", "list"]}
    make(cluster, "/api/v1/namespaces", {"metadata": {"name": "team-c"}})
    group = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "oidc:team-c"}
    grant(cluster, "readers", [reads], group, namespace="team-c")
    provider.sign_in_as("cleo", "team-c")
    watching = sign_in(chromium, process, "/requests")
    watching.get_by_text("running").first.wait_for()
    watching.evaluate(FOLLOW, f"/requests/team-c/{RUNNING}/events")
    wait_until(lambda: "ledger" in watching.evaluate("window.events"), "the ledger's first event")

    status, _ = cluster.call("DELETE", f"{RBAC}/namespaces/team-c/rolebindings/readers")
    assert status == 200

    # Meanwhile, since a yes is remembered for half a minute: somebody who never had a right.
    provider.sign_in_as("bob")
    stranger = sign_in(chromium, process, "/requests/team-a/uid-team-a")
    stranger.get_by_text("there is no request here that you may see").first.wait_for()
    for address in ("/requests/team-a/uid-team-a", "/reports/team-a/uid-team-a", f"/requests/team-c/{RUNNING}/events"):
        assert stranger.request.get(address, headers=JSON).status == 404, address
    assert stranger.request.get("/requests", headers=JSON).json()["total"] == 0
    stranger.context.close()

    wait_until(lambda: watching.evaluate("window.events")[-1] == "signed_out", "the stream's end")
    assert watching.request.get(f"/requests/team-c/{RUNNING}", headers=JSON).status == 404
    watching.context.close()
    refused = [line for line in process.audit() if line.get("may_not_read")]
    assert {"who": f"{provider.issuer}#bob", "may_not_read": "team-a", "what": "request"} in refused
