"""This sidecar's words to the hub, and the takers of the hub's: the sidecar's side of `hub.link`."""

import socket
import time

from fleetprof_api.hub import hub_pb2
from fleetprof_api.process.version import VERSION
from fleetprof_api.profiler import KINETO, ProfilerFacts

from fleetprof_sidecar.captures.controller import CaptureController
from fleetprof_sidecar.captures.work import CaptureWork
from fleetprof_sidecar.delivery.upload_connections import UploadConnections
from fleetprof_sidecar.hub.link import PROTOCOL_VERSION
from fleetprof_sidecar.hub.messages import make_device_sample, make_host_sample, make_process
from fleetprof_sidecar.labels import read_labels
from fleetprof_sidecar.obstacles import Obstacles
from fleetprof_sidecar.processes.ports import Processes
from fleetprof_sidecar.samples.sampler import Sampler
from fleetprof_sidecar.settings import Settings
from fleetprof_sidecar.stacks.collector import StackCollector
from fleetprof_sidecar.telemetry.reporter import TelemetryReporter


class SidecarConversation:
    """Tells the hub of processes, samples and captures as they are when it is told; `captures` hears the hub."""

    def __init__(
        self,
        settings: Settings,
        sidecar_id: str,
        processes: Processes,
        sampler: Sampler,
        work: CaptureWork,
        captures: CaptureController,
        telemetry: TelemetryReporter,
        uploads: UploadConnections,
        obstacles: Obstacles,
        stacks: StackCollector,
        profiler: ProfilerFacts = KINETO,
    ) -> None:
        self._settings = settings
        self._sidecar_id = sidecar_id
        self._processes = processes
        self._sampler = sampler
        self._work = work
        self._captures = captures
        self._telemetry = telemetry
        self._uploads = uploads
        self._obstacles = obstacles
        self._stacks = stacks
        self._profiler = profiler

    def make_hello(self) -> hub_pb2.Hello:
        """The identity of this sidecar, and all that it holds."""
        settings = self._settings
        workload = settings.workload
        return hub_pb2.Hello(
            protocol_version=PROTOCOL_VERSION,
            sidecar_id=self._sidecar_id,
            identity=hub_pb2.Identity(
                namespace=settings.namespace,
                pod_name=settings.pod_name,
                pod_uid=settings.pod_uid,
                node_name=settings.node_name,
                host_name=socket.gethostname(),
                workload=None
                if workload is None
                else hub_pb2.Workload(api_version=workload.api_version, kind=workload.kind, name=workload.name),
                labels=read_labels(settings.labels_file) | settings.labels,
            ),
            processes=[make_process(view, self._profiler) for view in self._processes.snapshot()],
            held=self._captures.held_events(),
            at_unix_ns=time.time_ns(),
            version=VERSION,
        )

    def make_heartbeat(self) -> hub_pb2.Heartbeat:
        """The processes, and the latest samples of host and devices."""
        return hub_pb2.Heartbeat(
            at_unix_ns=time.time_ns(),
            processes=[make_process(view, self._profiler) for view in self._processes.snapshot()],
            host=make_host_sample(self._sampler.latest_host),
            devices=[make_device_sample(reading) for reading in self._sampler.latest_devices],
        )

    def receive(self, message: hub_pb2.HubMessage) -> None:
        """Hands a message to whom it is for: stacks, or a capture."""
        if message.WhichOneof("body") == "read_stacks":
            self._stacks.ask(message.read_stacks.question)
        else:
            self._captures.receive(message)

    def note_connected(self, welcome: hub_pb2.Welcome) -> None:
        """Let waiting uploads ask again, trust whom this hub names, take its interval of telemetry, compare clocks."""
        self._obstacles.compare_clocks(welcome.at_unix_ns, time.time_ns())
        self._telemetry.set_interval(welcome.telemetry_interval_ns)
        self._uploads.trust(welcome.store_authority)
        self._work.ask_again()
