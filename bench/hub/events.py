"""The hub alone, without network or delay of the store: what does it cost when every rank tells of itself one by one?

    python bench/hub/events.py [RANKS] [--profile]

Ranks, eight to a sidecar, send ARMED, STARTED and WRITTEN as messages of their own, read from bytes as they come over a
stream; the ledger is written and one watcher follows meanwhile. Prints CPU-seconds and how late the event loop was.
"""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

from figures import Figure, quantile  # noqa: E402
from fleetprof_api.hub import hub_pb2 as pb  # noqa: E402
from fleetprof_api.request import parse_request  # noqa: E402
from fleetprof_operator.hub.hub import Hub  # noqa: E402
from fleetprof_operator.hub.sidecars.messages import parse_message  # noqa: E402
from harness.memory_store import MemoryStore  # noqa: E402

RANKS = 10_000
RANKS_EACH = 8
MOST_CPU_S = 2.0
TICK_S = 0.01


class EventLink:
    def __init__(self) -> None:
        self.received: list[pb.HubMessage] = []

    def send(self, message: pb.HubMessage) -> None:
        self.received.append(message)

    def close(self, why: str) -> None:
        pass


def _hello(number: int, ranks: int) -> pb.Hello:
    now = time.time_ns()
    first = number * RANKS_EACH
    processes = [
        pb.Process(
            process_id=f"p{rank}", role=pb.TRAINER, rank=rank, world_size=ranks, polls_kineto=True,
            poll_interval_ns=10**9, first_seen_unix_ns=now - 60 * 10**9, last_poll_unix_ns=now,
        )
        for rank in range(first, min(first + RANKS_EACH, ranks))
    ]  # fmt: skip
    identity = pb.Identity(
        namespace="team", pod_name=f"pod-{number}", pod_uid=f"u-{number}", node_name=f"node-{number}",
        labels={"app": "llama"},
    )  # fmt: skip
    return pb.Hello(protocol_version=1, sidecar_id=f"s{number}", identity=identity, processes=processes)


async def _note_lag(lags: list[float]) -> None:
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(TICK_S)
        lags.append(time.perf_counter() - begun - TICK_S)


async def _watch(hub: Hub, uid: str) -> None:
    async for _ in hub.watch(uid):
        pass


async def _tell(ranks: int, profile: cProfile.Profile | None) -> tuple[float, list[float]]:
    hub = Hub(store=MemoryStore())
    records = []
    for number in range(-(-ranks // RANKS_EACH)):
        link = EventLink()
        records.append((hub.sessions.connect(_hello(number, ranks), link), link))
    request = parse_request(
        {
            "apiVersion": "fleetprof.io/v1alpha1",
            "kind": "ProfileRequest",
            "spec": {
                "target": {"selector": {"matchLabels": {"app": "llama"}}},
                "window": {"durationMillis": 100},
                "activeDeadlineSeconds": 900,
            },
        }
    )
    uid = (await hub.submit(request, "team", fail_fast=False)).uid
    while not any(m.WhichOneof("body") == "arm" for m in records[-1][1].received):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    lags: list[float] = []
    beside = [asyncio.create_task(_note_lag(lags)), asyncio.create_task(_watch(hub, uid))]
    events = []
    for state in (pb.ARMED, pb.STARTED, pb.WRITTEN):
        for record, _ in records:
            for process in record.processes.values():
                event = pb.CaptureEvent(
                    capture_id=uid, process_id=process.process_id, rank=process.rank, state=state, armed_unix_ns=1,
                    started_unix_ns=2 if state >= pb.STARTED else 0, written_unix_ns=3 if state >= pb.WRITTEN else 0,
                )  # fmt: skip
                events.append((record, pb.SidecarMessage(event=event).SerializeToString()))
    await asyncio.sleep(0.5)
    lags.clear()
    if profile is not None:
        profile.enable()
    began = time.process_time()
    for record, data in events:
        await hub.sessions.receive(record, parse_message(data))
        await asyncio.sleep(0)  # the next one comes from another stream
    await hub.captures.find(uid).flush(60 * 10**9)
    spent = time.process_time() - began
    if profile is not None:
        profile.disable()
    for task in beside:
        task.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    await hub.cancel(uid, hurry=True)
    await hub.close()
    return spent, lags


def measure(ranks: int = RANKS, profile: cProfile.Profile | None = None) -> list[Figure]:
    spent, lags = asyncio.run(_tell(ranks, profile))
    title = f"{ranks} ranks, three events each, one by one"
    return [
        Figure("hub", f"{title}: CPU", f"{spent:.2f} s", f"<= {MOST_CPU_S:g} s", spent <= MOST_CPU_S),
        Figure(
            "hub", f"{title}: the event loop was late", f"p99 {1000 * quantile(lags, 0.99):.0f} ms, "
            f"worst {1000 * max(lags):.0f} ms of {len(lags)}", "p99 <= 50 ms", quantile(lags, 0.99) <= 0.05,
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    words = sys.argv[1:]
    profiler = cProfile.Profile() if "--profile" in words else None
    numbers = [int(word) for word in words if word.isdecimal()]
    for figure in measure(numbers[0] if numbers else RANKS, profiler):
        print(f"{figure.name}: {figure.value} [{figure.target}]")
    if profiler is not None:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
