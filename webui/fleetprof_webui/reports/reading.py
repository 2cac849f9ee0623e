"""Reads heads, ledgers and requests from the store, within limits.

Guarantees: what cannot be read is an UnreadableReport with a sentence for people; no whole report is read.
"""

import hashlib
import zlib
from typing import Final

import msgspec
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.process.foreign_json import OutOfBounds, pass_door
from fleetprof_api.report.report import UnreadableReport
from fleetprof_api.slices.head import Head
from fleetprof_api.slices.table import SLICES
from fleetprof_store.base import NotFound, Store

MOST_BYTES: Final = 64 << 20
"""Of a ledger or a request."""
_GZIP: Final = 31


def read_limited(store: Store, key: str, most_bytes: int) -> bytes:
    """An object of at most so many bytes. Raises NotFound, UnreadableReport, StoreError."""
    with store.open(key) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise UnreadableReport(f"it is larger than {most_bytes:,} bytes")
    return data


def decode_head(data: bytes) -> Head:
    """The head of a report, of gzip. Raises UnreadableReport."""
    most_bytes = SLICES["head"].most_bytes
    try:
        plain = zlib.decompressobj(_GZIP).decompress(data, most_bytes + 1)
        if len(plain) > most_bytes:
            raise UnreadableReport(f"its head is larger than {most_bytes:,} bytes")
        return msgspec.json.decode(pass_door(plain), type=Head)
    except (OutOfBounds, msgspec.MsgspecError, UnicodeDecodeError, RecursionError, zlib.error) as error:
        raise UnreadableReport(f"its head is not a fleetprof report's: {error}") from None


def read_ledger(store: Store, namespace: str, uid: str) -> tuple[Ledger, str] | None:
    """The ledger of a request and its version; None where there is none that can be read. Raises StoreError."""
    try:
        data = read_limited(store, keys.ledger_key(namespace, uid), MOST_BYTES)
        return msgspec.json.decode(pass_door(data), type=Ledger), hashlib.blake2b(data, digest_size=12).hexdigest()
    except (NotFound, OutOfBounds, UnreadableReport, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
