"""What was asked, from request.json and ledger.json, in the report's words.

Guarantees: a request that cannot be read costs these words only; works without pydantic (the analyzer's image has
none).
"""

import msgspec
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.report import RequestInfo


class _Workload(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _Selector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: list[msgspec.Raw] | None = None


class _Target(msgspec.Struct):
    workload: _Workload | None = None
    selector: _Selector | None = None


class _Window(msgspec.Struct, rename="camel"):
    iterations: int | None = None
    duration_millis: int | None = None


class _Spec(msgspec.Struct):
    target: _Target = msgspec.field(default_factory=_Target)
    window: _Window = msgspec.field(default_factory=_Window)
    collect: list[str] = []


class _Metadata(msgspec.Struct):
    name: str | None = None


class _Request(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


def describe_request(data: bytes | None, uid: str, namespace: str, ledger: Ledger | None) -> RequestInfo:
    """The request as the report shows it; what is not known stays empty."""
    try:
        request = msgspec.json.decode(data or b"{}", type=_Request)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        request = _Request()
    ledger = ledger or Ledger(uid=uid, name="", namespace=namespace)
    window = request.spec.window
    return RequestInfo(
        uid=uid,
        name=ledger.name or request.metadata.name or "",
        namespace=namespace,
        target=_target(request.spec.target),
        start_mode=ledger.start_mode,
        asked_first_step=ledger.first_step if ledger.start_mode == "step" else None,
        asked_start_unix_ns=ledger.start_unix_ns if ledger.start_mode == "time" else None,
        asked_iterations=window.iterations,
        asked_duration_ns=None if window.duration_millis is None else window.duration_millis * 1_000_000,
        submitted_unix_ns=ledger.submitted_unix_ns,
        armed_unix_ns=ledger.armed_unix_ns,
        completed_unix_ns=ledger.completed_unix_ns,
        outcome=ledger.outcome,
        message=ledger.message,
        requester=ledger.requester,
        collect=None if data is None else request.spec.collect,
    )


def _target(target: _Target) -> str:
    if target.workload is not None:
        return f"{target.workload.kind}/{target.workload.name}"
    if target.selector is None:
        return ""
    labels = [f"{key}={value}" for key, value in (target.selector.match_labels or {}).items()]
    expressions = len(target.selector.match_expressions or [])
    return ",".join(labels + ([f"{expressions} label expressions"] if expressions else []))
