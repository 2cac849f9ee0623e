"""The sidecar as a process, between a scripted hub and simulated trainers: every capture ends, no trace is lost."""

import gzip
import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api import hub_pb2
from fleetprof_api.samples import RankSamples
from msgspec.json import decode

NS = 10**9
Await = Callable[..., Any]


def arm(hub: Any, capture_id: str = "cap-1", iterations: int = 5, lead: int = 60, **more: Any) -> int:
    """Arms every trainer that the hub knows with one first step ahead of all, and returns that step."""
    processes = [p for p in hub.processes() if p.role == hub_pb2.TRAINER and p.HasField("step")]
    assert processes
    first_step = max(p.step.step for p in processes) + lead
    now = time.time_ns()
    message = {
        "capture_id": capture_id,
        "orders": [hub_pb2.Order(process_id=p.process_id, rank=p.rank) for p in processes],
        "window": hub_pb2.Window(iterations=iterations),
        "first_step": first_step,
        "deliver_until_unix_ns": now + 20 * NS,
        "give_up_unix_ns": now + 60 * NS,
        **more,
    }
    hub.send(arm=hub_pb2.Arm(**message))
    return first_step


def known_trainers(hub: Any, count: int) -> Callable[[], bool]:
    return lambda: sum(p.role == hub_pb2.TRAINER and p.HasField("step") for p in hub.processes()) == count


def reached(hub: Any, capture_id: str, rank: int, *states: str) -> Callable[[], bool]:
    return lambda: hub.state(capture_id, rank) in states


async def test_every_rank_of_a_capture_is_uploaded_with_its_samples_and_released(
    hub: Any, start_sidecar: Any, start_trainers: Any, await_that: Await, short_directory: str, tmp_path: Path
) -> None:
    sidecar = start_sidecar("--workload", "batch/v1/Job/demo", "--label", "app=demo", "--namespace", "team")
    start_trainers("--ranks", "2", "--step-ms", "20", "--poll-ms", "200")
    await await_that(known_trainers(hub, 2))
    identity = hub.hellos[0].identity
    assert (identity.namespace, identity.workload.name, identity.labels["app"]) == ("team", "demo", "demo")
    assert hub.tokens[0] == "Bearer the-token"

    first_step = arm(hub, sample_interval_ns=50_000_000)
    for rank in (0, 1):
        await await_that(reached(hub, "cap-1", rank, "UPLOADED", "FAILED"))
        event = hub.last("cap-1", rank)
        assert hub_pb2.RankState.Name(event.state) == "UPLOADED", event.message
        assert 0 < event.asked_unix_ns <= event.armed_unix_ns <= event.started_unix_ns <= event.written_unix_ns
        assert event.compressed_bytes < event.trace_bytes
        trace = json.loads(gzip.decompress(hub.uploads["cap-1", event.process_id, hub_pb2.TRACE]))
        assert trace["trace_id"] == f"cap-1-r{rank}"
        samples = decode(gzip.decompress(hub.uploads["cap-1", event.process_id, hub_pb2.SAMPLES]), type=RankSamples)
        assert samples.rank == rank
        assert samples.agent
        assert set(range(first_step, first_step + 5)) <= set(samples.steps.step)
        assert len(samples.host.at_unix_ns) > 5
        assert event.message == ""
    order = [(e.rank, hub_pb2.RankState.Name(e.state)) for e in hub.events]
    for rank in (0, 1):
        states = list(dict.fromkeys(state for r, state in order if r == rank))
        assert states == ["ASKED", "ARMED", "STARTED", "WRITTEN", "UPLOADED"]
    assert list((tmp_path / "spool" / "files").iterdir()) == []
    assert list((Path(short_directory) / "traces").glob("*.json")) == []

    hub.send(release=hub_pb2.Release(capture_id="cap-1"))
    await await_that(lambda: not list((tmp_path / "spool" / "journal").iterdir()))
    assert sidecar.end(signal.SIGTERM) == 0
    assert not [path for path in Path(short_directory).iterdir() if path.name in ("dynolog", "fleetprof")]


@pytest.fixture(autouse=True)
def _unused(hub: Any) -> None:
    """Every test here has the hub up before the sidecar dials."""
