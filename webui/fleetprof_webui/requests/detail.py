"""One request as it is in the store now: request.json and ledger.json in one answer.

Guarantees: what cannot be read is left out, never an error for the rest; times of the ledger are offsets from the
moment when it was submitted.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import yaml
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger, LedgerEntry
from fleetprof_api.report.report import UnreadableReport
from fleetprof_api.stored_request import ProfileRequest
from fleetprof_store.base import NotFound, Store

from fleetprof_webui.catalog.records import name_workload, request_row
from fleetprof_webui.models.model import unix_ns
from fleetprof_webui.models.requests import (
    CanaryState,
    ConditionRow,
    LedgerColumns,
    RankCounts,
    Request,
    RequestDetail,
    StageTimes,
)
from fleetprof_webui.problems import not_found
from fleetprof_webui.reports.reading import read_ledger, read_limited
from fleetprof_webui.reports.stored_files import has_report

_MOST_REQUEST_BYTES: Final = 1 << 20
_STAGES: Final = ("asked", "armed", "started", "written", "uploaded", "failed")


def read_detail(store: Store, namespace: str, uid: str, *, is_local: bool, may_cancel: bool) -> RequestDetail:
    """One request; `is_local`: of this machine, without a cluster.

    Raises RequestRefused where the store has neither request nor ledger, StoreError.
    """
    document = read_document(store, namespace, uid)
    found = read_ledger(store, namespace, uid)
    if document is None and found is None:
        raise not_found("request")
    ledger, version = found if found is not None else (None, "")
    request = describe_request(store, namespace, uid, ledger, document)
    stored_request = _read_request(document)
    asks_for_stacks = stored_request is not None and stored_request.spec.capture is not None
    return RequestDetail(
        request=request,
        version=version,
        yaml=_as_yaml(document),
        command=_command(namespace, is_local=is_local) if document else "",
        next_step=_next_step(request, asks_for_stacks=asks_for_stacks),
        conditions=list_conditions(ledger),
        stages=list_stages(ledger),
        canary=_canary(ledger),
        ledger=columns(ledger.entries, ledger.submitted_unix_ns) if ledger else columns([], 0),
        asks_for_stacks=asks_for_stacks,
        may_cancel=may_cancel and not request.finished,
    )


def _command(namespace: str, *, is_local: bool) -> str:
    """Asks for the same, where the YAML is saved as request.yaml."""
    return "fleetprof capture -f request.yaml" if is_local else f"kubectl apply -n {namespace} -f request.yaml"


def check_request(store: Store, namespace: str, uid: str) -> None:
    """Raises RequestRefused where the store has neither request nor ledger, StoreError."""
    for key in (keys.request_key(namespace, uid), keys.ledger_key(namespace, uid)):
        try:
            store.head(key)
        except NotFound:
            continue
        return
    raise not_found("request")


def describe_request(store: Store, namespace: str, uid: str, ledger: Ledger | None, document: bytes | None) -> Request:
    """The request as a row of a list. Raises StoreError."""
    kind, workload = name_workload(_read_request(document), ledger, uid)
    row = dict(request_row(ledger, uid))
    counts = {name: row.pop(name) for name in RankCounts.__struct_fields__}
    submitted, completed = row.pop("submitted_unix_ns"), row.pop("completed_unix_ns")
    return Request(
        namespace=namespace,
        uid=uid,
        kind=kind,
        workload=workload,
        ranks=RankCounts(**counts),
        submitted_unix_ns=unix_ns(submitted),
        completed_unix_ns=unix_ns(completed),
        has_report=has_report(store, namespace, uid),
        **row,
    )


def list_conditions(ledger: Ledger | None) -> list[ConditionRow]:
    """The conditions as the ledger has them; none without a ledger."""
    return [
        ConditionRow(
            type=one.type,
            status=one.status,
            reason=one.reason,
            message=one.message,
            transition_unix_ns=unix_ns(one.transition_unix_ns),
        )
        for one in (ledger.conditions if ledger else [])
    ]


def list_stages(ledger: Ledger | None) -> list[StageTimes]:
    """The times at which each stage was first and last reached."""
    if ledger is None:
        return []
    stages = [_stage(name, ledger.entries, ledger.submitted_unix_ns) for name in _STAGES]
    completed = _after(ledger.completed_unix_ns, ledger.submitted_unix_ns)
    return [*stages, StageTimes(stage="completed", first_ns=completed, last_ns=completed, ranks=0)]


def columns(entries: Sequence[LedgerEntry], submitted_unix_ns: int) -> LedgerColumns:
    """Lines of a ledger by columns."""

    def times(stage: str) -> list[int | None]:
        return [_after(getattr(entry, f"{stage}_unix_ns"), submitted_unix_ns) for entry in entries]

    return LedgerColumns(
        rank=[entry.rank for entry in entries],
        process_id=[entry.process_id for entry in entries],
        state=[entry.state.value for entry in entries],
        reason=[entry.reason.value if entry.reason is not None else "" for entry in entries],
        message=[entry.message for entry in entries],
        node_name=[entry.node_name for entry in entries],
        pod_name=[entry.pod_name for entry in entries],
        asked_ns=times("asked"),
        armed_ns=times("armed"),
        started_ns=times("started"),
        written_ns=times("written"),
        uploaded_ns=times("uploaded"),
        failed_ns=times("failed"),
        trace_bytes=[entry.trace_bytes for entry in entries],
        compressed_bytes=[entry.compressed_bytes for entry in entries],
    )


def read_document(store: Store, namespace: str, uid: str) -> bytes | None:
    """request.json; None where there is none. Raises StoreError."""
    try:
        return read_limited(store, keys.request_key(namespace, uid), _MOST_REQUEST_BYTES)
    except (NotFound, UnreadableReport):
        return None


def _read_request(document: bytes | None) -> ProfileRequest | None:
    try:
        return None if document is None else msgspec.json.decode(document, type=ProfileRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _as_yaml(document: bytes | None) -> str:
    try:
        decoded = msgspec.json.decode(document or b"")
        return yaml.safe_dump(decoded, sort_keys=False, allow_unicode=False)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, yaml.YAMLError):
        return ""


def _canary(ledger: Ledger | None) -> CanaryState | None:
    canary = ledger.canary if ledger else None
    if canary is None:
        return None
    return CanaryState(
        verdict=canary.verdict.value, message=canary.message, rank=canary.entry.rank if canary.entry else None
    )


def _stage(name: str, entries: Sequence[LedgerEntry], submitted_unix_ns: int) -> StageTimes:
    reached = [at for entry in entries if (at := getattr(entry, f"{name}_unix_ns"))]
    return StageTimes(
        stage=name,
        first_ns=_after(min(reached, default=0), submitted_unix_ns),
        last_ns=_after(max(reached, default=0), submitted_unix_ns),
        ranks=len(reached),
    )


def _after(at_unix_ns: int, submitted_unix_ns: int) -> int | None:
    return at_unix_ns - submitted_unix_ns if at_unix_ns and submitted_unix_ns else None


def _next_step(request: Request, *, asks_for_stacks: bool) -> str:
    if request.has_report:
        return f"read the report: /reports/{request.namespace}/{request.uid}"
    if not request.finished:
        return "wait: this page follows the capture, rank by rank"
    if asks_for_stacks:
        return ""
    if request.ranks.uploaded:
        return "the traces are uploaded, and there is no report of them: see the message"
    return "no rank was captured: each line says why; /docs/reasons.html says what to do"
