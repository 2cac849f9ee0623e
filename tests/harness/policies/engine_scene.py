"""Turns of the policies' engine over an API in memory, one operator after the other, by a clock that the test moves."""

import asyncio
import copy
from collections.abc import Mapping, Sequence
from typing import Any

from fleetprof_api.policy import JobSelector
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_operator.policies.captures import PolicyCaptures
from fleetprof_operator.policies.engine import Engine
from fleetprof_operator.policies.exemption import Exemptions
from fleetprof_operator.policies.notifications.notification import Notifier
from fleetprof_operator.policies.notifications.report_alert import ReportAlerts
from fleetprof_operator.policies.stored_policies import PolicyWriter
from fleetprof_operator.policies.triggers.alerts import FiringAlert
from fleetprof_operator.policies.triggers.figures import Job, JobFigures
from fleetprof_store.base import StoreError

from harness.kubernetes.documents.policies import with_value
from harness.memory_store import MemoryStore

SECOND = 10**9
Json = dict[str, Any]
ROOT = "/apis/fleetprof.io/v1alpha1/namespaces/team"
POLICY = f"{ROOT}/profilepolicies/starved"


class PolicyApi:
    """The few calls that policies make. `fails` says how many of the next writes fail, and whether they were done."""

    def __init__(self) -> None:
        self.policies: dict[str, Json] = {}
        self.requests: dict[str, Json] = {}
        self.events: list[Json] = []
        self.annotations: dict[str, str] = {}
        self.made: list[str] = []  # names of all requests that were ever made
        self.writes = 0
        self.fails: list[str] = []

    async def get(self, path: str, *, metadata_only: bool = False) -> Json:
        return {"metadata": {"name": path.rpartition("/")[2], "annotations": self.annotations}}

    async def list(self, path: str, query: Mapping[str, str] | None = None, **_: object) -> tuple[list[Json], str]:
        return copy.deepcopy(list(self.requests.values())), "1"

    async def create(self, path: str, body: Json) -> Json:
        if path.endswith("/events"):
            self.events.append(body)
            return body
        how = self._count()
        name = body["metadata"]["name"]
        if how == "before":
            raise ApiUnreachable("away")
        if how == "refused":
            raise ApiRefused(422, "Invalid", "spec.window: not within the bounds")
        if name in self.requests:
            raise ApiRefused(409, "AlreadyExists", f"{name} already exists")
        made = copy.deepcopy(body)
        made["metadata"]["uid"] = f"uid-{name}"
        self.requests[name] = made
        self.made.append(name)
        if how == "after":
            raise ApiUnreachable("away")
        return made

    async def patch(self, path: str, operations: Sequence[Json]) -> Json:
        how = self._count()
        if how in ("before", "refused"):
            raise ApiUnreachable("away")
        self.policies[path.removesuffix("/status")]["status"] = copy.deepcopy(operations[-1]["value"])
        if how == "after":
            raise ApiUnreachable("away")
        return {}

    def _count(self) -> str:
        self.writes += 1
        return self.fails.pop(0) if self.fails else ""


class Jobs:
    """Jobs by name, each with one pod."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.iteration: int | None = None

    def list_jobs(self, namespace: str, selector: JobSelector | None) -> list[JobFigures]:
        common: dict[str, Any] = {"ranks": 2, "began_unix_ns": SECOND, "iteration": self.iteration}
        return [JobFigures(job=_job(n), pod=f"{n}-0", **common) for n in self.names]

    def find_job(self, namespace: str, *, kind: str = "", name: str = "", pod: str = "") -> Job | None:
        return next((_job(n) for n in self.names if n == name or f"{n}-0" == pod), None)

    def list_pods(self) -> dict[Job, str]:
        return {_job(n): f"{n}-0" for n in self.names}


def _job(name: str) -> Job:
    return Job("team", "batch/v1", "Job", name)


class Told:
    """Counts what it is told, and fails as it is bidden."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.calls = 0
        self.values: Mapping[str, str] = {}
        self._fault = fault

    async def send(self, values: Mapping[str, str]) -> bool:
        self.calls += 1
        self.values = values
        if self._fault is not None:
            raise self._fault
        return True


class Scene:
    """One API, one policy with one trigger (Alert by default), one operator after the other; a clock that is moved."""

    def __init__(
        self, *jobs: str, mode: str = "Capture", trigger: Mapping[str, Any] | None = None, **budget: int
    ) -> None:
        self.api = PolicyApi()
        self.jobs = Jobs(*jobs)
        self.now = 1_800_000_000 * SECOND
        self.fired: list[tuple[str, str]] = []
        self.store = MemoryStore()
        self.notifier: Any = Notifier(None)
        self.report_alerts: Any = ReportAlerts(None)
        document = with_value("spec.budget", {"minimumAgeSeconds": 0, **budget})
        document["spec"] |= {"mode": mode, "triggers": [{"name": "told", **(trigger or {"type": "Alert"})}]}
        document["metadata"] |= {"namespace": "team", "uid": "uid-1", "generation": 1}
        self.api.policies[POLICY] = document
        self.start()

    def start(self) -> None:
        """Another operator, which knows what the API knows."""
        cluster: Any = self.api
        captures = PolicyCaptures(
            cluster,
            self.jobs,
            self.notifier,
            self.report_alerts,
            find_author=self.find_author,
            count_bytes=lambda uid: 7,
            on_write=lambda kind: None,
            clock=lambda: self.now,
        )
        self.engine = Engine(
            self.jobs,
            Exemptions(cluster),
            captures,
            PolicyWriter(self.store.put, clock=lambda: self.now),
            on_firing=lambda trigger, result: self.fired.append((trigger, result)),
            clock=lambda: self.now,
        )
        self.engine.note(copy.deepcopy(self.api.policies[POLICY]))

    async def find_author(self, policy: dict[str, Any]) -> str:
        return f"the author of {policy['metadata']['uid']}"

    def tell(self, *jobs: str, name: str = "Low", started: str = "1") -> None:
        self.engine.take_alerts(
            [
                FiringAlert(
                    name=name, namespace="team", kind="Job", workload=job, pod="", started=started, summary="Low use."
                )
                for job in jobs
            ]
        )

    async def turn(self, seconds: int = 5) -> None:
        self.now += seconds * SECOND
        await self.engine.turn()
        for _ in range(4):  # what is told beside the turns ends
            await asyncio.sleep(0)

    async def is_stored(self) -> None:
        """Waits until nothing is being written to the store."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others)
        await asyncio.sleep(0)  # what is called when a task has ended is called

    def refuse(self, key: str, data: bytes) -> None:
        """A store that is away."""
        raise StoreError("away", retryable=True)

    def end_requests(self, headline: str = "It waits for data.") -> None:
        for body in self.api.requests.values():
            body["status"] = {
                "completionTime": "2027-01-15T08:00:00Z",
                "conditions": [{"type": "Succeeded", "status": "True", "reason": "Complete"}],
                "headline": {"topFinding": headline},
                "reportURL": "https://fleetprof/r/1",
            }

    @property
    def status(self) -> Json:
        found: Json = self.api.policies[POLICY]["status"]
        return found

    def reasons(self) -> list[str]:
        return [entry["reason"] for entry in self.status["suppressions"]]
