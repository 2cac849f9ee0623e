"""Reports of sidecars with planted ranks, as the hub's board takes them."""

from typing import Any

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord

from harness.hub.scripted_sidecar import make_process

S = 10**9


def record(number: int, ranks: list[int], **identity: Any) -> SidecarRecord:
    given: dict[str, Any] = {
        "namespace": "team",
        "pod_name": f"pod-{number}",
        "node_name": f"node-{number}",
        "workload": pb.Workload(kind="Job", name="llama"),
    }
    processes = {
        f"p{rank}": make_process(
            rank, world_size=4, device_kind="cuda", device_name="H100", first_seen_unix_ns=(5 + rank) * S
        )
        for rank in ranks
    }
    return SidecarRecord(f"s{number}", pb.Identity(**(given | identity)), processes)


def report(*ranks: pb.RankTelemetry, host: pb.HostTelemetry | None = None, **fields: Any) -> pb.Telemetry:
    return pb.Telemetry(ranks=ranks, host=host, **fields)


def rank(number: int, **fields: Any) -> pb.RankTelemetry:
    return pb.RankTelemetry(process_id=f"p{number}", **fields)
