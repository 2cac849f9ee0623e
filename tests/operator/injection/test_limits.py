"""One tenant's asking of the webhook costs that tenant: sizes, counts, turns and connections are bounded."""

import asyncio
import io
import json
import threading
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from fleetprof_api.process.connection_table import ConnectionLimits
from fleetprof_operator.injection import fair_queue, review_bodies
from fleetprof_operator.injection.fair_queue import MOST_WAITING_OF_ONE, WORKERS, Busy, FairQueue
from fleetprof_operator.injection.namespace_limits import NamespaceLimitsReader, UnknownLimits
from fleetprof_operator.injection.outline import MAX_CONTAINERS, MAX_MOUNTS, MAX_VARIABLES, MAX_VOLUMES, find_excess
from fleetprof_operator.injection.review_bodies import MAX_BODY_BYTES, MOST_OF_ONE_BYTES
from fleetprof_operator.injection.webhook import Webhook
from fleetprof_operator.web import connections
from fleetprof_operator.web.connections import Connections
from harness.kubernetes.documents.pods_to_inject import SETTINGS, make_review


def pod(containers: int = 1, *, env: int = 0, mounts: int = 0, volumes: int = 0, **more: Any) -> dict[str, Any]:
    each = {
        "image": "x",
        "env": [{"name": f"V{index}", "value": "v"} for index in range(env)],
        "volumeMounts": [{"name": "v", "mountPath": f"/m/{index}"} for index in range(mounts)],
    }
    return {
        "metadata": {"name": "p", **more},
        "spec": {
            "containers": [{"name": f"c{index}", **each} for index in range(containers)],
            "volumes": [{"name": f"v{index}"} for index in range(volumes)],
        },
    }


# ---------------------------------------------------------------- how much a pod holds


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (pod(MAX_CONTAINERS), ""),
        (pod(MAX_CONTAINERS + 1), "65 containers"),
        (pod(env=MAX_VARIABLES), ""),
        (pod(2, env=MAX_VARIABLES // 2 + 1), "4098 environment variables"),
        (pod(mounts=MAX_MOUNTS + 1), "2049 volume mounts"),
        (pod(volumes=MAX_VOLUMES + 1), "257 volumes"),
        ({"spec": {"containers": [{"resources": {"limits": {f"a/{n}": "1" for n in range(513)}}}]}}, "513 amounts"),
        ({"spec": {"resources": {"requests": dict.fromkeys(map(str, range(500)), 1)}, "overhead": {}}}, ""),
        ({"spec": {"initContainers": [{}] * 65}}, "65 containers"),
        ({}, "it is no pod"),
        ({"spec": {"containers": "x"}}, "it is no pod"),
    ],
)
def test_a_pod_that_holds_too_much_is_named(document: dict[str, Any], message: str) -> None:
    found = find_excess(json.dumps(document).encode())
    assert message in found if message else not found


# ---------------------------------------------------------------- whose turn it is


@pytest.mark.attack
async def test_a_tenant_who_asks_for_much_waits_behind_itself() -> None:
    mine, gate = FairQueue(), threading.Event()
    runs: list[str] = []
    try:
        blocked = [asyncio.create_task(mine.run("hostile", gate.wait)) for _ in range(WORKERS)]
        flood = [asyncio.create_task(mine.run("hostile", partial(runs.append, "hostile"))) for _ in range(50)]
        await asyncio.sleep(0)
        others = [asyncio.create_task(mine.run(f"team-{n}", partial(runs.append, f"team-{n}"))) for n in range(5)]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*blocked, *flood, *others)
        # One of the flood's before the others' first round, no more.
        assert max(runs.index(f"team-{n}") for n in range(5)) <= 5
    finally:
        mine.close()


async def test_what_waits_is_bounded_for_each_and_what_nobody_waits_for_is_not_done() -> None:
    mine, gate = FairQueue(), threading.Event()
    runs: list[str] = []
    try:
        blocked = [asyncio.create_task(mine.run("a", gate.wait)) for _ in range(WORKERS)]
        waiting = [asyncio.create_task(mine.run("a", lambda: runs.append("a"))) for _ in range(MOST_WAITING_OF_ONE)]
        await asyncio.sleep(0)
        with pytest.raises(Busy, match=f"{MOST_WAITING_OF_ONE} pods of a wait already"):
            await mine.run("a", lambda: runs.append("a"))
        fine = asyncio.create_task(mine.run("b", lambda: runs.append("b")))
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        gate.set()
        await asyncio.gather(*blocked, fine)
        assert runs == ["b"]
    finally:
        mine.close()


