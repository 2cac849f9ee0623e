"""`fleetprof-sidecar`: joins the trainers' side, the captures and the link to the hub, and ends them in order.

Exit codes: 0 ended as asked (SIGTERM, SIGINT); 2 wrong settings; 3 the socket directory or the spool is unusable or
taken by another sidecar; 1 an error of its own. Whatever the exit, no socket stays behind, except after SIGKILL.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from fleetprof_api.memory_shortage import SERVICE, go_first
from fleetprof_api.pods import read_samples_per_iteration
from fleetprof_api.private_directory import PrivateDirectory
from fleetprof_api.process.log import set_up_logging

from fleetprof_sidecar.capture.recording_history import RecordingHistory
from fleetprof_sidecar.captures.controller import CaptureController
from fleetprof_sidecar.captures.traces_directory import TracesDirectory
from fleetprof_sidecar.captures.work import CaptureWork
from fleetprof_sidecar.conversation import SidecarConversation
from fleetprof_sidecar.delivery.spool import Spool, SpoolBusy
from fleetprof_sidecar.delivery.upload_connections import UploadConnections
from fleetprof_sidecar.delivery.upload_threads import UploadThreads
from fleetprof_sidecar.hub.address import LocalHub
from fleetprof_sidecar.hub.link import HubLink
from fleetprof_sidecar.hub.outbox import Outbox
from fleetprof_sidecar.labels import read_labels
from fleetprof_sidecar.obstacles import Obstacles
from fleetprof_sidecar.processes.events import BusyChanged, Changed, Gone, OwnProfileBegan, ProcessEvent
from fleetprof_sidecar.samples.device import NvmlSource
from fleetprof_sidecar.samples.host import HostSource
from fleetprof_sidecar.samples.rank_recorders import RankRecorders
from fleetprof_sidecar.samples.rank_samples import PodFacts
from fleetprof_sidecar.samples.sampler import Sampler
from fleetprof_sidecar.settings import Settings, read_settings
from fleetprof_sidecar.stacks.collector import StackCollector
from fleetprof_sidecar.telemetry.reporter import TelemetryReporter
from fleetprof_sidecar.trainer_side import TrainerSide

if TYPE_CHECKING:
    from fleetprof_sidecar.telemetry.dcgm_exporter import DcgmExporter

UNUSABLE: Final = 3
SPOOL_BYTES: Final = 4 << 30
"""The most bytes of finished traces on disk."""
_FAREWELL_S: Final = 3.0

log = logging.getLogger(__name__)


class Sidecar:
    """All of it, made in the order of who needs whom; `run` returns after `stop` was set."""

    def __init__(self, settings: Settings, trainers: TrainerSide, spool: Spool) -> None:
        self._settings = settings
        self._sidecar_id = spool.sidecar_id
        self._trainers = trainers
        connections = UploadConnections(settings.hub, settings.store_addresses)
        self._uploads = UploadThreads(spool, connections)
        outbox = Outbox()
        recorders = RankRecorders(trainers.table)
        self._sampler = Sampler(HostSource(), NvmlSource(), recorders)
        traces = TracesDirectory(trainers.directory.traces, profiler=trainers.profiler)
        self._work = CaptureWork(
            processes=trainers.table,
            traces=traces,
            spool=spool,
            sampler=self._sampler,
            recorders=recorders,
            hub=outbox,
            uploads=self._uploads,
            pod=partial(_describe_pod, settings),
        )
        self._captures = CaptureController(
            processes=trainers.table,
            traces=traces,
            spool=spool,
            work=self._work,
            recorders=recorders,
            hub=outbox,
            history=RecordingHistory(),
            storage_limit_bytes=settings.storage_limit_bytes,
        )
        self._exporter = _make_exporter(settings)
        self._telemetry = TelemetryReporter(trainers.table, outbox, self._sampler, exporter=self._exporter)
        self._obstacles = Obstacles(settings.node_name)
        self._stacks = StackCollector(trainers.table, trainers.ask_for_stacks, outbox)
        conversation = SidecarConversation(
            settings,
            spool.sidecar_id,
            trainers.table,
            self._sampler,
            self._work,
            self._captures,
            self._telemetry,
            connections,
            self._obstacles,
            self._stacks,
            trainers.profiler.facts,
        )
        self._link = HubLink(settings.hub, outbox, conversation)

    async def run(self, stop: asyncio.Event) -> None:
        """Serves until `stop`, then lets finished traces leave within the grace period."""
        take = partial(_call_soon, asyncio.get_running_loop(), self._on_process_event)
        self._trainers.table.events.subscribe(take)
        self._trainers.start()
        log.info("serving %s as sidecar %s", self._settings.directory, self._sidecar_id)
        self._captures.restore()
        parts = [self._captures.run(), self._sampler.run(), self._telemetry.run()]
        if self._exporter is not None:
            parts.append(self._exporter.run(self._telemetry.wants_exporter))
        tasks = [asyncio.create_task(part) for part in [*parts, self._link.run()]]
        ending = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait([*tasks, ending], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {ending}:
                task.result()
            log.info("ending: waiting at most %g s for uploads", self._settings.grace_seconds)
            await self._captures.drain(self._settings.grace_seconds, ends_with_pod=self._settings.ends_with_pod)
            self._link.finish()
            if self._link.is_connected:
                await asyncio.wait([tasks[-1]], timeout=_FAREWELL_S)
        finally:
            for task in [*tasks, ending]:
                task.cancel()
            await asyncio.gather(*tasks, ending, return_exceptions=True)
            await self._stacks.close()
            await self._work.close()
            self._uploads.close()

    def _on_process_event(self, event: ProcessEvent) -> None:
        self._captures.on_process_event(event)
        self._telemetry.on_process_event(event)
        self._stacks.on_process_event(event)
        if isinstance(event, Changed):
            self._obstacles.look_at(self._trainers.table.get(event.process_id))
        if isinstance(event, Changed | Gone | BusyChanged | OwnProfileBegan):
            self._link.beat_soon()


def _make_exporter(settings: Settings) -> "DcgmExporter | None":
    if not settings.dcgm_url:
        return None
    from fleetprof_sidecar.telemetry.dcgm_exporter import DcgmExporter

    return DcgmExporter(settings.dcgm_url, settings.namespace, settings.pod_name)


def _describe_pod(settings: Settings) -> PodFacts:
    labels = read_labels(settings.labels_file) | settings.labels
    return PodFacts(socket.gethostname(), settings.node_name, read_samples_per_iteration(labels))


def _call_soon(loop: asyncio.AbstractEventLoop, take: Callable[[ProcessEvent], None], event: ProcessEvent) -> None:
    # The endpoints are ended after the loop: their last events have nowhere to go.
    if not loop.is_closed():
        loop.call_soon_threadsafe(take, event)


async def _serve(settings: Settings, trainers: TrainerSide, spool: Spool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await Sidecar(settings, trainers, spool).run(stop)


def main() -> None:
    """Runs the sidecar until SIGTERM or SIGINT."""
    go_first(SERVICE)
    settings = read_settings(sys.argv[1:])
    set_up_logging(settings.log_level)
    code = 0
    try:
        if isinstance(settings.hub, LocalHub):
            settings.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            PrivateDirectory(settings.directory).close()  # on a machine with other users: this one's, or none
        trainers = TrainerSide(
            settings.directory, command_launches=settings.command_launches, agent=settings.agent_directory
        )
        spool = Spool(settings.spool, SPOOL_BYTES)
    except (ValueError, OSError, SpoolBusy) as problem:
        log.critical("cannot start: %s", problem)
        raise SystemExit(UNUSABLE) from None
    try:
        asyncio.run(_serve(settings, trainers, spool))
    except (ValueError, OSError) as problem:
        log.critical("cannot serve %s: %s", settings.directory, problem)
        code = UNUSABLE
    except Exception:
        log.critical("ended by an error of its own", exc_info=True)
        code = 1
    finally:
        trainers.stop()
        spool.close()
        logging.shutdown()
    # An upload that hangs in the network must not hold the pod: its file is in the spool.
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
