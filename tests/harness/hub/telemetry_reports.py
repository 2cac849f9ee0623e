"""Reports of sidecars with planted ranks, as the hub's board takes them."""

from typing import Any

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord
from fleetprof_operator.hub.telemetry.board import TelemetryBoard

from harness.hub.scripted_sidecar import make_process

S = 10**9
EVERY_LABEL = {"fleetprof.io/samples-per-iteration": "64", "fleetprof.io/rank-metrics": "true"}


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


def full_board(now_unix_ns: int) -> TelemetryBoard:
    """Four ranks with every figure there is, one GPU of them worse."""
    board = TelemetryBoard()
    numbers = {field.name: 7 for field in pb.RankTelemetry.DESCRIPTOR.fields if field.name != "process_id"}
    host = pb.HostTelemetry(**{field.name: 7 for field in pb.HostTelemetry.DESCRIPTOR.fields})
    ranks = [rank(one, **(numbers | {"gpu_sm_clock_megahertz": 5 if one == 3 else 7})) for one in range(4)]
    full = report(*ranks, host=host, unreadable=[pb.PRESSURE])
    board.take(record(0, [0, 1, 2, 3], labels=EVERY_LABEL), full, now_unix_ns)
    return board
