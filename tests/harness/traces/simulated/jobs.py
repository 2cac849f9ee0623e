"""A simulated job: all its ranks until the end, how long an iteration took, and its traces as Kineto writes them."""

import io
from collections.abc import Callable

import msgspec
import numpy as np
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace

from harness.traces.simulated.batches import batched
from harness.traces.simulated.groups import ProcessGroups
from harness.traces.simulated.loops import replicated, run_loop, sharded
from harness.traces.simulated.nodes import WorkGraph
from harness.traces.simulated.pipelines import recommends, staged
from harness.traces.simulated.rank import SimulatedRank, Waits
from harness.traces.simulated.shapes import LoopShape, SimulatedFault

_LOOPS: dict[str, Callable[[SimulatedRank, ProcessGroups], Callable[[], Waits]]] = {
    "replicated": replicated, "sharded": sharded, "staged": staged, "recommends": recommends,
    "batched": batched,
}  # fmt: skip


class EventJob:
    """A job that has run; who asks only how long it took leaves the profiler out. Times in µs.

    Another `run` has the same machines, and batches and noise of its own.
    """

    def __init__(
        self, shape: LoopShape, fault: SimulatedFault, seed: int, *, profiled: bool = True, run: int = 0
    ) -> None:
        self.shape, self.fault, self.seed = shape, fault, seed
        graph = WorkGraph()
        groups = ProcessGroups(shape, fault, seed, run)
        self.ranks = [
            SimulatedRank(graph, shape, fault, number, seed, profiled=profiled, run=run)
            for number in range(shape.ranks)
        ]
        hosts = [run_loop(rank, _LOOPS[shape.loop](rank, groups)) for rank in self.ranks]
        running = set(range(shape.ranks))
        graph.woken.extend(running)
        while graph.woken:
            number = graph.woken.popleft()
            if number not in running:
                continue
            for node in hosts[number]:
                if node.end is None:
                    node.hosts.append(number)
                    break
            else:
                running.remove(number)
        assert not running, f"ranks wait for each other in a circle: {shape}"

    @property
    def iteration_us(self) -> float:
        """The mean recorded iteration, from the last work of one to the last work of the next, over the ranks."""
        lengths = []
        for rank in self.ranks:
            ends = [work.ended for _, work in rank.borders[self.shape.warm :] if work is not None]
            lengths.append((ends[-1] - ends[0]) / (len(ends) - 1))
        return float(np.mean(lengths))

    def documents(self) -> list[bytes]:
        """One trace per rank, each on a clock of its own."""
        clocks = np.random.default_rng((self.seed, 50))
        return [
            _write(rank, float(clocks.uniform(-5e6, 5e6)), float(clocks.normal(0, 3e-6)), self.shape)
            for rank in self.ranks
        ]

    def traces(self) -> list[Trace]:
        """The same, read."""
        return [
            read_trace(io.BytesIO(document), f"rank{number}.json", Problems())
            for number, document in enumerate(self.documents())
        ]


def _write(rank: SimulatedRank, offset_us: float, drift: float, shape: LoopShape) -> bytes:
    begin, end = rank.borders[shape.warm][0], rank.borders[-1][0]
    threads = {"main": 4000 + rank.rank, "autograd": 9000 + rank.rank}
    inside = [row for row in rank.rows if row.node is not None or begin - 0.5 <= row.start < end]
    launched = {row.arguments["correlation"] for row in inside if row.node is None and "correlation" in row.arguments}
    events = []
    without_host = shape.dynamic is not None and not shape.dynamic.host_rows
    for row in inside:
        if without_host and row.category in ("cpu_op", "cuda_runtime"):
            continue
        if row.category == "cuda_runtime" and not shape.launches:
            continue
        if row.node is None:
            start, length, process, thread = row.start, row.duration, 4000 + rank.rank, threads[str(row.place)]
        elif row.arguments["correlation"] in launched:
            start, length = row.node.start, row.node.ended - row.node.start
            process, thread = rank.rank % shape.per_node, int(row.place)
        else:
            continue
        events.append(
            {"ph": "X", "cat": row.category, "name": row.name, "pid": process, "tid": thread,
             "ts": round(5000 + (start - begin) * (1 + drift), 3), "dur": round(length * (1 + drift), 3),
             "args": row.arguments}
        )  # fmt: skip
    document = {
        "schemaVersion": 1, "deviceProperties": [{"id": rank.rank % shape.per_node, "name": "NVIDIA H100 80GB HBM3"}],
        "distributedInfo": {"backend": "nccl", "rank": rank.rank, "world_size": shape.ranks},
        "displayTimeUnit": "ms", "baseTimeNanoseconds": int(1.7e18 + (begin + offset_us) * 1000),
        "traceEvents": events, "traceName": f"rank{rank.rank}.json",
    }  # fmt: skip
    return msgspec.json.encode(document)
