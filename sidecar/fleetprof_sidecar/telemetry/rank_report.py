"""One trainer's telemetry out of what its agent says: differences between two reports.

Guarantees: pure, time is passed in; a value that nobody told is absent, never 0; a counter that goes backwards (a
restarted driver, another device) counts as no news.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb

from fleetprof_sidecar.processes.views import ProcessView, StepView

SECOND_NS: Final = 10**9
DEVICE_STALE_NS: Final = 60 * SECOND_NS
"""A device that was not sampled for so long is unknown: the agent samples in the optimizer step, and none came."""
_MOST_RATE_MICROHERTZ: Final = 10**6 * 10**6
_FIELDS: Final = {
    "utilization_permille": "gpu_busy_permille",
    "sm_active_permille": "gpu_sm_active_permille",
    "sm_occupancy_permille": "gpu_sm_occupancy_permille",
    "tensor_active_permille": "gpu_tensor_active_permille",
    "dram_active_permille": "gpu_dram_active_permille",
    "memory_used_bytes": "gpu_memory_used_bytes",
    "memory_bytes": "gpu_memory_bytes",
    "power_milliwatts": "gpu_power_milliwatts",
    "temperature_celsius": "gpu_temperature_celsius",
    "sm_clock_megahertz": "gpu_sm_clock_megahertz",
    "memory_clock_megahertz": "gpu_memory_clock_megahertz",
    "throttle_reasons": "gpu_throttle_reasons",
    "ecc_corrected": "gpu_ecc_corrected",
    "ecc_uncorrected": "gpu_ecc_uncorrected",
    "nvlink_received_bytes_per_s": "gpu_nvlink_received_bytes_per_s",
    "nvlink_sent_bytes_per_s": "gpu_nvlink_sent_bytes_per_s",
    "pcie_received_bytes_per_s": "gpu_pcie_received_bytes_per_s",
    "pcie_sent_bytes_per_s": "gpu_pcie_sent_bytes_per_s",
}
_INT32: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DeviceState:
    """A rank's device as it was sampled. `step`: optimizer steps by then; None: nobody counted."""

    at_unix_ns: int
    step: int | None
    values: Mapping[str, int]
    is_exported: bool = False  # told by the node's exporter, not by the agent

    def energy_since(self, before: "DeviceState | None") -> int | None:
        """Millijoules used since an earlier sample; None where the counter is not there or went backwards."""
        now = self.values.get("energy_millijoules")
        then = before.values.get("energy_millijoules") if before is not None else None
        return None if now is None or then is None or now < then else now - then


class RankReport:
    """The telemetry of one process, as differences from report to report."""

    def __init__(self) -> None:
        self._steps: StepView | None = None
        self._rate_microhertz: int | None = None
        self._device: DeviceState | None = None
        self._device_before: DeviceState | None = None
        self._last_of_device: DeviceState | None = None
        self._exported: DeviceState | None = None

    def note_device(self, state: DeviceState) -> None:
        """Takes a sample of its device; one that is not newer than the latest is dropped."""
        if self._device is None or state.at_unix_ns > self._device.at_unix_ns:
            self._device_before, self._device = self._device, state

    def note_exported(self, at_unix_ns: int, values: Mapping[str, int]) -> None:
        """Takes what the node's exporter says of its device: for what its own samples lack, or for all of them.

        The exporter samples at times of its own, so it tells nothing of single iterations.
        """
        own = self._device
        self._exported = DeviceState(at_unix_ns, None, values, is_exported=True)
        if own is None or own.is_exported or at_unix_ns - own.at_unix_ns > DEVICE_STALE_NS:
            self.note_device(self._exported)

    def has(self, value: str) -> bool:
        """Tells whether its device's samples have this value."""
        return any(state is not None and value in state.values for state in (self._device, self._exported))

    def make(self, view: ProcessView, now_unix_ns: int) -> pb.RankTelemetry:
        """The report of now."""
        message = pb.RankTelemetry(process_id=view.process_id)
        if (step := view.step) is not None:
            span = max(1, step.steps_per_iteration)
            message.iterations = step.step // span
            message.last_iteration_unix_ns = step.at_unix_ns
            if step.iteration_ns:
                message.iteration_ns = step.iteration_ns
            if (rate := self._measure_rate(step, span, now_unix_ns)) is not None:
                message.iteration_rate_microhertz = rate
        if self._exported is not None and now_unix_ns - self._exported.at_unix_ns > DEVICE_STALE_NS:
            self._exported = None
        if self._device is not None and now_unix_ns - self._device.at_unix_ns <= DEVICE_STALE_NS:
            self._add_device(message, self._device, view)
        return message

    def _measure_rate(self, step: StepView, span: int, now_unix_ns: int) -> int | None:
        """Iterations per second since the report before, in millionths.

        While no iteration ends it is what the next one would make it if it ended now, so it falls towards 0.
        """
        before, self._steps = self._steps, step
        if before is not None and step.step > before.step and step.at_unix_ns > before.at_unix_ns:
            rate = (step.step - before.step) * 10**15 // (span * (step.at_unix_ns - before.at_unix_ns))
            self._rate_microhertz = min(rate, _MOST_RATE_MICROHERTZ)
        elif before is None or step.step < before.step:
            # The first report: what the agent measured before it.
            self._rate_microhertz = 10**15 // step.iteration_ns if step.iteration_ns else None
        # The agent says once a second where the training stands.
        silent_ns = now_unix_ns - step.at_unix_ns - 2 * SECOND_NS
        if self._rate_microhertz is not None and silent_ns > 0:
            return min(self._rate_microhertz, 10**15 // silent_ns)
        return self._rate_microhertz

    def _add_device(self, message: pb.RankTelemetry, device: DeviceState, view: ProcessView) -> None:
        exported = self._exported.values if self._exported is not None else {}
        for source, field in _FIELDS.items():
            if (value := device.values.get(source, exported.get(source))) is not None:
                wide = field.endswith(("_bytes", "_bytes_per_s", "_milliwatts", "_reasons", "corrected"))
                setattr(message, field, value if wide else min(value, _INT32))
        last, self._last_of_device = self._last_of_device, device
        if last is not device and (energy := device.energy_since(last)) is not None:
            message.gpu_energy_millijoules = energy
        before = self._device_before
        if before is None or before.step is None or device.step is None or view.step is None:
            return
        energy, steps = device.energy_since(before), device.step - before.step
        if energy is not None and steps > 0:
            message.gpu_iteration_energy_millijoules = energy * max(1, view.step.steps_per_iteration) // steps
