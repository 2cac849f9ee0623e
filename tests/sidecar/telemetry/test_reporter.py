"""The sidecar's reports to the hub on its trainers, and what it says it cannot read."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_sidecar.processes.events import AgentMessage, Gone
from fleetprof_sidecar.processes.roles import Role
from fleetprof_sidecar.samples.device import DeviceReading
from fleetprof_sidecar.telemetry import reporter as module
from fleetprof_sidecar.telemetry.host_report import HostReport
from fleetprof_sidecar.telemetry.reporter import TelemetryReporter
from harness.sidecar.process_views import steps, view

S = 10**9


class World:
    """Two trainers and a launcher; the second trainer has no agent."""

    def __init__(self, nowhere: Path, own: list[DeviceReading] | None = None, exporter: Any = None) -> None:
        self.sent: list[pb.SidecarMessage] = []
        self.views = [
            view(steps(7, 1), process_id="a", has_agent=True),
            view(process_id="b", local_rank=1),
            view(process_id="launcher", role=Role.LAUNCHER),
        ]
        self.latest_devices = own or []
        processes: Any = self
        self.reporter = TelemetryReporter(
            processes,
            self,
            self,
            HostReport(nowhere, nowhere),
            exporter,
            clock=lambda: 10 * S,
        )

    def snapshot(self) -> list[Any]:
        return self.views

    def get(self, process_id: str) -> Any:
        return next(one for one in self.views if one.process_id == process_id)

    def send(self, message: pb.SidecarMessage) -> None:
        self.sent.append(message)


def test_a_report_names_trainers_alone_and_says_what_cannot_be_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    values = {"utilization_permille": 900, "energy_millijoules": 5}
    world.reporter.on_process_event(
        AgentMessage("a", {"t": "telemetry", "at_unix_ns": 9 * S, "step": 6, "values": values})
    )
    report = world.reporter.make()
    assert [(rank.process_id, rank.iterations, rank.gpu_busy_permille) for rank in report.ranks] == [
        ("a", 7, 900),
        ("b", 0, 0),
    ]
    assert not report.ranks[1].HasField("gpu_busy_permille")
    assert [pb.Source.Name(source) for source in report.unreadable] == [
        "INSTRUCTIONS", "GPU_ACTIVITY", "PRESSURE", "NETWORK_SPEED", "INFINIBAND",
    ]  # fmt: skip
    world.reporter.on_process_event(Gone("a", 9 * S, orderly_end=True))
    assert pb.GPU in world.reporter.make().unreadable


def test_the_sidecars_own_samples_are_for_ranks_without_an_agent(tmp_path: Path) -> None:
    known: list[dict[str, int | None]] = [
        {"power_milliwatts": 100, "energy_millijoules": None},
        {"power_milliwatts": 101},
    ]
    readings = [DeviceReading(9 * S, device, values) for device, values in enumerate(known)]
    ranks = World(tmp_path, readings).reporter.make().ranks
    assert [rank.gpu_power_milliwatts for rank in ranks] == [0, 101]


async def test_nothing_is_said_until_the_hub_asks_nor_after_it_asks_no_more(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "LEAST_INTERVAL_NS", S // 100)
    world = World(tmp_path)
    running = asyncio.create_task(world.reporter.run())
    await asyncio.sleep(0.05)
    assert not world.sent
    world.reporter.set_interval(1)
    async with asyncio.timeout(60):
        while len(world.sent) < 2:
            await asyncio.sleep(0.01)
    world.reporter.set_interval(0)
    await asyncio.sleep(0)
    count = len(world.sent)
    await asyncio.sleep(0.05)
    assert len(world.sent) == count
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class Exporter:
    """An exporter that knows one GPU by its UUID, and one as the pod's only one."""

    def find(self, uuid: str) -> tuple[int, dict[str, int]] | None:
        return {"GPU-1": (9 * S, {"sm_active_permille": 600}), "": (9 * S, {"sm_active_permille": 500})}.get(uuid)


def test_the_exporter_is_asked_for_gpus_by_uuid_and_for_a_pods_only_rank(tmp_path: Path) -> None:
    world = World(tmp_path, exporter=Exporter())
    a, b, launcher = world.views
    world.views = [replace(a, device_uuid="GPU-1", device_kind="cuda"), b, launcher]
    report = world.reporter.make()
    assert [rank.gpu_sm_active_permille for rank in report.ranks] == [600, 0]
    assert pb.GPU_ACTIVITY not in report.unreadable
    for kind, permille in (("", 500), ("cuda", 500), ("cpu", 0)):
        world = World(tmp_path, exporter=Exporter())
        world.views = [replace(b, device_kind=kind), launcher]
        assert [rank.gpu_sm_active_permille for rank in world.reporter.make().ranks] == [permille]
        assert not world.reporter.wants_exporter()
        world.reporter.set_interval(5 * S)
        assert world.reporter.wants_exporter() == bool(permille)
