"""The messages that a request sends down to sidecars, made from its ledger alone, so that they can be repeated."""

from collections.abc import Sequence
from typing import Final

import msgspec
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Ledger, LedgerEntry, Reason
from fleetprof_api.request import Collect, Spec, ThreadSampling, Traces, plain_classes

from fleetprof_operator.hub.planning.plan import Plan
from fleetprof_operator.hub.settings import HubSettings

_TRACES: Final = {
    Traces.FULL: pb.TRACES_FULL,
    Traces.SUMMARY: pb.TRACES_SUMMARY,
    Traces.AUTO: pb.TRACES_AUTO,
}


def build_arm(
    ledger: Ledger, spec: Spec, entries: Sequence[LedgerEntry], give_up_unix_ns: int, settings: HubSettings
) -> pb.HubMessage:
    """The order for one sidecar's ranks; `entries` are their lines."""
    window, limits = spec.recorded, spec.limits
    iterations = ledger.iterations or window.iterations or 0
    by_time = ledger.start_mode == "time"
    arm = pb.Arm(
        capture_id=ledger.uid,
        orders=[pb.Order(process_id=entry.process_id, rank=entry.rank) for entry in entries],
        window=pb.Window(
            iterations=0 if by_time else iterations,
            warmup_iterations=0 if by_time else window.warmup_iterations or 0,
            duration_ns=ledger.duration_ns if by_time else 0,
        ),
        collect=[item.value for item in spec.collect],
        activities=[item.value for item in spec.activities],
        deliver_until_unix_ns=ledger.deliver_until_unix_ns,
        give_up_unix_ns=give_up_unix_ns,
        max_trace_bytes=limits.max_trace_bytes,
        max_slowdown_percent=limits.max_slowdown_percent,
        sample_interval_ns=(
            settings.dense_sample_interval_ns if Collect.DEVICE_METRICS in spec.collect else settings.sample_interval_ns
        ),
        traces=_TRACES[spec.traces],
        asked_iterations=iterations,
        iteration_range=spec.iteration.range if spec.iteration is not None else "",
        kernel_classes=[
            pb.KernelClass(pattern=entry.pattern, work_class=entry.work_class)
            for entry in plain_classes(spec.analysis.kernel_classes if spec.analysis is not None else [])
        ],
        # They name the same files and functions that stacks do.
        thread_samples=spec.thread_samples is ThreadSampling.AUTO
        and Collect.STACKS in settings.bounds.of(ledger.namespace).collect,
    )
    if ledger.estimate is not None:
        arm.estimate.CopyFrom(pb.RecordingEstimate(**msgspec.structs.asdict(ledger.estimate)))
    if by_time:
        arm.start_unix_ns = ledger.start_unix_ns or 0
    else:
        arm.first_step = ledger.first_step or 0
    return pb.HubMessage(arm=arm)


def build_canary(
    capture_id: str, plan: Plan, entry: LedgerEntry, spec: Spec, give_up_unix_ns: int, settings: HubSettings
) -> pb.HubMessage:
    """The order for one rank to record one iteration first."""
    return pb.HubMessage(
        arm=pb.Arm(
            capture_id=capture_id,
            orders=[pb.Order(process_id=entry.process_id, rank=entry.rank)],
            window=pb.Window(iterations=1),
            collect=[item.value for item in spec.collect],
            activities=[item.value for item in spec.activities],
            first_step=plan.first_step or 0,
            deliver_until_unix_ns=plan.deliver_until_unix_ns,
            give_up_unix_ns=give_up_unix_ns,
            max_trace_bytes=spec.limits.max_trace_bytes,
            max_slowdown_percent=spec.limits.max_slowdown_percent,
            sample_interval_ns=settings.sample_interval_ns,
            asked_iterations=1,
            canary=True,
        )
    )


def build_fetch(uid: str, process_ids: Sequence[str]) -> pb.HubMessage:
    """Asks for traces that wait beside their trainers."""
    return pb.HubMessage(fetch_traces=pb.FetchTraces(capture_id=uid, process_ids=process_ids))


def build_cancel(uid: str, reason: Reason, message: str) -> pb.HubMessage:
    """Takes a capture back as far as that goes."""
    return pb.HubMessage(cancel=pb.Cancel(capture_id=uid, reason=reason, message=message))


def build_release(uid: str) -> pb.HubMessage:
    """The ledger holds the capture's end."""
    return pb.HubMessage(release=pb.Release(capture_id=uid))
