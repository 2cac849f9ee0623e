"""Files on their way into a store: over real HTTP, through its outages, and the talk with the hub about them."""

import asyncio
import hashlib
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fleetprof_api.hub import hub_pb2
from fleetprof_api.process.backoff import Backoff
from fleetprof_sidecar.capture.process_capture import StoredFile, Terms
from fleetprof_sidecar.delivery import file_delivery as delivery_module
from fleetprof_sidecar.delivery.file_delivery import FileDelivery, GaveUp
from fleetprof_sidecar.delivery.upload import FileDamaged, StoreUnreached, UploadBroken, put_parts
from fleetprof_sidecar.delivery.upload_connections import make_pool
from fleetprof_sidecar.hub.outbox import Outbox

DATA = [b"first part", b"second"]
STORED = StoredFile(
    name="f",
    size_bytes=sum(map(len, DATA)),
    sha256=hashlib.sha256(b"".join(DATA)).hexdigest(),
    part_sizes=[len(part) for part in DATA],
    part_sha256=[hashlib.sha256(part).hexdigest() for part in DATA],
)


@pytest.fixture
def spooled(tmp_path: Path) -> Path:
    path = tmp_path / "f"
    path.write_bytes(b"".join(DATA))
    return path


def grants(store: Any, sha256: Sequence[str] = STORED.part_sha256) -> list[hub_pb2.PartGrant]:
    return [
        hub_pb2.PartGrant(
            url=store.url(f"part{n}?signature=secret"), headers={"x-checksum": value, "X-Signed": "as is"}
        )
        for n, value in enumerate(sha256)
    ]


def put(path: Path, granted: Sequence[hub_pb2.PartGrant], stop: threading.Event | None = None) -> list[str]:
    pool = make_pool()
    try:
        return put_parts(pool, path, STORED, granted, stop or threading.Event(), Backoff(0.01, 0.1))
    finally:
        pool.clear()


def test_parts_arrive_with_the_signed_headers_as_they_are(http_store: Any, spooled: Path) -> None:
    etags = put(spooled, grants(http_store))
    assert etags == [f'"{hashlib.md5(part).hexdigest()}"' for part in DATA]
    assert list(http_store.parts.values()) == DATA
    assert all(headers["X-Signed"] == "as is" for _, headers in http_store.requests)


@pytest.mark.parametrize("script", [[500], [503, 429], [200, 500, 500]])
def test_passing_failures_are_tried_again(http_store: Any, spooled: Path, script: list[int]) -> None:
    http_store.script = list(script)
    assert len(put(spooled, grants(http_store))) == 2
    assert list(http_store.parts.values()) == DATA


