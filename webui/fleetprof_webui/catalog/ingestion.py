"""Brings the catalog to what the store holds.

Guarantees: repeating it changes nothing; what is half-written or damaged becomes a row that says so, and is looked at
again when the store has another version of it; what the store deleted goes; if the store fails, nothing goes. Each
capture is taken in alone: whatever one does to its reader becomes a row that says so, and the others go on; of a report
its head is read alone. Several processes may do it at once.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.plain_text import make_printable
from fleetprof_api.process.foreign_json import OutOfBounds, pass_door
from fleetprof_api.report.report import UnreadableReport
from fleetprof_api.slices.table import SLICES
from fleetprof_api.stored_request import ProfileRequest
from fleetprof_store.base import NotFound, Store, StoreError
from sqlalchemy import Connection, Engine, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError, InterfaceError, OperationalError, SQLAlchemyError

from fleetprof_webui.catalog.figures import FIGURES
from fleetprof_webui.catalog.records import ReportRows, label_texts, name_workload, report_rows, request_row
from fleetprof_webui.catalog.schema import VERSION, hosts, labels, reports, requests, workloads
from fleetprof_webui.reports.reading import MOST_BYTES, decode_head, read_limited
from fleetprof_webui.reports.whole_reports import WholeReports

_WATCHED: Final = ("request.json", "ledger.json", "report.json")
_MOST_PROBLEM: Final = 512
_FAILURES: Final = 3
_EMPTY: Final = {figure.name: figure.absent for figure in FIGURES if figure.copied}
_Kind = TypeVar("_Kind")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of one look at the store."""

    written: int
    deleted: int


@dataclass(frozen=True, slots=True)
class _Stored:
    """The watched objects of one capture, by name: version of each."""

    versions: Mapping[str, str]

    def version(self) -> str:
        # Rows that a service of another version wrote, also meanwhile, are written anew.
        text = "\n".join([str(VERSION), *(f"{name} {version}" for name, version in sorted(self.versions.items()))])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class StoreListing:
    """All that the store has, at one look.

    `captures` by (namespace, uid); `telemetry`: namespaces that have a day; `policies`: the document's version by
    namespace, "" where the store knows none.
    """

    captures: Mapping[tuple[str, str], _Stored]
    telemetry: frozenset[str]
    policies: Mapping[str, str]


def ingest(store: Store, engine: Engine, listing: StoreListing) -> Changes:
    """Brings the catalog to what was listed. Raises StoreError, SQLAlchemyError."""
    there = listing.captures
    with engine.connect() as connection:
        rows = connection.execute(select(requests.c.namespace, requests.c.uid, requests.c.version))
        known = {(row.namespace, row.uid): row.version for row in rows}
    written = failed = 0
    for (namespace, uid), stored in there.items():
        if known.get((namespace, uid)) == stored.version():
            continue
        try:
            written += _ingest_alone(store, engine, namespace, uid, stored)
            failed = 0
        except StoreError as error:
            failed += 1  # one object that cannot be read keeps no other out; a store that is away ends the look
            if failed == _FAILURES:
                raise
            log.warning("capture %s/%s is looked at again: %s", namespace, uid, error)
    deleted_keys = [key for key in known if key not in there]
    for namespace, uid in deleted_keys:
        with engine.begin() as connection:
            _delete(connection, namespace, uid)
    return Changes(written, len(deleted_keys))


