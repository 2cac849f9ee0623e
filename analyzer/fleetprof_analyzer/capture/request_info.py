"""The request, from request.json and ledger.json, in the report's words.

Guarantees: a request that cannot be read is an empty one, and costs its words only; works without pydantic (the
analyzer's image has none).
"""

import msgspec
from fleetprof_api.kernel_class import KernelClass, read_kernel_classes
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.report import RequestInfo
from fleetprof_api.stored_request import ProfileRequest, Target, Window


def read_request(data: bytes | None) -> ProfileRequest | None:
    """The request of a capture; None where the store has none."""
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=ProfileRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ProfileRequest()


def describe_request(
    profile_request: ProfileRequest | None, uid: str, namespace: str, ledger: Ledger | None
) -> RequestInfo:
    """The request as the report shows it; what is not known stays empty."""
    request = profile_request or ProfileRequest()
    ledger = ledger or Ledger(uid=uid, name="", namespace=namespace)
    window = request.spec.window or Window()
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
        collect=None if profile_request is None else request.spec.collect,
    )


def asked_kernel_classes(request: ProfileRequest | None) -> list[KernelClass]:
    """The classes of kernels that it asks for, in their order; entries that break the rules are left out."""
    analysis = None if request is None else request.spec.analysis
    entries = [] if analysis is None else analysis.kernel_classes
    return read_kernel_classes((entry.pattern, entry.class_.lower()) for entry in entries)


def asked_iteration_range(request: ProfileRequest | None) -> str:
    """The name of the range that bounds an iteration; "" where optimizer steps do."""
    iteration = None if request is None else request.spec.iteration
    return "" if iteration is None else iteration.range


def sends_chosen_traces(request: ProfileRequest | None) -> bool:
    """Tells if the store gets the traces of the ranks that the report chooses, once it is made (`traces: Auto`)."""
    return request is not None and request.spec.traces == "Auto"


def _target(target: Target) -> str:
    if target.workload is not None:
        return f"{target.workload.kind}/{target.workload.name}"
    if target.selector is None:
        return ""
    labels = [f"{key}={value}" for key, value in (target.selector.match_labels or {}).items()]
    expressions = len(target.selector.match_expressions or [])
    return ",".join(labels + ([f"{expressions} label expressions"] if expressions else []))