def test_a_store_that_comes_back_gets_the_file(spooled: Path, make_http_store: Callable[[int], Any]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    urls = [hub_pb2.PartGrant(url=f"http://127.0.0.1:{port}/{n}") for n in range(2)]
    with pytest.raises(StoreUnreached, match="nothing takes connections there"):
        put(spooled, urls)
    store = make_http_store(port)
    put(spooled, urls)
    assert list(store.parts.values()) == DATA


@pytest.mark.parametrize(
    ("script", "requests", "words"),
    [([403], 1, "403 <Code>Scripted</Code>"), ([500] * 9, 4, "500"), ([307], 1, "307")],
)
def test_lasting_failures_need_a_new_grant_and_tell_no_signature(
    http_store: Any, spooled: Path, script: list[int], requests: int, words: str
) -> None:
    http_store.script = script
    with pytest.raises(UploadBroken, match=words) as broken:
        put(spooled, grants(http_store))
    assert not isinstance(broken.value, StoreUnreached)
    assert len(http_store.requests) == requests
    assert "secret" not in str(broken.value)


def test_a_part_whose_checksum_was_not_signed_is_refused_by_the_store(http_store: Any, spooled: Path) -> None:
    with pytest.raises(UploadBroken, match="400"):
        put(spooled, grants(http_store, ["0" * 64, "0" * 64]))


def test_a_file_that_changed_on_disk_is_not_sent(http_store: Any, spooled: Path) -> None:
    spooled.write_bytes(b"other bytes, as long")
    with pytest.raises(FileDamaged):
        put(spooled, grants(http_store))
    assert http_store.requests == []


@pytest.mark.parametrize("address", ["127.0.0.1", ""])
def test_a_store_whose_name_cannot_be_resolved_is_asked_at_its_address(
    http_store: Any, spooled: Path, address: str
) -> None:
    here = urlsplit(http_store.url(""))
    name = "fleetprof-store.tools.svc"
    urls = [hub_pb2.PartGrant(url=f"http://{name}:{here.port}/part{n}?signature=s") for n in range(2)]
    pool = make_pool(addresses={name: address} if address else {})
    if address:
        put_parts(pool, spooled, STORED, urls, threading.Event(), Backoff(0.01, 0.1))
        assert list(http_store.parts.values()) == DATA
        assert [headers["Host"] for _, headers in http_store.requests] == [f"{name}:{here.port}"] * 2
    else:
        with pytest.raises(StoreUnreached, match=f"{name}: the pod's DNS does not know this name"):
            put_parts(pool, spooled, STORED, urls, threading.Event(), Backoff(0.01, 0.1))


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", ""])
def test_only_http_urls_are_used(spooled: Path, url: str) -> None:
    with pytest.raises(UploadBroken, match="not http"):
        put(spooled, [hub_pb2.PartGrant(url=url)] * 2)


def test_a_grant_for_another_number_of_parts_is_not_used(http_store: Any, spooled: Path) -> None:
    with pytest.raises(UploadBroken, match="1 parts were granted, 2"):
        put(spooled, grants(http_store)[:1])


def test_a_stopped_upload_does_not_try_again(http_store: Any, spooled: Path) -> None:
    stop = threading.Event()
    stop.set()
    http_store.script = [500, 500]
    with pytest.raises(UploadBroken):
        put(spooled, grants(http_store), stop)
    assert len(http_store.requests) == 1


# ---------------------------------------------------------------- the talk with the hub

TERMS = Terms(capture_id="cap", process_id="p", rank=1, first_step=1)
GRANT = hub_pb2.UploadGrant(upload_id="u", parts=[hub_pb2.PartGrant(url="http://s/")] * 2)
ACCEPTED = hub_pb2.UploadVerdict(accepted=True)


class Talk:
    """A delivery whose hub answers from a list; None: the connection was lost and is back."""

    def __init__(self, answers: list[Any], puts: list[Any]) -> None:
        self.questions: list[str] = []
        self.unreached: list[str] = []
        self._answers = answers
        self._puts = puts
        self.delivery = FileDelivery(TERMS, hub_pb2.TRACE, STORED, self, self)

    def send(self, message: hub_pb2.SidecarMessage) -> None:
        self.questions.append(str(message.WhichOneof("body")))
        if self.questions[-1] == ASK:
            upload_request = message.upload_request
            assert (upload_request.unreached_ns > 0) == bool(upload_request.unreached)
            self.unreached.append(upload_request.unreached)
        if self._answers:
            self.delivery.receive(self._answers.pop(0))

    async def put(self, stored: StoredFile, grants: Sequence[Any], stop: threading.Event) -> list[str]:
        result = self._puts.pop(0)
        if isinstance(result, Exception):
            raise result
        etags: list[str] = result
        return etags


ASK, DONE = "upload_request", "upload_done"
AGAIN = hub_pb2.UploadVerdict(message="checksum", retry_after_ns=1)


@pytest.mark.parametrize(
    ("answers", "puts", "questions"),
    [
        ([GRANT, ACCEPTED], [["e"]], [ASK, DONE]),
        ([None, GRANT, ACCEPTED], [["e"]], [ASK, ASK, DONE]),
        ([hub_pb2.UploadGrant(refusal="wait", retry_after_ns=1), GRANT, ACCEPTED], [["e"]], [ASK, ASK, DONE]),
        ([GRANT, GRANT, ACCEPTED], [UploadBroken("403"), ["e"]], [ASK, ASK, DONE]),
        ([GRANT, AGAIN, GRANT, ACCEPTED], [["e"], ["e"]], [ASK, DONE, ASK, DONE]),
        ([GRANT, None, ACCEPTED], [["e"]], [ASK, DONE, DONE]),
        ([GRANT, None, None, GRANT, ACCEPTED], [["e"], ["e"]], [ASK, DONE, DONE, ASK, DONE]),
    ],
)
async def test_a_delivery_goes_on_until_the_store_holds_the_file(
    answers: list[Any], puts: list[Any], questions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "Backoff", lambda *_: Backoff(0.001, 0.001))
    talk = Talk(answers, puts)
    await asyncio.wait_for(talk.delivery.run(), 30)
    assert talk.questions == questions


@pytest.mark.parametrize(
    ("answers", "puts", "reason"),
    [
        ([hub_pb2.UploadGrant(refusal="over")], [], "over"),
        ([GRANT, hub_pb2.UploadVerdict(message="other size")], [["e"]], "other size"),
        ([GRANT], [FileDamaged("gone")], "gone"),
        ([GRANT], [FileNotFoundError("f")], "f"),
    ],
)
async def test_a_delivery_ends_when_there_is_no_use(answers: list[Any], puts: list[Any], reason: str) -> None:
    with pytest.raises(GaveUp, match=reason):
        await asyncio.wait_for(Talk(answers, puts).delivery.run(), 30)


async def test_the_hub_hears_that_no_connection_to_the_store_comes_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "Backoff", lambda *_: Backoff(0.001, 0.001))
    unreached, broken = StoreUnreached("s: no name"), UploadBroken("s answered 500")
    talk = Talk([GRANT] * 4 + [hub_pb2.UploadGrant(refusal="s is there")], [unreached, broken, unreached, unreached])
    with pytest.raises(GaveUp, match="s is there"):
        await asyncio.wait_for(talk.delivery.run(), 30)
    assert talk.unreached == ["", "s: no name", "", "s: no name", "s: no name"]


async def test_time_without_a_grant_is_not_held_against_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "Backoff", lambda *_: Backoff(0.001, 0.001))
    away = hub_pb2.UploadGrant(refusal="the store cannot be reached", retry_after_ns=1)
    talk = Talk([GRANT, away, GRANT, None, GRANT, ACCEPTED], [*[StoreUnreached("s: no name")] * 2, ["e"]])
    await asyncio.wait_for(talk.delivery.run(), 30)
    assert talk.unreached == ["", "s: no name", "", "s: no name", ""]


async def test_a_silent_hub_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "ANSWER_PATIENCE_S", 0.01)
    talk = Talk([], [])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(talk.delivery.run(), 0.5)
    assert talk.questions.count(ASK) > 2


async def test_the_request_announces_every_part() -> None:
    hub = Outbox()
    task = asyncio.create_task(FileDelivery(TERMS, hub_pb2.SAMPLES, STORED, hub, Talk([], [])).run())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    message = await hub.get(connection=0)
    assert message is not None
    request = message.upload_request
    assert (request.capture_id, request.process_id, request.rank) == ("cap", "p", 1)
    assert request.object == hub_pb2.SAMPLES
    parts = [(part.size_bytes, part.sha256.hex()) for part in request.parts]
    assert parts == list(zip(STORED.part_sizes, STORED.part_sha256, strict=True))
