"""Captures with everything around them in memory: processes, devices, a clock that is set by hand."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fleetprof_api.hub import hub_pb2
from fleetprof_sidecar.capture.recording_history import RecordingHistory
from fleetprof_sidecar.captures.controller import CaptureController
from fleetprof_sidecar.captures.traces_directory import TracesDirectory
from fleetprof_sidecar.captures.work import CaptureWork
from fleetprof_sidecar.delivery.spool import Spool
from fleetprof_sidecar.processes.events import Delivered
from fleetprof_sidecar.processes.roles import Role
from fleetprof_sidecar.processes.views import OrderRefused, ProcessView, StepView
from fleetprof_sidecar.samples.device import DeviceReading
from fleetprof_sidecar.samples.host import HostSource
from fleetprof_sidecar.samples.rank_recorders import RankRecorders
from fleetprof_sidecar.samples.sampler import Sampler

S = 10**9
NOW = 1000 * S


def view(process_id: str = "p", **more: Any) -> ProcessView:
    base: dict[str, Any] = dict.fromkeys(ProcessView.__slots__, "") | {
        **{
            "process_id": process_id,
            "pid": 7,
            "uid": os.getuid(),
            "role": Role.TRAINER,
            "rank": 0,
            "local_rank": 0,
            "world_size": 1,
        },
        **{"has_agent": True, "busy": False, "polls_kineto": True, "rank_source": "RANK_AGENT", "poll_interval_ns": S},
        **{"last_poll_unix_ns": NOW, "step": StepView(10, NOW, S, 1)},
    }
    return ProcessView(**{**base, **more})


class TableInMemory:
    """`ProcessTable` in memory: keeps what is asked of it."""

    def __init__(self) -> None:
        self.views: dict[str, ProcessView] = {"p": view()}
        self.orders: dict[str, str] = {}
        self.warmup_steps: dict[str, int] = {}
        self.trainers: list[str] = []
        self.agent_messages: list[tuple[str, str]] = []

    def snapshot(self) -> list[ProcessView]:
        return list(self.views.values())

    def get(self, process_id: str) -> ProcessView | None:
        return self.views.get(process_id)

    def place_order(
        self,
        process_id: str,
        config: str,
        deliver_until_unix_ns: int,
        first_step: int | None,
        *,
        warmup_steps: int = 0,
        chosen: bool = False,
    ) -> None:
        if first_step is not None and self.views[process_id].step is None:
            raise OrderRefused("NotStepping", "the process has not reported an optimizer step")
        if process_id in self.orders:
            raise OrderRefused("Outstanding", "an order is outstanding")
        self.orders[process_id] = config
        self.warmup_steps[process_id] = warmup_steps

    def withdraw_order(self, process_id: str) -> bool:
        return self.orders.pop(process_id, None) is not None

    def mark_trainer(self, process_id: str) -> None:
        self.trainers.append(process_id)

    def send_to_agent(self, process_id: str, kind: str, **fields: Any) -> bool:
        self.agent_messages.append((kind, fields["capture"]))
        return True


class RecordedDevices:
    """A device source that plays back."""

    def read(self, now_unix_ns: int, *, counters: bool) -> list[DeviceReading]:
        return [DeviceReading(now_unix_ns, 0, {"power_milliwatts": 300_000})]


class RecordedHub:
    """Keeps what is sent to the hub."""

    def __init__(self) -> None:
        self.messages: list[hub_pb2.SidecarMessage] = []

    def send(self, message: hub_pb2.SidecarMessage) -> None:
        self.messages.append(message)


class UploadsAtOnce:
    """Uploads that always arrive."""

    async def put(self, stored: Any, grants: Sequence[Any], stop: Any) -> list[str]:
        return ["etag"]


class CapturesBench:
    """Captures with everything around them in memory, and a clock that is set by hand."""

    def __init__(self, path: Path, table: TableInMemory) -> None:
        self.now = NOW
        self.table = table
        self.traces = path / "traces"
        self.traces.mkdir(exist_ok=True)
        self.spool = Spool(path / "spool", 1 << 24)
        self.hub = RecordedHub()
        self.sent = self.hub.messages
        self.recorders = RankRecorders(table)
        self.history = RecordingHistory()
        self.sampler = Sampler(HostSource(), RecordedDevices(), self.recorders, lambda: self.now)
        traces = TracesDirectory(self.traces, fallback=path)
        self.work = CaptureWork(
            processes=table,
            traces=traces,
            spool=self.spool,
            sampler=self.sampler,
            recorders=self.recorders,
            hub=self.hub,
            uploads=UploadsAtOnce(),
            clock=lambda: self.now,
        )
        self.captures = CaptureController(
            processes=table,
            traces=traces,
            spool=self.spool,
            work=self.work,
            recorders=self.recorders,
            hub=self.hub,
            history=self.history,
            clock=lambda: self.now,
        )

    def arm(self, capture_id: str = "cap", process_id: str = "p", **more: Any) -> None:
        arm = hub_pb2.Arm(
            **{
                "capture_id": capture_id,
                "orders": [hub_pb2.Order(process_id=process_id, rank=0)],
                "window": hub_pb2.Window(iterations=20),
                "first_step": 100,
                "deliver_until_unix_ns": NOW + 50 * S,
                "give_up_unix_ns": NOW + 100 * S,
                **more,
            }
        )
        self.captures.receive(hub_pb2.HubMessage(arm=arm))

    def look(self, seconds: float = 0) -> None:
        self.now += int(seconds * S)
        self.captures.look(self.now)

    def last(self, capture_id: str = "cap") -> hub_pb2.CaptureEvent:
        return [m.event for m in self.sent if m.HasField("event") and m.event.capture_id == capture_id][-1]

    def started(self) -> None:
        self.arm()
        self.captures.on_process_event(Delivered("p", self.now))
        (self.traces / "cap-r0_7.json.tmp").touch()
        self.look(1)
        assert self.last().state == hub_pb2.STARTED
