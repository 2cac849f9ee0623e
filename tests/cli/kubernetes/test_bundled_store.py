"""`--port-forward`: what is asked of kubectl, and what is said when that does not work.

kubectl is a script here; the real one does this in tests/e2e/kubernetes/test_namespaced.py.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from fleetprof_cli.kubernetes.bundled_store import reach_bundled_store
from fleetprof_cli.kubernetes.connection import ClusterPlace
from fleetprof_cli.messages import Failure
from fleetprof_store.location import parse_location

IN_CLUSTER = "s3://fleetprof?endpoint=http://fleetprof-store.tools.svc:7070"
SERVICE = {"metadata": {"annotations": {"fleetprof.io/reader-secret": "reader"}}}
SECRET = {"data": {"AWS_ACCESS_KEY_ID": "aWQ=", "AWS_SECRET_ACCESS_KEY": "a2V5"}}
ANSWERS = {"service": SERVICE, "secret": SECRET, "port-forward": "Forwarding from 127.0.0.1:45678 -> 7071"}

KUBECTL = """#!{python}
import json, sys, time
words = [word for word in sys.argv[1:] if not word.startswith("--")]
with open({log!r}, "a") as log:
    print(*sys.argv[1:], file=log)
answer = json.load(open({answers!r}))[words[1] if words[0] == "get" else words[0]]
if answer is None:
    sys.exit("Error from server (Forbidden): you may not")
print(answer if isinstance(answer, str) else json.dumps(answer), flush=True)
if words[0] == "port-forward":
    for file in (sys.stdout, sys.stderr):  # more than a pipe holds
        print("Handling connection for 45678\\n" * 10000, file=file, flush=True)
    open({log!r} + ".handled", "w").close()
    time.sleep(60)
"""


class Kubectl:
    """A kubectl of PATH with these answers; None is a refusal."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._answers, self._log = folder / "answers.json", folder / "log"
        self.answer()
        program = folder / "kubectl"
        program.write_text(
            KUBECTL.format(python=sys.executable, log=str(self._log), answers=str(self._answers)), encoding="utf-8"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def answer(self, **changes: Any) -> None:
        answers = ANSWERS | {name.replace("_", "-"): answer for name, answer in changes.items()}
        self._answers.write_text(json.dumps(answers))

    def has_handled(self) -> bool:
        return self._log.with_name("log.handled").exists()

    def commands(self) -> list[str]:
        return self._log.read_text().splitlines()


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    return Kubectl(tmp_path, monkeypatch)


@contextmanager
def serve_objects() -> Iterator[tuple[int, list[str]]]:
    """The port of a server whose objects are all "here", and whose keys it was shown."""
    shown: list[str] = []

    class Objects(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.append(self.headers["Authorization"])
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"here")

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Objects)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port, shown
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_port_is_forwarded_and_only_the_store_has_the_reader_s_keys(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "mine")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    place = ClusterPlace(kubeconfig="/k", context="c", namespace="team-a")
    with serve_objects() as (port, shown):
        kubectl.answer(port_forward=f"Forwarding from 127.0.0.1:{port} -> 7071")
        with reach_bundled_store(parse_location(IN_CLUSTER), place) as store:
            # What is started now, such as a browser, has the user's own and not the reader's.
            assert os.environ["AWS_PROFILE"] == "mine"
            assert "AWS_ACCESS_KEY_ID" not in os.environ
            assert store.get("report") == b"here"
    (authorization,) = shown
    assert "Credential=id/" in authorization
    there = "--namespace=tools --kubeconfig=/k --context=c"
    assert kubectl.commands() == [
        f"{there} get service fleetprof-store -o json",
        f"{there} get secret reader -o json",
        f"{there} port-forward --address=127.0.0.1 service/fleetprof-store :7071",
    ]


def test_what_kubectl_says_of_each_connection_does_not_stop_it(kubectl: Kubectl) -> None:
    with reach_bundled_store(parse_location(IN_CLUSTER), ClusterPlace()):
        while not kubectl.has_handled():
            time.sleep(0.01)


@pytest.mark.parametrize(
    ("location", "answers", "message"),
    [
        ("s3://acme", {}, "the store is not a Service of the cluster"),
        ("s3://a?endpoint=https://minio.example", {}, "https://minio.example is not a Service of the cluster"),
        (IN_CLUSTER, {"service": None}, "you may not"),
        (IN_CLUSTER, {"service": {"metadata": {}}}, "has no server that only reads"),
        (IN_CLUSTER, {"secret": {"data": {}}}, "does not hold AWS_ACCESS_KEY_ID"),
        (IN_CLUSTER, {"port_forward": None}, "port-forward service/fleetprof-store: Error from server"),
    ],
)
def test_what_is_missing_is_said(kubectl: Kubectl, location: str, answers: dict[str, Any], message: str) -> None:
    kubectl.answer(**answers)
    with pytest.raises(Failure, match=message), reach_bundled_store(parse_location(location), ClusterPlace()):
        raise AssertionError("it must not get so far")


def test_without_kubectl_the_next_step_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with (
        pytest.raises(Failure, match="no kubectl on PATH"),
        reach_bundled_store(parse_location(IN_CLUSTER), ClusterPlace()),
    ):
        raise AssertionError("it must not get so far")
