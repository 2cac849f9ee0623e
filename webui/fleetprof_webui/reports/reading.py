"""Reads reports, ledgers and requests from the store, within limits.

Guarantees: a report is decoded once while it is among the last few that were asked for; what cannot be read is an
UnreadableReport with a sentence for people.
"""

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import msgspec
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.report import Report, UnreadableReport, read_report
from fleetprof_store.base import NotFound, Store

MOST_BYTES: Final = 512 << 20
_KEPT: Final = 4


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report, and a hash of its bytes as version."""

    report: Report
    version: str


class ReportReader:
    """Reads reports of one store and keeps the last ones decoded. For several threads at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[str, str, str], StoredReport] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, namespace: str, uid: str, object_version: str) -> StoredReport:
        """The report whose object is of this version. Raises NotFound, UnreadableReport, StoreError."""
        key = (namespace, uid, object_version)
        with self._lock:
            if object_version and (kept := self._kept.get(key)):
                self._kept.move_to_end(key)
                return kept
        data = read_limited(self._store, keys.report_key(namespace, uid), MOST_BYTES)
        version = hashlib.blake2b(data, digest_size=12).hexdigest()
        stored = StoredReport(read_report(data), version)
        with self._lock:
            self._kept[key] = stored
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return stored


def read_limited(store: Store, key: str, most_bytes: int) -> bytes:
    """An object of at most so many bytes. Raises NotFound, UnreadableReport, StoreError."""
    with store.open(key) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise UnreadableReport(f"it is larger than {most_bytes >> 20} MiB: read it with `fleetprof report`")
    return data


def read_ledger(store: Store, namespace: str, uid: str) -> tuple[Ledger, str] | None:
    """The ledger of a request and its version; None where there is none that can be read. Raises StoreError."""
    try:
        data = read_limited(store, keys.ledger_key(namespace, uid), MOST_BYTES)
        return msgspec.json.decode(data, type=Ledger), hashlib.blake2b(data, digest_size=12).hexdigest()
    except (NotFound, UnreadableReport, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
