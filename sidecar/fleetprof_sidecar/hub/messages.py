"""The sidecar's messages to the hub, made from its own views."""

from dataclasses import asdict
from typing import Final

import msgspec
from fleetprof_api.hub import hub_pb2
from fleetprof_api.ledger import Reason
from fleetprof_api.profiler import KINETO, ProfilerFacts

from fleetprof_sidecar.capture.process_capture import ProcessCapture
from fleetprof_sidecar.processes.roles import Role
from fleetprof_sidecar.processes.views import ProcessView
from fleetprof_sidecar.samples.device import DeviceReading
from fleetprof_sidecar.samples.host import HostReading

_ROLES: Final = {
    Role.TRAINER: hub_pb2.TRAINER,
    Role.LAUNCHER: hub_pb2.LAUNCHER,
    Role.WORKER: hub_pb2.WORKER,
}


def make_event(capture: ProcessCapture) -> hub_pb2.CaptureEvent:
    """Everything that the hub's ledger holds of this capture on this process."""
    return hub_pb2.CaptureEvent(
        capture_id=capture.terms.capture_id,
        process_id=capture.terms.process_id,
        rank=capture.terms.rank,
        state=hub_pb2.RankState.Value(capture.state.value),
        reason=capture.reason.value if capture.reason is not None else "",
        message=capture.message,
        asked_unix_ns=capture.asked_unix_ns,
        armed_unix_ns=capture.armed_unix_ns,
        started_unix_ns=capture.started_unix_ns,
        written_unix_ns=capture.written_unix_ns,
        uploaded_unix_ns=capture.uploaded_unix_ns,
        failed_unix_ns=capture.failed_unix_ns,
        trace_bytes=capture.trace_bytes,
        compressed_bytes=capture.trace.size_bytes if capture.trace is not None else 0,
        sha256=capture.trace.sha256 if capture.trace is not None else "",
        time_cost=None if capture.time_cost is None else hub_pb2.TimeCost(**msgspec.structs.asdict(capture.time_cost)),
        recording_cost=None if capture.cost is None else hub_pb2.RecordingCost(**msgspec.structs.asdict(capture.cost)),
    )


def make_refusal(
    arm: hub_pb2.Arm, order: hub_pb2.Order, reason: Reason, message: str, now_unix_ns: int
) -> hub_pb2.SidecarMessage:
    """The end of an order that could not even be taken down."""
    return hub_pb2.SidecarMessage(
        event=hub_pb2.CaptureEvent(
            capture_id=arm.capture_id,
            process_id=order.process_id,
            rank=order.rank,
            state=hub_pb2.FAILED,
            reason=reason.value,
            message=message,
            failed_unix_ns=now_unix_ns,
        )
    )


def make_process(view: ProcessView, profiler: ProfilerFacts = KINETO) -> hub_pb2.Process:
    """One process as the hub's registry shows it."""
    step = view.step
    return hub_pb2.Process(
        process_id=view.process_id,
        pid=view.pid,
        role=_ROLES.get(view.role, hub_pb2.ROLE_UNSPECIFIED),
        rank=view.rank,
        local_rank=view.local_rank,
        world_size=view.world_size,
        rank_source=hub_pb2.RankSource.Value(view.rank_source),
        polls_kineto=view.polls_kineto,
        has_agent=view.has_agent,
        agent_waits=view.agent_waits,
        busy=view.busy,
        torch_version=view.torch_version,
        python_version=view.python_version,
        device_kind=view.device_kind,
        device_name=view.device_name,
        first_seen_unix_ns=view.first_seen_unix_ns,
        last_poll_unix_ns=view.last_poll_unix_ns,
        poll_interval_ns=view.poll_interval_ns if view.polls_steadily else 0,
        poll_lateness_ns=view.poll_lateness_ns,
        restart_count=view.restart_count,
        memory_headroom_bytes=view.memory_headroom_bytes,
        profiler=None if profiler == KINETO else hub_pb2.Profiler(**asdict(profiler)),
        step=None
        if step is None
        else hub_pb2.StepState(
            step=step.step,
            at_unix_ns=step.at_unix_ns,
            iteration_ns=step.iteration_ns,
            steps_per_iteration=step.steps_per_iteration,
            fastest_iteration_ns=step.fastest_iteration_ns,
        ),
    )


def make_host_sample(reading: HostReading) -> hub_pb2.HostSample:
    """The host as in a heartbeat; unknown values are 0."""
    return hub_pb2.HostSample(
        at_unix_ns=reading.at_unix_ns,
        cpu_busy_permille=reading.cpu_busy_permille or 0,
        memory_available_bytes=reading.memory_available_bytes or 0,
        memory_total_bytes=reading.memory_total_bytes or 0,
    )


def make_device_sample(reading: DeviceReading) -> hub_pb2.DeviceSample:
    """A device as in a heartbeat; unknown values are 0."""
    values = reading.values
    return hub_pb2.DeviceSample(
        at_unix_ns=reading.at_unix_ns,
        device=reading.device,
        utilization_permille=values.get("utilization_permille") or 0,
        memory_used_bytes=values.get("memory_used_bytes") or 0,
        power_milliwatts=values.get("power_milliwatts") or 0,
    )
