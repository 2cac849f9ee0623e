"""Another profiler than Kineto goes end to end: the hub's plan, the sidecar, a process with a trace, a report."""

import asyncio
import gzip
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fleetprof_analyzer.capture.folder import report_of, summarise_directory
from fleetprof_api.hub import hub_pb2
from fleetprof_api.hub.hub_pb2 import Process
from fleetprof_api.request import Window
from fleetprof_operator.hub.planning.plan import make_plan
from fleetprof_sidecar.delivery.spool import Spool
from fleetprof_sidecar.main import SPOOL_BYTES, Sidecar
from fleetprof_sidecar.settings import read_settings
from fleetprof_sidecar.trainer_side import TrainerSide
from harness.hub.scripted_hub import ScriptedHub
from harness.sidecar import tiny_profiler
from harness.sidecar.armed_captures import NS, Await, reached
from harness.sidecar.tiny_profiler import TinyProfiler


@pytest.fixture
async def sidecar(hub: ScriptedHub, short_directory: str, tmp_path: Path) -> AsyncIterator[None]:
    words = ["--directory", short_directory, "--spool", str(tmp_path / "spool"), "--state", str(hub.state_directory)]
    settings = read_settings([*words, "--grace-seconds", "0"])
    trainers = TrainerSide(settings.directory, profiler=TinyProfiler())
    spool = Spool(settings.spool, SPOOL_BYTES)
    stop = asyncio.Event()
    running = asyncio.create_task(Sidecar(settings, trainers, spool).run(stop))
    yield
    stop.set()
    await running
    trainers.stop()
    spool.close()


@pytest.fixture
def process(short_directory: str, sidecar: None) -> Iterator[None]:
    """A process of rank 0 with the tiny profiler."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "PYTHONPATH": path}
    with subprocess.Popen([sys.executable, tiny_profiler.__file__, short_directory], env=environment) as started:
        yield
        started.kill()


def steady(hub: ScriptedHub) -> Process | None:
    return next((p for p in hub.processes() if p.HasField("rank") and p.poll_interval_ns > 0), None)


def order(process: Process, capture_id: str) -> dict[str, Any]:
    """The hub's order of this process, by its own plan."""
    plan = make_plan([process], Window(duration_millis=500), time.time_ns())
    assert plan.mode == "time"
    assert plan.deliver_until_unix_ns == plan.start_unix_ns - TinyProfiler.facts.delivery_margin_ns
    return {
        "capture_id": capture_id,
        "orders": [hub_pb2.Order(process_id=process.process_id, rank=0)],
        "window": hub_pb2.Window(duration_ns=plan.duration_ns),
        "start_unix_ns": plan.start_unix_ns,
        "deliver_until_unix_ns": plan.deliver_until_unix_ns,
        "give_up_unix_ns": time.time_ns() + 60 * NS,
    }


async def test_its_trace_becomes_a_report(hub: ScriptedHub, process: None, await_that: Await, tmp_path: Path) -> None:
    asking = await await_that(lambda: steady(hub))
    assert asking.profiler.name == "tiny"
    hub.send(arm=hub_pb2.Arm(**order(asking, "cap-1")))
    await await_that(reached(hub, "cap-1", 0, "UPLOADED", "FAILED"))
    event = hub.last("cap-1", 0)
    assert hub_pb2.RankState.Name(event.state) == "UPLOADED", event.message
    assert 0 < event.armed_unix_ns <= event.started_unix_ns <= event.written_unix_ns

    folder = tmp_path / "traces"
    folder.mkdir()
    data = hub.uploads["cap-1", event.process_id, hub_pb2.TRACE]
    (folder / "rank0.json").write_bytes(gzip.decompress(data))
    report = report_of(folder, summarise_directory(folder))
    assert [(rank.rank, len(rank.iterations)) for rank in report.ranks if rank.iterations] == [(0, 10)]


async def test_a_cancel_leaves_nothing(
    hub: ScriptedHub, process: None, await_that: Await, short_directory: str
) -> None:
    asking = await await_that(lambda: steady(hub))
    hub.send(arm=hub_pb2.Arm(**order(asking, "cap-2")))
    await await_that(reached(hub, "cap-2", 0, "ARMED"))
    hub.send(cancel=hub_pb2.Cancel(capture_id="cap-2", reason="Cancelled", message="by the test"))
    await await_that(reached(hub, "cap-2", 0, "FAILED"))
    assert hub.last("cap-2", 0).reason == "Cancelled"
    await await_that(lambda: not list((Path(short_directory) / "traces").iterdir()))
