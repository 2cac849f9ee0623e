"""A namespace of a real API server, the operator over it, and the pods and sidecars that a test puts there.

Nothing runs pods or Jobs here: the test says what becomes of them, as kubelet and controllers would.
"""

import asyncio
import copy
import json
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fleetprof_api.hub import hub_pb2 as pb

from harness import forked
from harness.hub.scripted_sidecar import TOKEN, ScriptedSidecar, make_process
from harness.kubernetes import operator_child
from harness.kubernetes.api_server import ApiServer

PATIENCE_S = 120.0
Json = dict[str, Any]


class HttpPuts:
    """Uploads to signed addresses."""

    def receive(self, url: str, data: bytes) -> str:
        with urllib.request.urlopen(urllib.request.Request(url, data, method="PUT"), timeout=20) as answer:
            return str(answer.headers["ETag"])


class RequestGround:
    """`api` is the API server, `namespace` this test's own. Everything that it starts ends with `close`."""

    def __init__(self, api: ApiServer, folder: Path, *arguments: str) -> None:
        self.api = api
        self.folder = folder
        self.store = folder / "store"
        self.namespace = f"team-{uuid.uuid4().hex[:8]}"
        self.arguments = ["--namespaces", self.namespace, *arguments]
        self.sidecars: list[ScriptedSidecar] = []
        self.ports: Json = {}
        self.puts = HttpPuts()
        self._process: forked.Forked | None = None
        self.store.mkdir()
        for name in (self.namespace, "fleetprof-system"):
            self.must("POST", "/api/v1/namespaces", {"metadata": {"name": name}}, also=(409,))
            account = {"metadata": {"name": "default"}}
            self.must("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account, also=(409,))

    def beside(self, name: str, *arguments: str) -> "RequestGround":
        """Another operator over the same namespace and store, with these flags and no others."""
        other = copy.copy(self)
        other.folder = self.folder / name
        other.folder.mkdir()
        other.arguments, other.sidecars, other._process = list(arguments), [], None
        return other

    def add_lease(self, namespace: str) -> None:
        """The Lease that a chart makes there."""
        body = {"metadata": {"name": "fleetprof"}}
        self.must("POST", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", body)

    # ------------------------------------------------------------ the operator

    def start_operator(self, kubeconfig: Path | None = None) -> None:
        """Returns once its hub listens. `kubeconfig`: how it reaches the API server; None: as tests do."""
        log = self.folder / "operator.log"
        environment = {
            "KUBECONFIG": str(kubeconfig or self.api.kubeconfig()),
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
        }
        pipe, ready = forked.pipe()
        with pipe, ready:
            given = (self.store, TOKEN, self.arguments, ready)
            self._process = forked.Forked(operator_child.run, *given, environment=environment, out=log, error=log)
            ready.close()  # here, so that its end is noticed
            try:
                self.ports = pipe.recv()
            except EOFError:
                raise AssertionError(f"the operator does not start: {self.log()[-3000:]}") from None

    def kill_operator(self) -> None:
        """SIGKILL, between any two instructions."""
        assert self._process is not None
        self._process.kill()
        self._reap()

    def end_operator(self) -> int:
        """SIGTERM; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._reap()

    def is_running(self) -> bool:
        """Tells whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def _reap(self) -> int:
        process, self._process = self._process, None
        assert process is not None
        try:
            return process.wait(30)
        finally:
            process.kill()

    def log(self) -> str:
        return (self.folder / "operator.log").read_text()

    def find_obstacle(self) -> str:
        """The reason why the operator is not ready; "" when it is."""
        try:
            self.scrape("/readyz")
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()
        return ""

    def scrape(self, path: str = "/metrics") -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['http']}{path}", timeout=10) as answer:
            text: str = answer.read().decode()
            return text

    async def close(self) -> None:
        for sidecar in self.sidecars:
            await sidecar.disconnect()
        if self._process is not None:
            self.end_operator()

    # ------------------------------------------------------------ the API

    def must(self, method: str, path: str, document: object = None, also: tuple[int, ...] = ()) -> Json:
        status, answer = self.api.call(method, path, document)
        assert status < 300 or status in also, f"{method} {path}: {status} {answer}"
        return answer

    def path(self, kind: str, name: str = "") -> str:
        root = {"pods": "/api/v1", "events": "/api/v1", "replicasets": "/apis/apps/v1"}.get(
            kind, "/apis/fleetprof.io/v1alpha1"
        )
        return f"{root}/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    def add_pod(self, name: str, phase: str = "Running", *, injected: bool = True, **metadata: Any) -> str:
        """A pod of Job/llama; its uid."""
        body = {
            "metadata": {
                "name": name,
                "labels": {"batch.kubernetes.io/job-name": "llama"},
                "annotations": {"fleetprof.io/injected": "0.1.0"} if injected else {},
            }
            | metadata,
            "spec": {"containers": [{"name": "trainer", "image": "x"}], "automountServiceAccountToken": False},
        }
        uid: str = self.must("POST", self.path("pods"), body)["metadata"]["uid"]
        self.set_phase(name, phase)
        return uid

    def set_phase(self, name: str, phase: str, **status: Any) -> None:
        self.must("PATCH", self.path("pods", name) + "/status", {"status": {"phase": phase, **status}})

    def remove_pod(self, name: str) -> None:
        self.must("DELETE", self.path("pods", name), {"gracePeriodSeconds": 0})

    def ask(self, name: str = "five", **spec: Any) -> Json:
        """Makes a ProfileRequest for Job/llama."""
        target = {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}}
        return self.must(
            "POST",
            self.path("profilerequests"),
            {
                "apiVersion": "fleetprof.io/v1alpha1",
                "kind": "ProfileRequest",
                "metadata": {"name": name},
                "spec": {"target": target, "window": {"iterations": 5}, "activeDeadlineSeconds": 120, "canary": "Never"}
                | spec,
            },
        )

    def request(self, name: str = "five") -> Json | None:
        """The request as it is; None when it is gone."""
        status, answer = self.api.call("GET", self.path("profilerequests", name))
        return answer if status == 200 else None

    def made(self, name: str = "five") -> Json:
        """The request as it is, which must be there."""
        return self.must("GET", self.path("profilerequests", name))

    def status(self, name: str = "five") -> Json:
        return (self.request(name) or {}).get("status") or {}

    def delete(self, name: str = "five") -> None:
        self.must("DELETE", self.path("profilerequests", name))

    def events(self) -> list[tuple[str, str]]:
        """(type, reason) of all Events, in the order of their making."""
        items = self.must("GET", self.path("events"))["items"]
        return [(e["type"], e["reason"]) for e in sorted(items, key=lambda e: int(e["metadata"]["resourceVersion"]))]

    def lose_store(self) -> None:
        """Every call of the store fails from now on."""
        self.store.rename(self.folder / "away")
        self.store.write_text("not a directory")

    def find_store(self) -> None:
        """Undoes `lose_store`."""
        self.store.unlink()
        (self.folder / "away").rename(self.store)

    def ledger(self, made: Json) -> Json:
        """The store's record of the request that was made so; empty when nothing."""
        path = self.store / f"v1/{self.namespace}/{made['metadata']['uid']}/ledger.json"
        return json.loads(path.read_text()) if path.exists() else {}

    # ------------------------------------------------------------ sidecars

    def process(self, rank: int, world_size: int, **fields: Any) -> pb.Process:
        return make_process(rank, world_size=world_size, **fields)

    async def add_sidecar(self, pod: str, uid: str, *processes: pb.Process) -> ScriptedSidecar:
        sidecar = ScriptedSidecar(f"s-{pod}", list(processes), namespace=self.namespace)
        sidecar.identity.pod_name, sidecar.identity.pod_uid = pod, uid
        self.sidecars.append(sidecar)
        return await sidecar.connect(self.ports["hub"])

    async def add_rank(self, rank: int, world_size: int, **fields: Any) -> ScriptedSidecar:
        """A running pod with one trainer; `fields` are its process'."""
        uid = self.add_pod(f"llama-{rank}")
        return await self.add_sidecar(f"llama-{rank}", uid, self.process(rank, world_size, **fields))

    async def reconnect(self) -> None:
        for sidecar in self.sidecars:
            await sidecar.disconnect()
            for process in sidecar.processes:
                process.last_poll_unix_ns = process.step.at_unix_ns = time.time_ns()
            await sidecar.connect(self.ports["hub"])

    async def deliver(self, sidecar: ScriptedSidecar) -> str:
        """Takes the order and brings it to its end; the capture's id."""
        arm = await sidecar.expect("arm")
        await sidecar.deliver(self.puts, arm)
        return str(arm.capture_id)

    # ------------------------------------------------------------ waiting

    async def until(self, happened: Callable[[], Any], what: str) -> Any:
        """The first true answer of `happened`."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if answer := happened():
                return answer
            await asyncio.sleep(0.1)
        raise AssertionError(f"waited in vain for {what}: {self.status()}\n{self.log()[-3000:]}")

    async def until_state(self, reason: str, name: str = "five", kind: str = "Succeeded") -> Json:
        """The status once a condition has that reason."""
        await self.until(lambda: condition(self.status(name), kind)[1] == reason, f"{kind}/{reason}")
        return self.status(name)

    async def until_finished(self, name: str = "five") -> Json:
        await self.until(lambda: self.status(name).get("completionTime"), "the end")
        return self.status(name)


def condition(status: Json, kind: str = "Succeeded") -> tuple[str, str]:
    """(status, reason) of a condition; two empty strings when it is not there."""
    return next(((c["status"], c["reason"]) for c in status.get("conditions") or [] if c["type"] == kind), ("", ""))


def message(status: Json, kind: str = "Succeeded") -> str:
    return next((c["message"] for c in status.get("conditions") or [] if c["type"] == kind), "")
