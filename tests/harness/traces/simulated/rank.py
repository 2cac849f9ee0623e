"""A rank of a simulated job: its host launches work onto streams, and all that a profiler would record is kept.

Guarantees: with and without a fault the same random numbers are drawn, so that what differs is the fault. Times in µs.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.traces.simulated.dynamic import Batch, BatchSource, say_dimensions
from harness.traces.simulated.groups import ProcessGroup
from harness.traces.simulated.nodes import Work, WorkGraph
from harness.traces.simulated.shapes import LoopShape, SimulatedFault, of_run

COMPUTE, COLLECTIVES_FROM = 7, 20  # streams
_LAUNCH_US, _LATENCY_US, _QUEUE = 4.0, 3.0, 900
_KERNELS = {
    "allreduce": "AllReduce_Sum_bf16_RING_LL", "_allgather_base": "AllGather_RING_LL", "all_to_allv": "SendRecv",
    "_reduce_scatter_base": "ReduceScatter_Sum_bf16_RING_LL", "send": "SendRecv", "recv": "SendRecv",
}  # fmt: skip
Waits = Iterator[Work]  # a host's course: it yields what it waits for


@dataclass(frozen=True, slots=True)
class PlannedSend:
    """One part of a batch, a "send" to another rank or a "recv" from it; `pair` has what goes from one to the other."""

    name: str
    other: int
    pair: ProcessGroup
    elements: int


@dataclass(slots=True)
class RecordedRow:
    """One row of the trace: `node` has its times where it is work of the device."""

    category: str
    name: str
    place: str | int  # thread or stream
    start: float
    duration: float
    arguments: dict[str, Any]
    node: Work | None = None


class SimulatedRank:
    """Host, streams and recorded rows of one rank; without a profiler it has no rows."""

    def __init__(
        self,
        graph: WorkGraph,
        shape: LoopShape,
        fault: SimulatedFault,
        rank: int,
        seed: int,
        *,
        profiled: bool = True,
        run: int = 0,
    ) -> None:
        self.graph, self.shape, self.fault, self.rank = graph, shape, fault, rank
        self._profiled = profiled
        start, self._kernels, self._host, self._data, self._rare = (
            np.random.default_rng((seed, 20 + number, rank, *of_run(run))) for number in range(5)
        )
        speed, host_speed = (np.random.default_rng((seed, 25 + number, rank)) for number in range(2))
        self.time = 300 * float(start.random())
        self._speed = float(np.exp(speed.normal(0, shape.rank_spread)))
        self._host_speed = float(np.exp(host_speed.normal(0, 0.02)))
        self._lengths = np.random.default_rng((seed, 28, rank, *of_run(run))).normal(
            0, 1, shape.warm + shape.iterations + 1
        )
        self.streams: dict[int, Work] = {}
        self.rows: list[RecordedRow] = []
        self.thread = "main"
        self.iteration = -1
        self.borders: list[tuple[float, Work | None]] = []  # when each iteration began, and the last compute before it
        self.steps_per_iteration = 0
        self._step, self._correlation, self._external = 0, 10, 1
        self._queued: deque[Work] = deque()
        self._more = tuple(np.random.default_rng((seed, 31 + number, rank)) for number in range(3))
        more = fault.factor if self._is_at_fault("unequal_work") else 1.0
        self.batches = BatchSource(shape.dynamic, shape, seed, rank, more, run) if shape.dynamic is not None else None
        self.batch = Batch()

    # The host.

    def begin_iteration(self) -> None:
        self.iteration += 1
        self.steps_per_iteration = max(self.steps_per_iteration, self._step)
        self._step = 0
        self.borders.append((self.time, self.streams.get(COMPUTE)))

    def spend(self, usual_us: float, *, launches: bool = True) -> None:
        """The host's time for a small step, on the way to a launch unless it is said not to be."""
        noise = self.shape.host_noise
        taken = usual_us * math.exp(self._host.normal(0, noise) - noise**2 / 2) * self._slowness()
        hiccup = float(self._rare.exponential(60)) if self._rare.random() < 0.002 else 0.0
        self.time += 0.0 if launches and self.shape.graphs else taken + hiccup

    def _collect_garbage(self) -> None:
        """Python collects between two operators, and not while autograd's own thread works."""
        self._step += self.thread == "main"
        if self.thread == "main" and self._is_at_fault("gc") and self.iteration in self.fault.places:
            usually = max(self.steps_per_iteration, 5)
            if self._step == max(2, int(self.fault.places[self.iteration] * usually)):
                self.time += self.fault.of_iterations[self.iteration]

    def operator(self, name: str, begin: float, **arguments: Any) -> None:
        self._external += 1
        if self._profiled:
            self._record("cpu_op", name, begin, {"External id": self._external, **arguments})

    def annotate(self, name: str, begin: float) -> None:
        self._record("user_annotation", name, begin, {})

    def load(self, usual_us: float = 120.0) -> None:
        """The data loader's next batch."""
        self._collect_garbage()
        begin = self.time
        taken = self.shape.load * usual_us * float(np.exp(self._data.normal(0, 0.3)))
        slow = float(np.exp(self._data.normal(0, 0.15)))
        if self.fault.kind == "all_load":
            taken += self.fault.factor * slow
        if self._is_at_fault("data_loader"):
            taken += self.fault.of_iterations.get(self.iteration, 0.0)
        self.time += taken
        if self.batches is not None:
            self.batch = self.batches.draw()
        self.annotate("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", begin)

    def wait_for(self, node: Work | None, call: str = "cudaStreamSynchronize") -> Waits:
        begin = self.time
        if node is not None:
            if node.end is None:
                yield node
            self.time = max(self.time + 2, node.ended + 3)
        self._record("cuda_runtime", call, begin, {"cbid": 131})

    def keep_queue(self) -> Waits:
        """The driver lets no more than so many launches wait."""
        while len(self._queued) > _QUEUE:
            node = self._queued.popleft()
            if node.end is None:
                yield node
            self.time = max(self.time, node.ended)

    # Its device.

    def kernel(
        self,
        name: str,
        usual_us: float,
        operator: str,
        *,
        stream: int = COMPUTE,
        threads: int = 128,
        works: bool = True,
        tokens: float | None = None,
    ) -> Work:
        """A kernel of the model; without `works` it is none of what slows the model down.

        With `tokens` it depends on the batch's shape, where those are dynamic.
        """
        self._collect_garbage()
        dimensions: dict[str, Any] = {}
        if self.batches is not None and tokens is not None:
            shaped = self.batches.shape(name, tokens, threads)
            name, usual_us, threads = shaped.name, usual_us * shaped.factor, shaped.threads
            dimensions = say_dimensions(self.shape.dynamic, shaped.dimensions)
        begin = self.time
        launched = self._launch("cudaLaunchKernel")
        length = usual_us * math.exp(self._kernels.normal(0, self.shape.kernel_noise))
        length /= next((by for begin, by in self.shape.faster.items() if name.startswith(begin)), 1.0)
        more = self._more_work() if works else 1.0
        node = self._put(Work(launched, length * (self._device_slowness() * more if works else 1.0), []), stream)
        shape = {"grid": [int(threads * more), 1, 1], "block": [256, 1, 1]}
        says_grids = self.shape.dynamic is None or self.shape.dynamic.says_grids
        self._record_work("kernel", name, stream, node, shape if says_grids else {})
        self.operator(operator, begin, **dimensions)
        return node

    def run_more(self, run: Callable[[float], None]) -> None:
        """Runs the kernels that a rank has more beside the others' work, by random numbers of its own."""
        if self._is_at_fault("more_kernels"):
            usual = self._kernels, self._host, self._rare
            self._kernels, self._host, self._rare = self._more
            run(self.fault.factor)
            self._kernels, self._host, self._rare = usual

    def copy(self, name: str, usual_us: float, *, stream: int = COMPUTE) -> Work:
        launched = self._launch("cudaMemcpyAsync")
        length = usual_us * math.exp(self._kernels.normal(0, self.shape.kernel_noise))
        node = self._put(Work(launched, length, []), stream)
        self._record_work("gpu_memcpy", name, stream, node, {"bytes": 8 << 20})
        return node

    def copy_batch(self, usual_us: float = 40.0, *, stream: int = COMPUTE) -> Waits:
        """The batch to the device; the host waits for copies from pageable memory."""
        self._collect_garbage()
        begin = self.time
        slow = self.fault.factor if self._is_at_fault("slow_copy") else 1.0
        memory = "Pageable" if self.shape.pageable else "Pinned"
        node = self.copy(f"Memcpy HtoD ({memory} -> Device)", usual_us * slow, stream=stream)
        if self.shape.pageable:
            yield from self.wait_for(node)
        self.operator("aten::copy_", begin)
        self.operator("aten::to", begin)

    def collective(
        self,
        group: ProcessGroup,
        name: str,
        usual_us: float,
        *,
        stream: int,
        after: Sequence[Work] = (),
        elements: int,
    ) -> Work:
        self._collect_garbage()
        begin = self.time
        launched = self._launch("cudaLaunchKernelExC", 1.5)
        number, meeting = group.meet(self.rank, usual_us)
        node = self._put(Work(launched, 0.0, [*after], meeting), stream)
        metadata = group.describe(name, self.rank, elements) | (
            {"Seq": number} if self.shape.tells == "sequence" else {}
        )
        by_host = self.shape.tells == "host"
        kernel = f"ncclDevKernel_{_KERNELS[name]}(ncclDevKernelArgsStorage<4096ul>)"
        size = {"grid": [24, 1, 1], "block": [544, 1, 1]}
        self._record_work("kernel", kernel, stream, node, size if by_host else size | metadata)
        self.operator("record_param_comms", begin, **(metadata if by_host else {}))
        self.operator(f"c10d::{name.strip('_')}_", begin)
        return node

    def exchange(
        self, group: ProcessGroup, sends: Sequence[PlannedSend], usual_us: float, *, stream: int, after: Sequence[Work]
    ) -> Work:
        """Sends and receives launched together: a row of the host each, and one kernel behind them all."""
        self._collect_garbage()
        meetings, described = [], []
        for one in sends:
            begin = self.time
            self.spend(self.shape.host_us)
            number, meeting = one.pair.meet(self.rank, usual_us)
            meetings.append(meeting)
            metadata = group.describe(one.name, self.rank, one.elements)
            metadata |= {"Dst Rank" if one.name == "send" else "Src Rank": one.other}
            metadata |= {} if self.shape.tells == "group" else {"Seq": number}
            described.append(metadata)
            self.operator("record_param_comms", begin, **metadata)
            self.operator(f"c10d::{one.name}{'_' * (one.name == 'recv')}", begin)
        launched = self._launch("cudaLaunchKernelExC", 1.5)
        node = self._put(Work(launched, 0.0, [*after], batch=meetings), stream)
        size = {"grid": [24, 1, 1], "block": [544, 1, 1]}
        kernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
        metadata = described[0] if self.shape.names_first else {}
        self._record_work("kernel", kernel, stream, node, size | metadata)
        begin = self.time
        self.spend(2)
        self.operator("record_param_comms", begin, **group.describe("wait", self.rank, 0))
        return node

    def join(self, node: Work, stream: int = COMPUTE) -> None:
        """Work that the stream is given from here on waits for work of another stream."""
        before = [self.streams[stream]] if stream in self.streams else []
        self.streams[stream] = self.graph.add(Work(0.0, 0.0, [node, *before]))

    # What faults do.

    def _is_at_fault(self, kind: str) -> bool:
        return self.fault.kind == kind and self.fault.rank == self.rank

    def _slowness(self) -> float:
        return self._host_speed * (self.fault.factor if self._is_at_fault("slow_host") else 1.0)

    def _more_work(self) -> float:
        if self.batches is not None:
            return 1.0
        if self.fault.kind == "moving":
            return float(np.exp(self.fault.factor * self._lengths[self.iteration]))
        return self.fault.factor if self._is_at_fault("unequal_work") else 1.0

    def _device_slowness(self) -> float:
        if self.fault.kind == "heavy_stage" and self.rank in self.fault.ranks:
            return self._speed * self.fault.factor
        if self._is_at_fault("slow_gpu"):
            return self._speed * self.fault.factor
        if self._is_at_fault("throttling"):
            return self._speed * self.fault.of_iterations.get(self.iteration, 1.0)
        return self._speed

    # Rows.

    def _launch(self, call: str, steps: float = 1.0) -> float:
        self.spend(self.shape.host_us * steps)
        begin = self.time
        self.time += 0.0 if self.shape.graphs else _LAUNCH_US * self._slowness()
        self._correlation += 1
        self._record("cuda_runtime", call, begin, {"correlation": self._correlation, "cbid": 211})
        return self.time + _LATENCY_US

    def _put(self, node: Work, stream: int) -> Work:
        if stream in self.streams:
            node.follows.append(self.streams[stream])
        if stream == COMPUTE and self.shape.contention > 1:
            node.slowed = self.shape.contention
            node.beside = [other for number, other in self.streams.items() if number >= COLLECTIVES_FROM]
        self.streams[stream] = node
        self._queued.append(node)
        return self.graph.add(node)

    def _record(self, category: str, name: str, begin: float, arguments: dict[str, Any]) -> None:
        if self._profiled:
            self.rows.append(RecordedRow(category, name, self.thread, begin, self.time - begin, arguments))

    def _record_work(self, category: str, name: str, stream: int, node: Work, arguments: dict[str, Any]) -> None:
        if self._profiled:
            metadata = {
                "device": self.rank % self.shape.per_node,
                "stream": stream,
                "correlation": self._correlation,
                **arguments,
            }
            self.rows.append(RecordedRow(category, name, stream, 0.0, 0.0, metadata, node))
