"""Times one request for stacks of a simulated job: from the order to the verdict in the store.

    python bench/hangs/many_ranks.py [--ranks N]

A hub on loopback and 64 sidecars, over real gRPC streams of one connection. The answers are planted (one rank hangs,
deep stacks), and sidecars answer at once: this is the part of the hub alone. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from fleetprof_api import keys  # noqa: E402
from fleetprof_api.stalls import read_job_stacks  # noqa: E402
from fleetprof_operator.hub.hub import Hub  # noqa: E402
from fleetprof_operator.hub.server import serve  # noqa: E402
from harness.hub.planted_stacks import answer  # noqa: E402
from harness.hub.scripted_sidecar import TOKEN, ScriptedSidecar, make_process, make_request  # noqa: E402
from harness.memory_store import MemoryStore  # noqa: E402
from harness.stalls.planted_ranks import hang  # noqa: E402

SIDECARS = 64  # a connection has at most a hundred streams


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, default=1000)
    given = parser.parse_args()
    asyncio.run(_measure(given.ranks))


async def _measure(ranks: int) -> None:
    culprit = ranks // 2
    answers = hang(ranks, culprit)
    store = MemoryStore()
    hub = Hub(store=store)
    server = await serve(hub, "127.0.0.1:0", token=TOKEN)
    sidecars, each = [], -(-ranks // SIDECARS)
    for first in range(0, ranks, each):
        numbers = range(first, min(first + each, ranks))
        sidecar = ScriptedSidecar(f"s{first}", [make_process(n, world_size=ranks) for n in numbers])
        sidecars.append((await sidecar.connect(server.port), [answers[n] for n in numbers]))
    replies = [asyncio.create_task(answer(sidecar, *processes)) for sidecar, processes in sidecars]
    began = time.monotonic()
    request = make_request(window=None, capture={"stacks": {}})
    await hub.adopt(request, namespace="team", uid="u", name="n")
    async for status in hub.watch("u"):
        if status.finished:
            break
    took_s = time.monotonic() - began
    data = store.get(keys.stacks_key("team", "u"))
    verdict = read_job_stacks(data).samples[-1].verdict
    is_right = (verdict.cause, verdict.ranks) == ("blocked_in_line", (culprit,))
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; hub and sidecars are one process")
    print(f"{ranks} ranks: {took_s:.1f} s from order to verdict, {'right' if is_right else 'WRONG'}, ", end="")
    print(f"{len(data) >> 10} KiB stored, {peak_mib} MiB at the peak")
    print(verdict.sentence)
    await asyncio.gather(*replies)
    for sidecar, _ in sidecars:
        await sidecar.disconnect()
    await server.stop(None)
    await hub.close()


if __name__ == "__main__":
    main()
