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
from fleetprof_api.process.foreign_json import OutOfBounds, pass_door
from fleetprof_api.report.report import MOST_REPORT_BYTES, Report, UnreadableReport, read_report
from fleetprof_store.base import NotFound, Store

MOST_BYTES: Final = 64 << 20
"""Of a ledger or a request."""
_KEPT: Final = 4
_KEPT_BYTES: Final = 96 << 20
"""Of the reports that are kept, as stored; decoded they take three times as much."""


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report, a hash of its bytes as version, and how many they are."""

    report: Report
    version: str
    size_bytes: int


class ReportReader:
    """Reads reports of one store and keeps the last ones decoded. For several threads at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[str, str, str], StoredReport] = OrderedDict()
        self._lock = threading.Lock()
        self._turn = threading.Lock()

    def read(self, namespace: str, uid: str, object_version: str) -> StoredReport:
        """The report whose object is of this version. Raises NotFound, UnreadableReport, StoreError."""
        key = (namespace, uid, object_version)
        with self._lock:
            if object_version and (kept := self._kept.get(key)):
                self._kept.move_to_end(key)
                return kept
        with self._turn:  # one at a time: several of the largest together would fill the memory
            data = read_limited(self._store, keys.report_key(namespace, uid), MOST_REPORT_BYTES)
            version = hashlib.blake2b(data, digest_size=12).hexdigest()
            stored = StoredReport(read_report(data), version, len(data))
        with self._lock:
            self._kept[key] = stored
            while len(self._kept) > _KEPT or sum(one.size_bytes for one in self._kept.values()) > _KEPT_BYTES:
                self._kept.popitem(last=False)
        return stored


def read_limited(store: Store, key: str, most_bytes: int) -> bytes:
    """An object of at most so many bytes. Raises NotFound, UnreadableReport, StoreError."""
    with store.open(key) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise UnreadableReport(f"it is larger than {most_bytes >> 20} MiB")
    return data


def read_ledger(store: Store, namespace: str, uid: str) -> tuple[Ledger, str] | None:
    """The ledger of a request and its version; None where there is none that can be read. Raises StoreError."""
    try:
        data = read_limited(store, keys.ledger_key(namespace, uid), MOST_BYTES)
        return msgspec.json.decode(pass_door(data), type=Ledger), hashlib.blake2b(data, digest_size=12).hexdigest()
    except (NotFound, OutOfBounds, UnreadableReport, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
