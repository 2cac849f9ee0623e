"""Requests as the store holds them: which there are, and one of them with its ledger.

Guarantees: what cannot be read is told in the log and left alone, for somebody may still repair it; a ledger that
cannot be read counts as lost, for sidecars can rebuild it.
"""

import logging
from dataclasses import dataclass

import msgspec
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.request import InvalidRequest, ProfileRequest, load_request

from fleetprof_operator.hub.storage.store_calls import StoreCalls

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """A request as it was taken, and its ledger; None when there is none to be read."""

    request: ProfileRequest
    request_json: str
    ledger: Ledger | None


async def list_stored(calls: StoreCalls) -> list[tuple[str, str]]:
    """(namespace, uid) of all requests. Raises StoreError."""
    infos = await calls.list(f"{keys.MAJOR}/")
    return [place for info in infos if (place := _request_place(info.key)) is not None]


async def read_stored(calls: StoreCalls, namespace: str, uid: str) -> StoredRequest | None:
    """One request; None when the store has none, or nothing that is one. Raises StoreError."""
    text = await calls.get_if_there(keys.request_key(namespace, uid))
    data = await calls.get_if_there(keys.ledger_key(namespace, uid))
    if text is None:
        return None
    try:
        request = load_request(text.decode())
    except (InvalidRequest, UnicodeDecodeError) as error:
        log.warning("%s is not a request and is left alone: %s", keys.request_key(namespace, uid), error)
        return None
    return StoredRequest(request, text.decode(), _decode_ledger(data, namespace, uid))


def _request_place(key: str) -> tuple[str, str] | None:
    try:
        namespace, uid, rest = keys.split_request_prefix(key)
    except ValueError:
        return None
    return (namespace, uid) if rest == "request.json" else None


def _decode_ledger(data: bytes | None, namespace: str, uid: str) -> Ledger | None:
    if data is None:
        return None
    try:
        ledger = msgspec.json.decode(data, type=Ledger)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        log.warning("%s cannot be read and is rebuilt: %s", keys.ledger_key(namespace, uid), error)
        return None
    return ledger if (ledger.namespace, ledger.uid) == (namespace, uid) else None
