"""The questions to the API server on what a person may read, and the time for which its answer counts."""

import asyncio
from http import HTTPStatus

import pytest
from fleetprof_api.process.kubernetes_errors import ApiUnreachable
from fleetprof_webui.access.reviews import AT_ONCE, NO_S, YES_S, Reviews
from fleetprof_webui.access.subject import Subject
from fleetprof_webui.kubernetes_api import Json, KubernetesApi
from fleetprof_webui.problems import RequestRefused
from fleetprof_webui.requests.events import stream_changes
from harness.memory_store import MemoryStore

ANN = Subject("ann", ("team",))


class ScriptedApi(KubernetesApi):
    """Lets people read what is in `allowed`; keeps what it was asked."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = set(allowed)
        self.specs: list[Json] = []
        self.away = False
        self.at_once = self.most_at_once = 0

    async def ask(self, path: str, body: Json) -> Json:
        if self.away:
            raise ApiUnreachable("away")
        self.specs.append(body["spec"])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return {"status": {"allowed": body["spec"]["resourceAttributes"]["namespace"] in self.allowed}}


@pytest.mark.parametrize(("allowed", "lives_s"), [(["a"], YES_S), ([], NO_S)])
async def test_an_answer_counts_for_a_while(allowed: list[str], lives_s: float) -> None:
    now = [0.0]
    api = ScriptedApi(*allowed)
    reviews = Reviews(api, lambda: now[0])
    for now[0], count in ((0.0, 1), (lives_s - 0.1, 1), (lives_s, 2)):
        assert await reviews.find_permitted(ANN, "get", ["a"]) == frozenset(allowed)
        assert len(api.specs) == count


async def test_it_is_asked_with_the_groups_that_the_api_server_adds() -> None:
    api = ScriptedApi()
    await Reviews(api).may_everywhere(ANN, "list")
    attributes = {"group": "fleetprof.io", "resource": "profilerequests", "verb": "list", "namespace": ""}
    assert api.specs == [{"user": "ann", "groups": ["team", "system:authenticated"], "resourceAttributes": attributes}]


@pytest.mark.attack
async def test_nobody_has_the_rights_of_another_of_the_same_name() -> None:
    api = ScriptedApi("a")
    reviews = Reviews(api)
    assert await reviews.find_permitted(ANN, "get", ["a"]) == {"a"}
    api.allowed.clear()
    for other in (Subject("ann", ()), Subject("bob", ("team",))):
        assert await reviews.find_permitted(other, "get", ["a"]) == frozenset()
    assert await reviews.find_permitted(ANN, "list", ["a"]) == frozenset()
    assert len(api.specs) == 4


async def test_eight_namespaces_are_asked_about_at_a_time() -> None:
    api = ScriptedApi()
    await Reviews(api).find_permitted(ANN, "list", [f"n{number}" for number in range(50)])
    assert (len(api.specs), api.most_at_once) == (50, AT_ONCE)


@pytest.mark.attack
async def test_nobody_may_read_when_nobody_can_be_asked() -> None:
    api = ScriptedApi("", "a")
    api.away = True
    with pytest.raises(RequestRefused, match="does not say what you may read"):
        await Reviews(api).may_everywhere(ANN, "list")


@pytest.mark.attack
async def test_a_stream_ends_when_nobody_can_be_asked() -> None:
    async def may_read() -> bool:
        raise RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, "the API server is away")

    events = [event async for event in stream_changes(MemoryStore(), "team", "uid", "", may_read)]
    assert events == [b"retry: 2000\n\n"]


async def test_another_cluster_s_namespace_is_asked_about_by_the_cluster_s_name() -> None:
    api = ScriptedApi()
    assert await Reviews(api).find_permitted(ANN, "get", ["west.a"]) == frozenset()
    attributes = {"group": "fleetprof.io", "resource": "clusters", "verb": "get", "namespace": ""}
    assert [spec["resourceAttributes"] for spec in api.specs] == [
        attributes | {"name": "west"},
        attributes | {"name": "west.a"},
    ]


async def test_nothing_but_reading_is_granted_in_another_cluster() -> None:
    api = ScriptedApi("")
    assert await Reviews(api).find_permitted(ANN, "create", ["west.a"]) == frozenset()
    assert api.specs == []
