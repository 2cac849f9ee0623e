"""Tells the hub regularly what the trainers do: one message for all of them, at the rate that the hub asks for.

Guarantees: nothing is sent to a hub that has not asked; nothing is read when nothing is sent; an error of ours costs
one report and is logged.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from fleetprof_api.hub import hub_pb2 as pb

from fleetprof_sidecar.hub.outbox import HubSender
from fleetprof_sidecar.processes.events import AgentMessage, Gone, ProcessEvent
from fleetprof_sidecar.processes.ports import Processes
from fleetprof_sidecar.processes.roles import Role
from fleetprof_sidecar.processes.views import ProcessView
from fleetprof_sidecar.samples.device import DeviceReading
from fleetprof_sidecar.telemetry.host_report import HostReport
from fleetprof_sidecar.telemetry.rank_report import DeviceState, RankReport

if TYPE_CHECKING:
    from fleetprof_sidecar.telemetry.dcgm_exporter import DcgmExporter

LEAST_INTERVAL_NS: Final = 10**9
"""The agent tells once a second where the training stands; more reports would repeat themselves."""
_MOST_INTERVAL_NS: Final = 600 * 10**9
_DEVICE_SOURCES: Final = {
    pb.GPU: "utilization_permille",
    pb.GPU_ACTIVITY: "sm_active_permille",
    pb.GPU_ENERGY: "energy_millijoules",
}

log = logging.getLogger(__name__)


class LatestDevices(Protocol):
    """The sidecar's own samples of devices: `Sampler`."""

    @property
    def latest_devices(self) -> Sequence[DeviceReading]:
        """The devices of the last sample; empty where no device is sampled now."""


class TelemetryReporter:
    """Sends while `run` runs and the hub wants it. `devices`: the sidecar's own samples, for ranks without an agent.

    `exporter` is asked for what neither of them has.
    """

    def __init__(
        self,
        processes: Processes,
        hub: HubSender,
        devices: LatestDevices,
        host: HostReport | None = None,
        exporter: "DcgmExporter | None" = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._processes = processes
        self._hub = hub
        self._devices = devices
        self._host = host or HostReport()
        self._exporter = exporter
        self._clock = clock
        self._reports: dict[str, RankReport] = {}
        self._interval_ns = 0
        self._changed = asyncio.Event()

    def set_interval(self, interval_ns: int) -> None:
        """The hub asks for a report so often; 0: for none."""
        self._interval_ns = min(_MOST_INTERVAL_NS, max(LEAST_INTERVAL_NS, interval_ns)) if interval_ns > 0 else 0
        self._changed.set()

    def on_process_event(self, event: ProcessEvent) -> None:
        """Keeps the latest telemetry of each rank's agent, and drops that of processes that are gone."""
        if isinstance(event, Gone):
            self._reports.pop(event.process_id, None)
        elif isinstance(event, AgentMessage) and event.fields["t"] == "telemetry":
            state = DeviceState(event.fields["at_unix_ns"], event.fields["step"], event.fields["values"])
            self._reports.setdefault(event.process_id, RankReport()).note_device(state)

    async def run(self) -> None:
        """Reports until cancelled."""
        while True:
            self._changed.clear()
            if not self._interval_ns:
                await self._changed.wait()
                continue
            try:
                async with asyncio.timeout(self._interval_ns / 1e9):
                    await self._changed.wait()
            except TimeoutError:
                try:
                    self._hub.send(pb.SidecarMessage(telemetry=self.make()))
                except Exception:
                    log.exception("a telemetry report could not be made")

    def make(self) -> pb.Telemetry:
        """The report of now."""
        now = self._clock()
        views = [view for view in self._processes.snapshot() if view.role is Role.TRAINER]
        self._reports = {view.process_id: self._reports.get(view.process_id) or RankReport() for view in views}
        self._take_own_samples()
        self._take_exported(views)
        ranks = [self._reports[view.process_id].make(view, now) for view in views]
        host, unreadable = self._host.make(now)
        unreadable.add(pb.INSTRUCTIONS)
        for source, value in _DEVICE_SOURCES.items():
            if not any(report.has(value) for report in self._reports.values()):
                unreadable.add(source)
        return pb.Telemetry(at_unix_ns=now, ranks=ranks, host=host, unreadable=sorted(unreadable))

    def wants_exporter(self) -> bool:
        """Tells whether the hub wants telemetry, and a trainer is here that may have a GPU of NVIDIA's."""
        return self._interval_ns > 0 and any(
            view.role is Role.TRAINER and view.device_kind in ("", "cuda") for view in self._processes.snapshot()
        )

    def _take_exported(self, views: Sequence[ProcessView]) -> None:
        if self._exporter is None:
            return
        alone = len(views) == 1
        for view in views:
            # Without its UUID a GPU is known by its pod, and a rank as the pod's only one.
            if view.device_kind in ("", "cuda") and (view.device_uuid or alone):
                found = self._exporter.find(view.device_uuid)
                if found is not None:
                    self._reports[view.process_id].note_exported(*found)

    def _take_own_samples(self) -> None:
        own = {reading.device: reading for reading in self._devices.latest_devices}
        for process_id, report in self._reports.items() if own else ():
            view = self._processes.get(process_id)
            if view is None or view.has_agent or view.local_rank is None or view.local_rank not in own:
                continue
            reading = own[view.local_rank]
            values = {name: value for name, value in reading.values.items() if value is not None}
            report.note_device(DeviceState(reading.at_unix_ns, None, values))
