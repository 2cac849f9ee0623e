"""A request's ledger as server-sent events: what changed since the event before.

Guarantees: an event's id is the version of the ledger, so that a browser which comes back with it gets nothing twice; a
comment every 15 s keeps proxies from cutting the stream; it ends when the capture has, and when the person's right has.
Source: HTML, server-sent events; proxies cut silent connections at 60 s (ingress-nginx #14090).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

import msgspec
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger, LedgerEntry
from fleetprof_store.base import Store, StoreError

from fleetprof_webui.models.requests import LedgerChange
from fleetprof_webui.problems import RequestRefused
from fleetprof_webui.reports.reading import read_ledger
from fleetprof_webui.requests.detail import columns, describe_request, list_conditions, list_stages, read_document

LOOK_EVERY_S: Final = 1.0
HEARTBEAT_S: Final = 15.0
_FINISHED: Final = b"event: finished\ndata: {}\n\n"
_ENDED: Final = b"event: signed_out\ndata: {}\n\n"
_HEARTBEAT: Final = b": still there\n\n"
_Read = TypeVar("_Read")


async def stream_changes(
    store: Store, namespace: str, uid: str, known_version: str, may_read: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """The events; `known_version` is the one that the browser has, "" for none."""
    lines: list[LedgerEntry] = []
    document = await asyncio.to_thread(_quietly, lambda: read_document(store, namespace, uid))
    looked = ""
    loop = asyncio.get_running_loop()
    spoken = loop.time()
    yield b"retry: 2000\n\n"
    while True:
        try:
            if not await may_read():
                yield _ENDED
                return
        except RequestRefused:
            return  # the browser comes back, and is told why
        found = await asyncio.to_thread(_quietly, lambda: _look(store, namespace, uid, looked))  # noqa: B023
        if found is not None:
            stored, ledger, version = found
            if version != known_version:
                change = await asyncio.to_thread(
                    _quietly,
                    lambda: _describe(store, namespace, uid, document, ledger, version, lines),  # noqa: B023
                )
                if change is not None:
                    yield _event(change)
                    known_version, lines, spoken = version, ledger.entries, loop.time()
            if known_version == version:
                looked = stored
                if ledger.completed_unix_ns:
                    yield _FINISHED
                    return
        if loop.time() - spoken >= HEARTBEAT_S:
            yield _HEARTBEAT
            spoken = loop.time()
        await asyncio.sleep(LOOK_EVERY_S)


def _look(store: Store, namespace: str, uid: str, looked: str) -> tuple[str, Ledger, str] | None:
    """The version of the ledger's object, the ledger, and its own version; None where it is still `looked`, or damaged.

    Raises StoreError.
    """
    stored = store.head(keys.ledger_key(namespace, uid)).version
    found = None if stored and stored == looked else read_ledger(store, namespace, uid)
    return None if found is None else (stored, *found)


def _describe(
    store: Store,
    namespace: str,
    uid: str,
    document: bytes | None,
    ledger: Ledger,
    version: str,
    before: list[LedgerEntry],
) -> LedgerChange:
    changed = [line for line, entry in enumerate(ledger.entries) if line >= len(before) or entry != before[line]]
    return LedgerChange(
        request=describe_request(store, namespace, uid, ledger, document),
        version=version,
        conditions=list_conditions(ledger),
        stages=list_stages(ledger),
        lines=changed,
        ledger=columns([ledger.entries[line] for line in changed], ledger.submitted_unix_ns),
    )


def _event(change: LedgerChange) -> bytes:
    return b"event: ledger\nid: " + change.version.encode() + b"\ndata: " + msgspec.json.encode(change) + b"\n\n"


def _quietly(read: Callable[[], _Read]) -> _Read | None:
    """A store that does not answer now may do so a moment later."""
    try:
        return read()
    except StoreError:
        return None
