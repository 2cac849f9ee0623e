"""A person's pages while others do their worst to the web UI of a cluster: how much later do the answers come?

    python bench/ui/neighbours.py

The web UI is the process of the Deployment, before a real API server that knows two people by their tokens: one of
team-a, whose answers are timed, and one of team-b, whose session the hostile visitors have (`hostile_visitors.py`, a
process of its own). Before each time with them is one in which a process that does nothing keeps the machine about as
busy, so that what differs is the web UI's.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

from figures import Figure, keep, quantile  # noqa: E402
from fleetprof_api import keys  # noqa: E402
from fleetprof_api.ledger import Condition, Ledger  # noqa: E402
from fleetprof_store.directory import DirectoryStore  # noqa: E402
from fleetprof_webui.catalog.database import sqlite_url  # noqa: E402
from harness.identity.webui_process import in_cluster  # noqa: E402
from harness.kubernetes.api_server import ApiServer, serve_requests  # noqa: E402
from harness.ports import find_ports  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

ROUNDS: Final = 2
ROUND_S: Final = 20
PAUSE_S: Final = 0.01
CAPTURES: Final = 300
MOST_TIMES: Final = 2
SYSTEM: Final = "fleetprof-system"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
PATHS: Final = ("/fleet", "/requests", "/requests/team-a/uid-1", "/whoami")


def add_people(server: ApiServer) -> dict[str, str]:
    """The tokens of the web UI's account and of a person of each team."""

    def make(path: str, document: dict[str, Any]) -> dict[str, Any]:
        status, made = server.call("POST", path, document)
        assert status == 201, made
        return made

    def grant(name: str, namespace: str, rule: dict[str, Any]) -> str:
        make("/api/v1/namespaces", {"metadata": {"name": namespace}})
        make(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
        make(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        }
        scope = RBAC if namespace == SYSTEM else f"{RBAC}/namespaces/{namespace}"
        make(f"{scope}/{'clusterrolebindings' if namespace == SYSTEM else 'rolebindings'}", binding)
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return str(make(path, {"spec": {"expirationSeconds": 3600}})["status"]["token"])

    review = {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}
    requests = {"apiGroups": ["fleetprof.io"], "resources": ["profilerequests"], "verbs": ["get", "list", "create"]}
    return {
        "webui": grant("webui", SYSTEM, review),
        "ann": grant("ann", "team-a", requests),
        "eve": grant("eve", "team-b", requests),
    }


def fill_store(store: DirectoryStore) -> None:
    """Captures of both teams that ended without a report."""
    for number in range(CAPTURES):
        for team in ("team-a", "team-b"):
            uid = f"uid-{number}"
            ledger = Ledger(
                uid=uid, name=f"capture-{number}", namespace=team, submitted_unix_ns=(1_790_000_000 + number) * 10**9,
                completed_unix_ns=(1_790_000_010 + number) * 10**9, outcome="NothingCaptured",
                conditions=[Condition(type="Succeeded", status="False", reason="NothingCaptured")], entries=[],
            )  # fmt: skip
            target = {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": f"llama-{number % 50}"}}
            document = {"apiVersion": "fleetprof.io/v1alpha1", "kind": "ProfileRequest",
                        "metadata": {"name": f"capture-{number}"}, "spec": {"target": target}}  # fmt: skip
            store.put(keys.request_key(team, uid), msgspec.json.encode(document))
            store.put(keys.ledger_key(team, uid), msgspec.json.encode(ledger))


@contextmanager
def run_webui(folder: Path, server: ApiServer, token: str) -> Iterator[tuple[int, int]]:
    """The port and the process of a web UI that knows all captures, until the block ends."""
    fill_store(DirectoryStore(folder / "store", os.urandom(32), ""))
    program, environment = in_cluster(server, folder, token)
    port, probes, metrics = find_ports(3)
    flags = {
        "store": folder / "store",
        "catalog": sqlite_url(folder / "catalog.sqlite"),
        "listen": f"pages=127.0.0.1:{port},http=127.0.0.1:{probes},metrics=127.0.0.1:{metrics}",
    }
    words = ["--kubectl-sign-in", *(f"--{name}={value}" for name, value in flags.items())]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*program, *words], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        wait_until(lambda: is_ready(probes), "the web UI", 120)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(30)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def sign_in(port: int, token: str) -> str:
    """The cookie of a session for that Kubernetes token, as `kubectl fleetprof ui` and a browser get it."""
    own = {"Origin": f"http://127.0.0.1:{port}", "X-Fleetprof-Request": "1", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/session/kubectl", headers=own | {"Authorization": f"Bearer {token}"})
        one_time = connection.getresponse().read()
        connection.request("POST", "/session", one_time, own)
        answer = connection.getresponse()
        answer.read()
        return answer.headers["Set-Cookie"].partition(";")[0]
    finally:
        connection.close()


def time_answers(port: int, cookie: str) -> list[float]:
    """The seconds of each answer for a person who reads one page after the other for ROUND_S."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    took: list[float] = []
    try:
        end = time.perf_counter() + ROUND_S
        while (began := time.perf_counter()) < end:
            path = PATHS[len(took) % len(PATHS)]
            connection.request("GET", path, headers={"Cookie": cookie, "Accept": "application/json"})
            answer = connection.getresponse()
            answer.read()
            took.append(time.perf_counter() - began)
            assert answer.status == 200, (path, answer.status)
            time.sleep(PAUSE_S)
    finally:
        connection.close()
    return took


@contextmanager
def run_beside(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process that ends with the block."""
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE)
    try:
        time.sleep(3)  # until it is at its work
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def describe(calm: list[float], meanwhile: list[float]) -> str:
    """Both times beside each other."""
    (p99, p50), (before, before_p50) = ([1e3 * quantile(took, q) for q in (0.99, 0.5)] for took in (meanwhile, calm))
    return (
        f"p99 {p99:.0f} ms (without them, on a machine as busy: {before:.0f} ms), {p99 / before:.1f} times; "
        f"p50 {p50:.0f} ms ({before_p50:.0f} ms); {len(meanwhile)} answers ({len(calm)})"
    )


def measure() -> list[Figure]:
    """Times the person's answers without the hostile visitors and with them, in turns."""
    calm: list[float] = []
    meanwhile: list[float] = []
    did: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="fp", dir="/tmp") as name:
        folder = Path(name)
        (folder / "cluster").mkdir()
        with serve_requests(folder / "cluster") as server:
            tokens = add_people(server)
            with run_webui(folder, server, tokens["webui"]) as (port, pid):
                ann, eve = sign_in(port, tokens["ann"]), sign_in(port, tokens["eve"])
                time_answers(port, ann)
                for _ in range(ROUNDS):
                    with run_beside("-c", "while True: pass"):
                        calm += time_answers(port, ann)
                    with run_beside(
                        str(Path(__file__).with_name("hostile_visitors.py")), str(port), eve, "600"
                    ) as other:
                        meanwhile += time_answers(port, ann)
                    print(describe(calm, meanwhile), flush=True)
                    assert other.stdout is not None
                    for kind, number in json.loads(other.stdout.read()).items():
                        did[kind] = did.get(kind, 0) + number
                status = Path(f"/proc/{pid}/status").read_text()
                peak_mib = int(status.partition("VmHWM:")[2].split()[0]) >> 10
    met = quantile(meanwhile, 0.99) <= MOST_TIMES * quantile(calm, 0.99)
    title = "neighbours: a person's pages beside hostile visitors"
    return [
        Figure("web UI", title, describe(calm, meanwhile), f"<= {MOST_TIMES} times", met),
        Figure("web UI", f"{title}: memory of the web UI", f"{peak_mib} MiB at most"),
        Figure(
            "web UI", f"{title}: what they were answered", ", ".join(f"{n} {kind}" for kind, n in sorted(did.items()))
        ),
    ]


def main() -> None:
    figures = measure()
    for figure in figures:
        print(figure.name, figure.value, figure.target, figure.met)
    keep("ui", figures, ["neighbours"], ("sqlalchemy", "fastapi"))


if __name__ == "__main__":
    main()