async def test_all_that_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "MOST_WAITING", 2)
    mine, gate = FairQueue(), threading.Event()
    try:
        work = [asyncio.create_task(mine.run(f"{n}", gate.wait)) for n in range(WORKERS + 2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="2 pods wait already"):
            await mine.run("z", gate.wait)
        gate.set()
        await asyncio.gather(*work)
    finally:
        mine.close()


async def test_a_fault_of_the_work_is_the_caller_s() -> None:
    mine = FairQueue()
    try:
        with pytest.raises(ZeroDivisionError):
            await mine.run("a", lambda: 1 // 0)
    finally:
        mine.close()


# ---------------------------------------------------------------- reviews over HTTP


async def no_objects(_: str) -> list[dict[str, Any]]:
    return []


@pytest.fixture
async def client() -> AsyncIterator[TestClient[web.Request, web.Application]]:
    webhook = Webhook(lambda: SETTINGS, NamespaceLimitsReader(no_objects))
    made = TestClient(TestServer(webhook.make_admission()))
    await made.start_server()
    yield made
    await made.close()
    webhook.close()


async def ask(client: TestClient[web.Request, web.Application], body: bytes, place: str = "/pods") -> dict[str, Any]:
    async with client.post(place, data=io.BytesIO(body)) as answer:
        assert answer.status == 200, await answer.text()
        response: dict[str, Any] = (await answer.json())["response"]
        assert response["uid"] == "r-1"
        return response


@pytest.mark.attack
async def test_a_pod_of_megabytes_passes_at_once_and_unread_with_a_warning(
    client: TestClient[web.Request, web.Application],
) -> None:
    body = make_review(pod(9000, env=25), "team-a")
    assert len(body) > 6 << 20
    response = await ask(client, body)
    assert response["allowed"] is True
    assert "patch" not in response
    assert f"more than {MAX_BODY_BYTES} bytes" in response["warnings"][0]
    assert "patch" in await ask(client, make_review(pod(), "team-a"))


@pytest.mark.attack
async def test_a_request_of_megabytes_is_refused_since_nobody_would_know_who_asked(
    client: TestClient[web.Request, web.Application],
) -> None:
    body = make_review(pod(annotations={"x": "y" * MAX_BODY_BYTES}), "team-a", resource="profilerequests")
    response = await ask(client, body, "/requests")
    assert (response["allowed"], response["status"]["code"]) == (False, 422)
    assert "the request is refused" in response["status"]["message"]


@pytest.mark.attack
async def test_a_pod_of_a_thousand_containers_is_left_alone(client: TestClient[web.Request, web.Application]) -> None:
    response = await ask(client, make_review(pod(1000), "team-a"))
    assert "patch" not in response
    assert "1000 containers, and at most 64" in response["warnings"][0]


@pytest.mark.attack
async def test_bytes_are_bounded_for_each_namespace_and_the_others_have_theirs(
    client: TestClient[web.Request, web.Application],
) -> None:
    """Senders that announce much and send only the head hold what they announced, and no more than their share."""
    port = client.port
    assert port is not None
    head = make_review(pod(), "hostile")[:600]
    announced = f"POST /pods HTTP/1.1\r\nHost: x\r\nContent-Length: {MAX_BODY_BYTES}\r\n\r\n".encode()
    begun = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST_OF_ONE_BYTES // MAX_BODY_BYTES)]
    try:
        for _, writer in begun:
            # The head is known once so many bytes of it are there.
            writer.write(announced + head + b" " * 2048)
            await writer.drain()

        async def is_full() -> bool:
            response = await ask(client, make_review(pod(), "hostile"))
            return "patch" not in response and "too much to do" in response["warnings"][0]

        while not await is_full():  # until the last of them has been heard
            await asyncio.sleep(0.01)
        assert "patch" in await ask(client, make_review(pod(), "team-b"))
    finally:
        for _, writer in begun:
            writer.close()


@pytest.mark.attack
async def test_a_sender_that_is_slow_is_given_up_on(
    client: TestClient[web.Request, web.Application], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review_bodies, "READ_S", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
    writer.write(b"POST /pods HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n" + make_review(pod(), "a")[:100])
    assert b"413" in await reader.readline()
    writer.close()


@pytest.mark.attack
@pytest.mark.parametrize("namespace", ["kube-system/secrets?x=", "../../../apis/apps/v1/deployments?", "A", "a" * 64])
async def test_a_namespace_that_is_none_reaches_no_path(namespace: str) -> None:
    paths: list[str] = []

    async def note(path: str) -> list[dict[str, Any]]:
        paths.append(path)
        return []

    with pytest.raises(UnknownLimits, match="no namespace"):
        await NamespaceLimitsReader(note).read(namespace)
    webhook = Webhook(lambda: SETTINGS, NamespaceLimitsReader(note))
    async with (
        TestClient(TestServer(webhook.make_admission())) as client,
        client.post("/pods", data=make_review(pod(), namespace)) as answer,
    ):
        assert answer.status == 400
    webhook.close()
    assert paths == []


async def test_a_packed_body_is_not_unpacked(client: TestClient[web.Request, web.Application]) -> None:
    async with client.post("/pods", data=io.BytesIO(b"\x1f\x8b" + b"\0" * 100)) as answer:
        assert answer.status == 400


# ---------------------------------------------------------------- connections


async def hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


@pytest.fixture
async def listening(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connections]:
    monkeypatch.setattr(connections, "LOOK_S", 0.05)
    app = web.Application()
    app.router.add_get("/", hello)
    made = Connections(app, None, what="tests", limits=ConnectionLimits(most=6, most_of_one=4, patience_s=0.1))
    await made.start("0.0.0.0", 0)
    yield made
    await made.close()


async def get(port: int, host: str = "127.0.0.1") -> bytes:
    """One request over a connection of its own; empty when it is not answered."""
    try:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
    except OSError:
        return b""
    return answer


async def hold(port: int, host: str, *, with_request: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(host, port)
    if with_request:
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"hello")
    return reader, writer


@pytest.mark.attack
async def test_a_silent_connection_ends_and_a_used_one_stays(listening: Connections) -> None:
    silent = await hold(listening.port, "127.0.0.1", with_request=False)
    dripping = await hold(listening.port, "127.0.0.1", with_request=False)
    dripping[1].write(b"GET / HT")
    used = await hold(listening.port, "127.0.0.1", with_request=True)
    for reader, _ in (silent, dripping):
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
    used[1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await used[0].readuntil(b"hello")
    for _, writer in (silent, dripping, used):
        writer.close()


@pytest.mark.attack
async def test_who_holds_many_connections_keeps_nobody_out(listening: Connections) -> None:
    """Loopback has many addresses: one holds all it may, another one too, and a third is served."""
    held = [await hold(listening.port, "127.0.0.1", with_request=True) for _ in range(4)]
    assert b"hello" in await get(listening.port)  # in the place of its own longest unused one
    held[0][1].close()
    held = [*held[1:], await hold(listening.port, "127.0.0.1", with_request=True)]
    held += [await from_address("127.0.0.2", listening.port) for _ in range(2)]
    reader, writer = await from_address("127.0.0.3", listening.port)
    assert reader is not None
    # The address that has the most lost one.
    ended = await asyncio.gather(*(asyncio.wait_for(r.read(1), 0.2) for r, _ in held), return_exceptions=True)
    assert [index for index, result in enumerate(ended) if not isinstance(result, TimeoutError)] == [0]
    for _, open_writer in [*held, (reader, writer)]:
        open_writer.close()


@pytest.mark.attack
async def test_what_is_no_good_http_fills_no_log(listening: Connections, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(50):
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 10_000 + b"\r\n\r\n")
        assert (await reader.readline()).split()[1] == b"400"
        writer.close()
    assert len(caplog.text) < 300, caplog.text[:2000]


async def fail(_: web.Request) -> web.Response:
    raise ZeroDivisionError


async def test_a_fault_of_ours_is_logged_whole(caplog: pytest.LogCaptureFixture) -> None:
    app = web.Application()
    app.router.add_get("/", fail)
    made = Connections(app, None, what="tests")
    await made.start("127.0.0.1", 0)
    assert b"500" in await get(made.port)
    await made.close()
    assert "ZeroDivisionError" in caplog.text


async def from_address(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"hello")
    return reader, writer
