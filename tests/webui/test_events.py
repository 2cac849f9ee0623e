"""A request's events: all lines first, then those that changed; nothing twice; an end."""

from collections.abc import AsyncIterator, Callable

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.ledger import RankState
from fleetprof_webui.models.requests import LedgerChange
from fleetprof_webui.requests import events
from fleetprof_webui.requests.events import stream_changes
from harness.memory_store import MemoryStore
from starlette.testclient import TestClient
from webui.conftest import make_ledger, put_ledger

NAME = ("team-b", "running")


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LOOK_EVERY_S", 0.01)


def read(event: bytes) -> tuple[str, str, LedgerChange]:
    """(kind, id, change) of an event of the ledger."""
    fields = dict(line.split(": ", 1) for line in event.decode().strip().splitlines())
    return fields["event"], fields["id"], msgspec.json.decode(fields["data"], type=LedgerChange)


async def opened(
    store: MemoryStore, last_version: str = "", may_read: Callable[[], bool] = lambda: True
) -> AsyncIterator[bytes]:
    """The stream behind its first line, which says when to come back."""

    async def may_still_read() -> bool:
        return may_read()

    stream = stream_changes(store, *NAME, last_version, may_still_read)
    assert (await anext(stream)).startswith(b"retry: ")
    return stream


async def test_lines_come_as_they_change(store: MemoryStore) -> None:
    stream = await opened(store)
    kind, first, change = read(await anext(stream))
    assert (kind, change.lines, change.request.finished) == ("ledger", [0, 1, 2, 3], False)
    ledger = make_ledger(*NAME, at=300, finished=False)
    ledger.entries[2].state = RankState.ARMED
    put_ledger(store, ledger)
    _, second, change = read(await anext(stream))
    assert (change.lines, change.ledger.rank, change.ledger.state) == ([2], [2], ["ARMED"])
    assert second != first
    put_ledger(store, make_ledger(*NAME, at=300))
    _, _, change = read(await anext(stream))
    assert (change.request.finished, change.request.state) == (True, "Complete")
    assert await anext(stream) == b"event: finished\ndata: {}\n\n"
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_who_comes_back_gets_nothing_twice(store: MemoryStore) -> None:
    stream = await opened(store)
    _, first_version, _ = read(await anext(stream))
    again = await opened(store, first_version)
    put_ledger(store, make_ledger(*NAME, at=300))
    _, version, change = read(await anext(again))
    assert version != first_version
    assert change.lines == [0, 1, 2, 3], "what it has of the lines is not known here"


async def test_the_stream_ends_with_the_right_to_read(store: MemoryStore) -> None:
    rights = iter([True, True, False])
    stream = await opened(store, may_read=lambda: next(rights))
    read(await anext(stream))
    assert (await anext(stream)).startswith(b"event: signed_out")


async def test_a_silent_stream_has_a_heartbeat(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.0)
    stream = await opened(store)
    read(await anext(stream))
    assert (await anext(stream)).startswith(b":")


async def test_a_damaged_ledger_is_waited_for(store: MemoryStore) -> None:
    store.put(keys.ledger_key(*NAME), b'{"uid": "run')
    stream = await opened(store)
    pending = anext(stream)
    put_ledger(store, make_ledger(*NAME, at=300))
    assert read(await pending)[2].request.finished


def test_a_finished_request_is_told_at_once(client: TestClient) -> None:
    answered = client.get("/requests/team-a/slow/events")
    assert answered.headers["content-type"].startswith("text/event-stream")
    assert answered.headers["x-accel-buffering"] == "no"
    assert [line for line in answered.text.splitlines() if line.startswith("event: ")] == [
        "event: ledger",
        "event: finished",
    ]
