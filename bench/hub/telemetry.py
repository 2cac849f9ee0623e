"""Telemetry of a large fleet at the hub: processor time of its reports, memory of what is kept, time of a scrape.

10,000 ranks in 1,250 pods with every figure that a GPU rank has. The reports go through the same steps as those of a
stream (weighed, parsed, checked, added to the board), but not through gRPC: what gRPC itself takes is not in these
figures. The day of history is full, and pure noise, which compresses worst. Processor time, not the clock's, because
other work on the machine does not change it.
"""

from __future__ import annotations

import asyncio
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

from figures import Figure
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.telemetry.figures import Aggregate, WorkloadFigures
from fleetprof_api.telemetry.history import POINTS, STEP_NS, write_day
from fleetprof_api.telemetry.measures import IN_HISTORY
from fleetprof_operator.hub.sidecars.message_weight import weigh_message
from fleetprof_operator.hub.sidecars.messages import parse_message
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord
from fleetprof_operator.hub.telemetry.board import TelemetryBoard
from fleetprof_operator.hub.telemetry.exposition import MOST_WORKLOADS
from fleetprof_operator.hub.telemetry.history import TelemetryHistory
from fleetprof_operator.hub.telemetry.snapshot import take_snapshot
from harness.hub.scripted_sidecar import make_process
from prometheus_client import CollectorRegistry, generate_latest

PODS, RANKS, INTERVAL_S = 1250, 8, 5
_ROUNDS = 5
_SECTION = "telemetry"
_NUMBERS = [field for field in pb.RankTelemetry.DESCRIPTOR.fields if field.name != "process_id"]


def measure() -> list[Figure]:
    """In processes of their own: one fleet of one job, and one of a job for each pod."""
    found: list[Figure] = []
    for jobs in (1, PODS):
        arguments = [sys.executable, __file__, str(jobs)]
        folders = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
        result = subprocess.run(
            arguments, env={"PYTHONPATH": ":".join(folders)}, check=True, capture_output=True, text=True
        )
        cpu_s, kept_mib, message_bytes, snapshot_s, scrape_s, lines = map(float, result.stdout.split())
        title = f"10,000 ranks in 1,250 pods, {jobs:,} job{'s' if jobs > 1 else ''}"
        share, scrape_cpu_s = cpu_s / INTERVAL_S, snapshot_s + scrape_s
        found += [
            Figure(_SECTION, f"{title}: reports of five seconds", f"{share:.1%} of a core", "<= 1 core", share <= 1),
            Figure(_SECTION, f"{title}: a pod's report", f"{message_bytes:.0f} bytes"),
            Figure(_SECTION, f"{title}: memory of what is kept", f"{kept_mib:.0f} MiB", "<= 300 MiB", kept_mib <= 300),
            Figure(
                _SECTION,
                f"{title}: a scrape",
                f"{scrape_cpu_s:.2f} s of CPU, {snapshot_s:.2f} s of it in the event loop; {lines:.0f} lines",
                "<= 1 s",
                scrape_cpu_s <= 1,
            ),
        ]
    return found + _measure_day()


def _make_report(pod: int, turn: int) -> bytes:
    ranks = [
        pb.RankTelemetry(
            process_id=f"p{rank}",
            **{field.name: 500 + (37 * rank + 11 * turn + field.number) % 400 for field in _NUMBERS},
        )
        for rank in range(RANKS * pod, RANKS * (pod + 1))
    ]
    host = pb.HostTelemetry(**{field.name: 400 + pod % 50 for field in pb.HostTelemetry.DESCRIPTOR.fields})
    return pb.SidecarMessage(telemetry=pb.Telemetry(ranks=ranks, host=host, unreadable=[1, 7])).SerializeToString()


def _measure_day() -> list[Figure]:
    """A full day of as many workloads as are kept."""
    history, noise = TelemetryHistory(), random.Random(1)
    spent: list[float] = []
    for step in range(POINTS):
        looked = [
            WorkloadFigures(
                "team", "Job", f"job-{number}", 32, 32, 32, 0, 0,
                {name: Aggregate(noise.gauss(1, 0.1), 0, 0, 0, 32) for name in IN_HISTORY},
            )
            for number in range(MOST_WORKLOADS)
        ]  # fmt: skip
        began = time.process_time()
        history.take(looked, (step + 1) * STEP_NS)
        spent.append(time.process_time() - began)
    began = time.process_time()
    data = write_day(history.write("team"))
    written_s = time.process_time() - began
    title = f"a day of {MOST_WORKLOADS} workloads"
    return [
        Figure(_SECTION, f"{title}: in the store", f"{len(data) / 1e6:.1f} MB", "<= 4 MB", len(data) <= 4e6),
        Figure(_SECTION, f"{title}: a look, twice a minute", f"{max(spent) * 1e3:.0f} ms of CPU"),
        Figure(_SECTION, f"{title}: to write it, every ten minutes", f"{written_s:.2f} s of CPU, in a thread"),
    ]


def _make_record(pod: int, jobs: int) -> SidecarRecord:
    identity = pb.Identity(
        namespace="team",
        pod_name=f"pod-{pod}",
        node_name=f"node-{pod}",
        workload=pb.Workload(kind="Job", name=f"job-{pod % jobs}"),
    )
    ranks = range(RANKS * pod, RANKS * (pod + 1))
    processes = {
        f"p{rank}": make_process(rank, world_size=10_000, device_kind="cuda", device_name="H100") for rank in ranks
    }
    return SidecarRecord(f"s{pod}", identity, processes)


def _resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)


def _play(jobs: int) -> None:
    board, records = TelemetryBoard(), [_make_record(pod, jobs) for pod in range(PODS)]
    spent: list[float] = []
    size_bytes = 0
    for turn in range(_ROUNDS):
        messages = [_make_report(pod, turn) for pod in range(PODS)]
        size_bytes = len(messages[0])
        if not turn:
            empty_mib = _resident_mib()
        began = time.process_time()
        for record, data in zip(records, messages, strict=True):
            weigh_message(data)
            board.sweep(turn)
            board.take(record, parse_message(data).telemetry, turn)
        spent.append(time.process_time() - began)
    kept_mib = _resident_mib() - empty_mib
    began = time.process_time()
    snapshot = asyncio.run(take_snapshot(board))
    middle = time.process_time()
    registry = CollectorRegistry()
    registry.register(snapshot)
    text = generate_latest(registry)
    ended = time.process_time()
    print(max(spent), kept_mib, size_bytes, middle - began, ended - middle, text.count(b"\n"))


if __name__ == "__main__":
    _play(int(sys.argv[1]))
