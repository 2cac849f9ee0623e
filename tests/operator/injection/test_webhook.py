"""The webhook over HTTP: what the API server hears, whatever happens to us."""

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from fleetprof_operator.injection import webhook as webhook_module
from fleetprof_operator.injection.namespace_limits import NamespaceLimitsReader
from fleetprof_operator.injection.pods.nodes import Node
from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings
from fleetprof_operator.injection.review_bodies import MAX_BODY_BYTES
from fleetprof_operator.injection.webhook import Webhook
from fleetprof_operator.web.probes import make_probes
from harness.kubernetes.documents.pods_to_inject import SETTINGS

POD = {"metadata": {"generateName": "t-"}, "spec": {"containers": [{"name": "train", "image": "x"}]}}


class World:
    """A webhook between a client and an API server that answers as it is told."""

    def __init__(self, *, require_image: bool = False) -> None:
        self.nodes: list[Node] | None = None
        self.settings: InjectionSettings | None = SETTINGS
        self.objects: dict[str, list[dict[str, Any]]] = {}
        self.delay_s = 0.0
        self.failure: Exception | None = None
        self.paths: list[str] = []
        nodes = (lambda: self.nodes) if require_image else None
        self.webhook = Webhook(lambda: self.settings, NamespaceLimitsReader(self.list_objects), nodes)
        self.clients: list[TestClient[web.Request, web.Application]] = []

    async def list_objects(self, path: str) -> list[dict[str, Any]]:
        self.paths.append(path)
        await asyncio.sleep(self.delay_s)
        if self.failure is not None:
            raise self.failure
        return self.objects.get(path.rpartition("/")[2], [])

    async def start(self) -> None:
        health = make_probes(self.webhook.find_obstacle, self.webhook.registry)
        for app in (self.webhook.make_admission(), health):
            client = TestClient(TestServer(app))
            await client.start_server()
            self.clients.append(client)

    async def ask(self, pod: dict[str, Any] = POD, **changes: Any) -> dict[str, Any]:
        request = {
            "uid": "r-1",
            "operation": "CREATE",
            "namespace": "team-a",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "userInfo": {"username": "system:serviceaccount:kube-system:job-controller"},
            "object": pod,
            **changes,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        async with self.clients[0].post("/pods", json=review) as answer:
            assert answer.status == 200
            response: dict[str, Any] = (await answer.json())["response"]
        assert response["uid"] == "r-1"
        assert response["allowed"] is True
        return response

    async def metrics(self) -> str:
        async with self.clients[1].get("/metrics") as answer:
            return await answer.text()

    async def ready(self) -> int:
        async with self.clients[1].get("/readyz") as answer:
            return answer.status


@pytest.fixture
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    made = World(require_image=getattr(request, "param", False))
    await made.start()
    yield made
    for client in made.clients:
        await client.close()
    made.webhook.close()


async def test_a_pod_gets_its_patch(world: World) -> None:
    response = await world.ask()
    paths = [operation["path"] for operation in json.loads(base64.b64decode(response["patch"]))]
    assert paths == [
        "/metadata/annotations",
        "/spec/containers/0/env",
        "/spec/containers/0/volumeMounts",
        "/spec/volumes",
        "/spec/initContainers",
    ]
    assert 'fleetprof_webhook_pods_total{result="Injected"} 1.0' in await world.metrics()
    assert sorted(world.paths) == [
        "/api/v1/namespaces/team-a/limitranges",
        "/api/v1/namespaces/team-a/resourcequotas",
    ]


async def test_a_pod_that_does_not_fit_passes_with_a_warning(world: World) -> None:
    hard = {"hard": {"requests.cpu": "10m"}}
    world.objects["resourcequotas"] = [{"metadata": {"name": "q"}, "spec": hard, "status": {**hard, "used": {}}}]
    response = await world.ask()
    assert "patch" not in response
    assert "ResourceQuota q" in response["warnings"][0]
    assert 'result="NoRoom"' in await world.metrics()


@pytest.mark.parametrize("world", [True], indirect=True)
async def test_where_the_image_is_required_a_pod_passes_unchanged_until_all_nodes_have_it(world: World) -> None:
    response = await world.ask()
    assert "patch" not in response
    assert "not known yet which nodes" in response["warnings"][0]

    def node(has_image: bool) -> Node:
        return Node(name="a", labels={}, taints=(), extended=frozenset(), has_image=has_image)

    world.nodes = [node(False)]
    response = await world.ask()
    assert "patch" not in response
    assert "is not on the list of a" in response["warnings"][0]
    world.nodes = [node(True)]
    assert "patch" in await world.ask()
    metrics = await world.metrics()
    for result in ("UnknownNodes", "NoImage", "Injected"):
        assert f'fleetprof_webhook_pods_total{{result="{result}"}} 1.0' in metrics


async def test_a_namespace_without_limits_is_not_asked_about_for_every_pod(world: World) -> None:
    await world.ask()
    await world.ask()
    assert len(world.paths) == 2


async def test_a_namespace_with_limits_is_read_for_every_pod(world: World) -> None:
    world.objects["limitranges"] = [{"metadata": {"name": "r"}, "spec": {"limits": []}}]
    await world.ask()
    await world.ask()
    assert len(world.paths) == 4


async def test_pods_that_come_together_share_a_reading(world: World) -> None:
    world.delay_s = 0.05
    await asyncio.gather(*(world.ask() for _ in range(20)))
    assert len(world.paths) == 2


@pytest.mark.parametrize("failure", [None, RuntimeError("connection refused")])
async def test_limits_that_cannot_be_read_let_the_pod_pass_unchanged(world: World, failure: Exception | None) -> None:
    world.failure, world.delay_s = failure, 0.0 if failure else 5.0
    response = await world.ask()
    assert "patch" not in response
    assert "team-a" in response["warnings"][0]
    assert 'result="UnknownLimits"' in await world.metrics()


async def test_a_fault_of_ours_lets_the_pod_pass_unchanged(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("spec")

    monkeypatch.setattr(webhook_module, "change_pod", fail)
    assert "patch" not in await world.ask()
    assert 'result="Internal"' in await world.metrics()


@pytest.mark.parametrize("pod", [{}, {"spec": None}, {"spec": {"containers": "x"}}, {"spec": {"containers": [1]}}])
async def test_a_pod_that_is_none_passes_unchanged(world: World, pod: dict[str, Any]) -> None:
    assert "patch" not in await world.ask(pod)


async def test_nothing_but_new_pods_is_changed(world: World) -> None:
    assert "patch" not in await world.ask(operation="UPDATE")
    assert "patch" not in await world.ask(resource={"resource": "jobs"})


async def test_ready_means_that_a_pod_would_get_its_sidecar(world: World) -> None:
    assert await world.ready() == 200
    world.webhook.is_leaving = True
    assert await world.ready() == 503
    assert "patch" in await world.ask()
    world.webhook.is_leaving = False
    world.settings = None
    assert await world.ready() == 503
    assert "not set up yet" in (await world.ask())["warnings"][0]


async def test_bodies_are_bounded_and_what_is_no_review_is_named(world: World) -> None:
    for place in ("/pods", "/requests"):
        async with world.clients[0].post(place, data=io.BytesIO(b"x" * (MAX_BODY_BYTES + 1))) as answer:
            assert answer.status == 413
    async with world.clients[0].post("/pods", data=b"{}") as answer:
        assert answer.status == 400
        assert "AdmissionReview" in (await answer.json())["error"]
    async with world.clients[0].get("/pods") as answer:
        assert answer.status == 405


async def test_the_requester_of_our_own_kinds_is_noted(world: World) -> None:
    request = {
        "uid": "r-2",
        "operation": "CREATE",
        "namespace": "team-a",
        "resource": {"group": "fleetprof.io", "version": "v1alpha1", "resource": "profilerequests"},
        "userInfo": {"username": "ada"},
        "object": {"metadata": {"name": "x"}},
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    async with world.clients[0].post("/requests", json=review) as answer:
        response = (await answer.json())["response"]
    (operation,) = json.loads(base64.b64decode(response["patch"]))
    assert operation["value"] == {"fleetprof.io/requested-by": "ada"}


async def test_a_storm_of_pods_under_a_quota_is_injected_whole(world: World) -> None:
    """All wait for one look at the quota, and come to their turn at once."""
    amounts = {"requests.cpu": "1000", "requests.memory": "1000Gi"}
    world.objects["resourcequotas"] = [{"spec": {"hard": amounts}, "status": {"hard": amounts, "used": {}}}]
    world.delay_s = 0.2
    pod = {"metadata": {"generateName": "t-"}, "spec": {"containers": [
        {"name": "train", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}}  # fmt: skip
    answers = await asyncio.gather(*(world.ask(pod) for _ in range(150)))
    assert sum("patch" in answer for answer in answers) == len(answers)
