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
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from fleetprof_api.hub import hub_pb2
from fleetprof_api.memory_shortage import SERVICE, go_first
from fleetprof_api.private_directory import PrivateDirectory

from fleetprof_sidecar.capture.process_capture import StoredFile
from fleetprof_sidecar.captures.sidecar_captures import Captures
from fleetprof_sidecar.captures.traces_directory import TracesDirectory
from fleetprof_sidecar.delivery.spool import Spool, SpoolBusy
from fleetprof_sidecar.delivery.upload import PartGrant
from fleetprof_sidecar.delivery.upload_connections import UploadConnections
from fleetprof_sidecar.hub.address import LocalHub
from fleetprof_sidecar.hub.link import PROTOCOL_VERSION, HubLink
from fleetprof_sidecar.hub.messages import make_device_sample, make_host_sample, make_process
from fleetprof_sidecar.labels import read_labels
from fleetprof_sidecar.log import set_up_logging
from fleetprof_sidecar.processes.events import BusyChanged, Changed, Gone, OwnProfileBegan, ProcessEvent
from fleetprof_sidecar.samples.device import NvmlSource
from fleetprof_sidecar.samples.host import HostSource
from fleetprof_sidecar.samples.sampler import Sampling
from fleetprof_sidecar.settings import Settings, read_settings
from fleetprof_sidecar.trainer_side import TrainerSide

UNUSABLE: Final = 3
# Each upload holds one part of 8 MiB in memory.
_UPLOADS_AT_ONCE: Final = 2
_FAREWELL_S: Final = 3.0

log = logging.getLogger(__name__)


class Sidecar:
    """All of it; `run` returns after `stop` was set."""

    def __init__(self, settings: Settings, trainers: TrainerSide, spool: Spool) -> None:
        self._settings = settings
        self._trainers = trainers
        self._spool = spool
        self._table = trainers.table
        self._uploads = ThreadPoolExecutor(_UPLOADS_AT_ONCE, thread_name_prefix="upload")
        self._connections = UploadConnections(settings.hub)
        self._link = HubLink(
            settings.hub,
            hello=self._hello,
            heartbeat=self._heartbeat,
            receive=lambda message: self._captures.receive(message),
            connected=lambda: self._captures.work.ask_again(),
        )
        self._sampling = Sampling(HostSource(), NvmlSource(), self._wants_devices)
        self._captures = Captures(
            processes=self._table,
            traces=TracesDirectory(trainers.directory.traces),
            spool=spool,
            sampling=self._sampling,
            send=self._link.send,
            put=self._put,
            host_name=socket.gethostname(),
            storage_limit_bytes=settings.storage_limit_bytes,
        )
        self._sampling.on_devices = self._captures.work.add_devices

    async def run(self, stop: asyncio.Event) -> None:
        """Serves until `stop`, then lets finished traces leave within the grace period."""
        loop = asyncio.get_running_loop()
        self._table.events.subscribe(lambda event: _call_soon(loop, self._on_process_event, event))
        self._trainers.start()
        log.info("serving %s as sidecar %s", self._settings.directory, self._spool.sidecar_id)
        self._captures.restore()
        work = [asyncio.create_task(part) for part in (self._captures.run(), self._sampling.run(), self._link.run())]
        ending = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait([*work, ending], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {ending}:
                task.result()
            log.info("ending: waiting at most %g s for uploads", self._settings.grace_seconds)
            await self._captures.drain(self._settings.grace_seconds, ends_with_pod=self._settings.ends_with_pod)
            self._link.finish()
            if self._link.is_connected:
                await asyncio.wait([work[-1]], timeout=_FAREWELL_S)
        finally:
            for task in [*work, ending]:
                task.cancel()
            await asyncio.gather(*work, ending, return_exceptions=True)
            await self._captures.work.close()
            self._uploads.shutdown(wait=False, cancel_futures=True)

    async def _put(self, stored: StoredFile, grants: Sequence[PartGrant], stop: threading.Event) -> list[str]:
        path = self._spool.path_of(stored.name)
        return await asyncio.get_running_loop().run_in_executor(
            self._uploads, self._connections.put, path, stored, grants, stop
        )

    def _on_process_event(self, event: ProcessEvent) -> None:
        self._captures.on_process_event(event)
        if isinstance(event, Changed | Gone | BusyChanged | OwnProfileBegan):
            self._link.beat_soon()

    def _wants_devices(self) -> bool:
        return any(view.polls_kineto and not view.has_agent for view in self._table.snapshot())

    def _hello(self) -> hub_pb2.Hello:
        settings = self._settings
        workload = settings.workload
        return hub_pb2.Hello(
            protocol_version=PROTOCOL_VERSION,
            sidecar_id=self._spool.sidecar_id,
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
            processes=[make_process(view) for view in self._table.snapshot()],
            held=self._captures.held_events(),
        )

    def _heartbeat(self) -> hub_pb2.Heartbeat:
        return hub_pb2.Heartbeat(
            at_unix_ns=time.time_ns(),
            processes=[make_process(view) for view in self._table.snapshot()],
            host=make_host_sample(self._sampling.latest_host),
            devices=[make_device_sample(reading) for reading in self._sampling.latest_devices],
        )


def _call_soon(loop: asyncio.AbstractEventLoop, call: object, event: object) -> None:
    # The endpoints are ended after the loop: their last events have nowhere to go.
    if not loop.is_closed():
        loop.call_soon_threadsafe(call, event)  # type: ignore[arg-type]


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
        spool = Spool(settings.spool, settings.spool_limit_bytes)
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
