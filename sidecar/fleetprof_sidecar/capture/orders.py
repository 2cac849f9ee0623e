"""From the hub's Arm to what one process is asked: checked terms, the Kineto order, the agent's command."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from fleetprof_api.choices import Traces
from fleetprof_api.hub import hub_pb2
from fleetprof_api.kernel_class import read_kernel_classes
from fleetprof_api.ledger import RecordingEstimate
from fleetprof_api.limits import HIGHEST_RANK, LONGEST_WINDOW_NS, MOST_TRACE_BYTES
from fleetprof_api.report.recording import BLIND_ITERATION_BYTES, need_of

from fleetprof_sidecar.capture.process_capture import RecordedSpan, Terms, check_capture_id
from fleetprof_sidecar.processes.views import ProcessView, StepView
from fleetprof_sidecar.profiler import Profiler, StepStart, TimeStart, TraceOrder

# A window in iterations on a process whose iteration time nobody knows (no agent): cut to whole iterations afterwards.
_BLIND_WINDOW_NS: Final = 3_000_000_000
_FASTEST_SAMPLES_NS: Final = 10_000_000
_USUAL_SAMPLES_NS: Final = 200_000_000
_SLOWEST_SAMPLES_NS: Final = 10_000_000_000
_TRACES: Final = {hub_pb2.TRACES_SUMMARY: Traces.SUMMARY, hub_pb2.TRACES_AUTO: Traces.AUTO}


def read_terms(
    arm: hub_pb2.Arm,
    order: hub_pb2.Order,
    view: ProcessView | None,
    known: RecordingEstimate | None = None,
    recorded: Sequence[RecordedSpan] = (),
) -> Terms:
    """The terms that `arm`, which is within the limits, asks of one process, given how the process was last seen.

    `known`: what its last recording took; the hub's estimate counts first. `recorded`: when there were recordings.
    Raises ValueError naming the wrong field.
    """
    check_capture_id(arm.capture_id)
    if not 0 <= order.rank <= HIGHEST_RANK:
        raise ValueError(f"orders.rank {order.rank} must be from 0 to {HIGHEST_RANK}")
    if not 0 < len(order.process_id) <= 256:
        raise ValueError("orders.process_id must have 1 to 256 characters")
    start = arm.WhichOneof("start")
    if start is None:
        raise ValueError("start: first_step or start_unix_ns must be set")
    if (arm.window.iterations > 0) == (arm.window.duration_ns > 0):
        raise ValueError("window: exactly one of iterations and duration_ns must be above 0")
    if start == "first_step" and arm.window.iterations <= 0:
        raise ValueError("window.iterations must be set where the start is a step")
    step = view.step if view is not None else None
    estimate = _read_estimate(arm.estimate) if arm.HasField("estimate") else known
    terms = Terms(
        capture_id=arm.capture_id,
        process_id=order.process_id,
        rank=order.rank,
        pid=view.pid if view is not None else 0,
        uid=view.uid if view is not None else -1,
        has_agent=view is not None and view.has_agent,
        first_step=arm.first_step if start == "first_step" else None,
        start_unix_ns=arm.start_unix_ns if start == "start_unix_ns" else None,
        iterations=arm.window.iterations,
        warmup_iterations=arm.window.warmup_iterations,
        duration_ns=arm.window.duration_ns,
        steps_per_iteration=step.steps_per_iteration if step is not None else 1,
        iteration_ns=step.iteration_ns if step is not None else 0,
        mean_iteration_ns=step.mean_step_ns * step.steps_per_iteration if step is not None else 0,
        poll_interval_ns=view.poll_interval_ns if view is not None else 0,
        collect=list(arm.collect),
        activities=list(arm.activities),
        deliver_until_unix_ns=arm.deliver_until_unix_ns,
        give_up_unix_ns=arm.give_up_unix_ns,
        max_trace_bytes=arm.max_trace_bytes or MOST_TRACE_BYTES,
        max_slowdown_percent=arm.max_slowdown_percent,
        sample_interval_ns=sample_interval_ns(arm.sample_interval_ns),
        thread_samples=arm.thread_samples,
        traces=_TRACES.get(arm.traces, Traces.FULL),
        asked_iterations=arm.asked_iterations,
        canary=arm.canary,
        recorded=list(recorded),
        kernel_classes=read_kernel_classes((entry.pattern, entry.work_class) for entry in arm.kernel_classes),
        iteration_range=arm.iteration_range,
        ranks_here=max(1, len(arm.orders)),
    )
    iterations = _count_iterations(arm.window, step) + terms.marked_iterations
    need = None if estimate is None else need_of(estimate, iterations, options_of(arm))
    return msgspec.structs.replace(
        terms,
        memory_needed_bytes=need.memory_bytes if need is not None else _blind_bytes(arm.window),
        trace_needed_bytes=need.trace_bytes if need is not None else 0,
    )


def options_of(arm: hub_pb2.Arm) -> list[str]:
    """The names of all that makes a recording larger or smaller, as `Recording.options` has them."""
    return [*arm.collect, *arm.activities]


def _read_estimate(sent: hub_pb2.RecordingEstimate) -> RecordingEstimate:
    return RecordingEstimate(**{name: max(0, getattr(sent, name)) for name in RecordingEstimate.__struct_fields__})


def _blind_bytes(window: hub_pb2.Window) -> int:
    """Bytes where nothing is known: one iteration cannot be stopped in time, longer ones are the agent's to watch."""
    return BLIND_ITERATION_BYTES if window.iterations == 1 else 0


