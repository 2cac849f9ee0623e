"""Telemetry over a real stream: asked for, added up, and refused where it breaks the protocol."""

import asyncio
import time
from typing import Any

import grpc
import msgspec
import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import CapturesStub
from fleetprof_api.telemetry.figures import FleetFigures
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.sidecars.messages import ProtocolError, parse_message
from harness.hub.telemetry_reports import EVERY_LABEL, rank, record, report
from harness.memory_store import MemoryStore


async def ask(ground: Any, workload: str) -> FleetFigures:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{ground.server.port}") as channel:
        metadata = (("authorization", "Bearer a-token-for-tests"),)
        reply = await CapturesStub(channel).Telemetry(pb.TelemetryRequest(workload=workload), metadata=metadata)
    return msgspec.json.decode(reply.figures_json, type=FleetFigures)


async def test_what_a_sidecar_tells_is_what_people_are_told(ground: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    report = pb.RankTelemetry(process_id="p0", iterations=7, iteration_rate_microhertz=2_000_000)
    await sidecar.call.write(pb.SidecarMessage(telemetry=pb.Telemetry(ranks=[report])))
    async with asyncio.timeout(60):
        while not (jobs := (await ask(ground, "Job/llama")).workloads):
            await asyncio.sleep(0.02)
    [job] = jobs
    assert (job.namespace, job.name, job.iterations) == ("team", "llama", 7)
    assert job.members is not None
    assert [(one.rank, one.node, one.values) for one in job.members] == [
        (0, "node-s0", {"iterations_per_second": 2.0}),
    ]
    assert (await ask(ground, "other")).workloads == []
    assert (await ask(ground, "")).workloads[0].members is None


async def test_everybody_is_told_of_ranks_only_where_the_job_asks_for_their_metrics() -> None:
    hub = Hub(store=MemoryStore())
    now = time.time_ns()
    for number, (name, labels) in enumerate({"open": EVERY_LABEL, "closed": {}}.items()):
        sidecar = record(number, [number], workload=pb.Workload(kind="Job", name=name), labels=labels)
        hub.telemetry.take(sidecar, report(rank(number)), now)

    async def ranks_of(name: str, *, every_rank: bool) -> int | None:
        (job,) = (await hub.figures("team", name, every_rank=every_rank)).workloads
        return None if job.members is None else len(job.members)

    assert [await ranks_of(name, every_rank=False) for name in ("open", "closed")] == [1, None]
    assert [await ranks_of(name, every_rank=True) for name in ("open", "closed")] == [1, 1]
    await hub.close()


async def test_figures_of_many_workloads_let_others_have_their_turn() -> None:
    hub = Hub(store=MemoryStore())
    for number in range(5):
        sidecar = record(number, [number], workload=pb.Workload(kind="Job", name=f"job-{number}"))
        hub.telemetry.take(sidecar, report(rank(number)), time.time_ns())
    turns = 0
    task = asyncio.ensure_future(hub.figures())
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    assert len((await task).workloads) == 5
    assert turns >= 5
    await hub.close()


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (pb.Telemetry(ranks=[pb.RankTelemetry(process_id="p", iterations=-1)]), "iterations"),
        (pb.Telemetry(ranks=[pb.RankTelemetry(process_id="p", gpu_busy_permille=1001)]), "gpu_busy_permille"),
        (pb.Telemetry(ranks=[pb.RankTelemetry(process_id="a\nb")]), "process_id"),
        (pb.Telemetry(ranks=[pb.RankTelemetry(process_id="p")] * 1025), "telemetry.ranks"),
        (pb.Telemetry(host=pb.HostTelemetry(network_sent_bytes_per_s=-5)), "network_sent_bytes_per_s"),
        (pb.Telemetry(unreadable=[pb.GPU] * 65), "telemetry.unreadable"),
    ],
    ids=["negative", "more than all", "a name", "too many ranks", "a negative host", "too many sources"],
)
def test_a_report_that_breaks_the_protocol_is_refused_by_name(broken: pb.Telemetry, problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem):
        parse_message(pb.SidecarMessage(telemetry=broken).SerializeToString())


def test_sources_of_a_newer_sidecar_are_dropped() -> None:
    newer = pb.SidecarMessage(telemetry=pb.Telemetry(unreadable=[pb.GPU, 63]))  # type: ignore[list-item]
    assert list(parse_message(newer.SerializeToString()).telemetry.unreadable) == [pb.GPU]