def list_store(store: Store) -> StoreListing:
    """Looks at the whole store once. Raises StoreError."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    telemetry: set[str] = set()
    policies: dict[str, str] = {}
    for item in store.list(f"{keys.MAJOR}/"):
        try:
            namespace, uid, rest = keys.split_request_prefix(item.key)
        except ValueError:
            continue
        if item.key == keys.telemetry_day_key(namespace):
            telemetry.add(namespace)
        elif item.key == keys.policies_key(namespace):
            policies[namespace] = item.version
        if rest in _WATCHED and uid != "workloads":
            found.setdefault((namespace, uid), {})[rest] = item.version or str(item.size_bytes)
    captures = {key: _Stored(versions) for key, versions in found.items()}
    return StoreListing(captures, frozenset(telemetry), policies)


def _ingest_alone(store: Store, engine: Engine, namespace: str, uid: str, stored: _Stored) -> bool:
    """Takes one capture in, or notes why it cannot be. Raises StoreError, OperationalError, InterfaceError."""
    try:
        return _ingest_one(store, engine, namespace, uid, stored)
    except (StoreError, OperationalError, InterfaceError):
        raise
    except Exception as error:
        log.warning("capture %s/%s cannot be taken in", namespace, uid, exc_info=True)
        message = make_printable(f"it cannot be taken in: {type(error).__name__}: {error}")
        return _write_alone(engine, namespace, uid, stored, message[:_MOST_PROBLEM])


def _write_alone(engine: Engine, namespace: str, uid: str, stored: _Stored, problem: str) -> bool:
    """A row of what is known without reading anything."""
    row = {**request_row(None, uid), **_identify(namespace, uid, stored), "problem": problem}
    try:
        with engine.begin() as connection:
            _write(connection, row | {"has_report": False}, None, (namespace, "", uid), [])
    except (OperationalError, InterfaceError):
        raise
    except SQLAlchemyError:
        log.warning("capture %s/%s cannot be noted", namespace, uid, exc_info=True)
        return False
    return True


def _identify(namespace: str, uid: str, stored: _Stored) -> Mapping[str, Any]:
    return {
        "namespace": namespace,
        "uid": uid,
        "version": stored.version(),
        "report_version": stored.versions.get("report.json", "")[:64],
    }


def _ingest_one(store: Store, engine: Engine, namespace: str, uid: str, stored: _Stored) -> bool:
    request = _read(store, keys.request_key(namespace, uid), ProfileRequest)
    ledger = _read(store, keys.ledger_key(namespace, uid), Ledger)
    rows, problem = _read_report(store, namespace, uid) if "report.json" in stored.versions else (None, "")
    kind, name = name_workload(request, ledger, uid)
    row = {
        **request_row(ledger, uid),
        **_identify(namespace, uid, stored),
        "has_report": rows is not None,
        "problem": problem[:_MOST_PROBLEM],
    }
    try:
        with engine.begin() as connection:
            _write(connection, row, rows, (namespace, kind, name), label_texts(request, ledger))
    except IntegrityError:
        log.info("another process is writing capture %s/%s into the catalog", namespace, uid)
        return False
    return True


def _read_report(store: Store, namespace: str, uid: str) -> tuple[ReportRows | None, str]:
    try:
        return report_rows(decode_head(_fetch_head(store, namespace, uid))), ""
    except NotFound:
        return None, ""
    except UnreadableReport as error:
        return None, str(error)


def _fetch_head(store: Store, namespace: str, uid: str) -> bytes:
    """The head as it is stored, or of a report that was written without one. Raises as `WholeReports.head` does."""
    try:
        return read_limited(store, keys.slice_key(namespace, uid, "head"), SLICES["head"].most_bytes)
    except NotFound:
        return WholeReports(store).head(namespace, uid)


def _read(store: Store, key: str, kind: type[_Kind]) -> _Kind | None:
    try:
        return msgspec.json.decode(pass_door(read_limited(store, key, MOST_BYTES)), type=kind)
    except (NotFound, OutOfBounds, UnreadableReport, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _write(
    connection: Connection,
    row: Mapping[str, Any],
    rows: ReportRows | None,
    workload: tuple[str, str, str],
    texts: Sequence[str],
) -> None:
    _delete(connection, row["namespace"], row["uid"], keep=workload)
    workload_id = _find_workload(connection, workload)
    request_id = connection.execute(
        insert(requests).values(**row, workload_id=workload_id).returning(requests.c.id)
    ).scalar_one()
    if rows is not None:
        connection.execute(insert(reports).values(request_id=request_id, **rows.report))
        if rows.hosts:
            connection.execute(insert(hosts), [{"request_id": request_id, "host_name": name} for name in rows.hosts])
    _write_labels(connection, workload_id, row["submitted_unix_ns"], texts)
    _renew_workload(connection, workload_id)


def _write_labels(connection: Connection, workload_id: int, submitted_unix_ns: int, texts: Sequence[str]) -> None:
    """Writes the labels of the latest capture: a label that was taken away goes with the next one."""
    of_workload = requests.c.workload_id == workload_id
    latest = connection.execute(select(func.max(requests.c.submitted_unix_ns)).where(of_workload)).scalar_one()
    if submitted_unix_ns < latest or not texts:
        return
    connection.execute(delete(labels).where(labels.c.workload_id == workload_id))
    connection.execute(insert(labels), [{"workload_id": workload_id, "label": text} for text in texts])


def _find_workload(connection: Connection, workload: tuple[str, str, str]) -> int:
    namespace, kind, name = workload
    where = (workloads.c.namespace == namespace, workloads.c.kind == kind, workloads.c.name == name)
    found = connection.execute(select(workloads.c.id).where(*where)).scalar_one_or_none()
    if found is not None:
        return int(found)
    new = {"namespace": namespace, "kind": kind, "name": name, "captures": 0, "last_request_id": 0, "last_unix_ns": 0}
    made = connection.execute(insert(workloads).values(**new, **_EMPTY).returning(workloads.c.id))
    return int(made.scalar_one())


def _renew_workload(connection: Connection, workload_id: int) -> None:
    """Counts its captures and copies the figures of the last one; a workload without any goes."""
    count = connection.execute(
        select(func.count()).select_from(requests).where(requests.c.workload_id == workload_id)
    ).scalar_one()
    if not count:
        connection.execute(delete(workloads).where(workloads.c.id == workload_id))
        return
    last = connection.execute(
        select(requests.c.id, requests.c.submitted_unix_ns, *(reports.c[name] for name in _EMPTY))
        .select_from(requests.outerjoin(reports))
        .where(requests.c.workload_id == workload_id)
        .order_by(requests.c.has_report.desc(), requests.c.submitted_unix_ns.desc(), requests.c.id.desc())
        .limit(1)
    ).one()
    figures = {name: absent if getattr(last, name) is None else getattr(last, name) for name, absent in _EMPTY.items()}
    connection.execute(
        update(workloads)
        .where(workloads.c.id == workload_id)
        .values(captures=count, last_request_id=last.id, last_unix_ns=last.submitted_unix_ns, **figures)
    )


def _delete(connection: Connection, namespace: str, uid: str, *, keep: tuple[str, str, str] | None = None) -> None:
    """Deletes a request and what belongs to it; its workload too when it was the last one, unless it is `keep`."""
    workload_id = connection.execute(
        delete(requests)
        .where(requests.c.namespace == namespace, requests.c.uid == uid)
        .returning(requests.c.workload_id)
    ).scalar_one_or_none()
    if workload_id is None:
        return
    if keep is not None:
        same = select(workloads.c.id).where(
            workloads.c.namespace == keep[0], workloads.c.kind == keep[1], workloads.c.name == keep[2]
        )
        if connection.execute(same).scalar_one_or_none() == workload_id:
            return
    _renew_workload(connection, workload_id)