def _count_iterations(window: hub_pb2.Window, step: StepView | None) -> int:
    """The number of iterations that a window records at most; 1 where nobody knows how long one takes."""
    if window.iterations > 0:
        return window.iterations
    iteration_ns = step.iteration_ns if step is not None else 0
    return window.duration_ns // iteration_ns + 1 if iteration_ns > 0 else 1


def sample_interval_ns(asked_ns: int) -> int:
    """The capture's rate of device and host samples, within what is reasonable; 0 asks for the usual."""
    return min(_SLOWEST_SAMPLES_NS, max(_FASTEST_SAMPLES_NS, asked_ns)) if asked_ns > 0 else _USUAL_SAMPLES_NS


def window_ns(terms: Terms) -> int:
    """The length of the window, estimated where it is given in iterations."""
    if terms.duration_ns:
        return terms.duration_ns
    if terms.iteration_ns:
        # One iteration more: a start by time falls into the middle of one.
        return min(LONGEST_WINDOW_NS, (terms.iterations + 1) * terms.iteration_ns)
    return _BLIND_WINDOW_NS


def window_end_unix_ns(terms: Terms) -> int | None:
    """The end of a window by time, None for one by steps."""
    return None if terms.start_unix_ns is None else terms.start_unix_ns + window_ns(terms)


def build_order(terms: Terms, traces: Path, device_kind: str, profiler: Profiler) -> tuple[str, int]:
    """The text that the profiler is given, and until when it may be. Raises ValueError naming the field."""
    start: StepStart | TimeStart
    deliver_until = terms.deliver_until_unix_ns or terms.give_up_unix_ns
    if terms.first_step is not None:
        start = StepStart(
            first_step=terms.first_step,
            steps=terms.recorded_iterations * terms.steps_per_iteration,
            warmup_steps=terms.warmup_steps,
        )
    else:
        start = TimeStart(
            start_unix_ms=(terms.start_unix_ns or 0) // 1_000_000, duration_ms=max(1, window_ns(terms) // 1_000_000)
        )
        deliver_until = min(deliver_until, profiler.latest_delivery_unix_ns(start, device_kind))
    order = TraceOrder(
        output=str(traces / f"{terms.trace_id}.json"),
        trace_id=terms.trace_id,
        start=start,
        collect=terms.collect,
        activities=terms.activities,
        device_kind=device_kind,
    )
    return profiler.write_order(order), deliver_until


def agent_command(terms: Terms) -> dict[str, Any]:
    """The fields of the agent's `arm` (wire.py). A window by time has no steps: the agent only guards and samples."""
    start = terms.start_unix_ns
    return {
        "capture": terms.capture_id,
        "first_step": terms.first_step,
        "last_step": terms.last_step,
        "measured_step": terms.measured_step if terms.marked_iterations else None,
        "start_unix_ns": start,
        "end_unix_ns": window_end_unix_ns(terms),
        "memory_needed_bytes": terms.memory_needed_bytes,
        "ranks": terms.ranks_here,
        "sample_interval_ns": terms.sample_interval_ns,
        "until_unix_ns": terms.give_up_unix_ns,
        "device_counters": terms.device_counters,
        "thread_samples": terms.samples_thread,
    }


def cancel_command(terms: Terms) -> dict[str, Any]:
    """The fields of the agent's `cancel`."""
    return {
        "capture": terms.capture_id,
        "first_step": terms.first_step,
        "last_step": terms.last_step,
        "end_unix_ns": window_end_unix_ns(terms),
    }
