"""One pipeline stage of a planted job: its ranks run one list of instructions, as vectors over the ranks.

Each rank has a host that launches, a compute stream, and one stream per kind of communication.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.traces.planted.shapes import Recorded

if TYPE_CHECKING:
    from harness.traces.planted.jobs import PlantedJob

US = 1_000
FIRST_STEP = 100


class Stage:
    def __init__(self, job: PlantedJob, number: int) -> None:
        self.job, self.number = job, number
        self.noise = np.random.default_rng([job.seed, number, 1])  # of the iterations ahead
        self.ranks = job.shape.stage(number)
        n = len(self.ranks)
        self.recorded = Recorded()
        self.host = np.zeros(n)
        self.streams: dict[str, np.ndarray] = {}
        self.sequence: dict[str, int] = {}
        self.correlation = 0
        self.iteration = 0
        self.finished: list[np.ndarray] = []  # when hosts and devices of the ranks are through, by iteration
        shape = job.shape
        index = np.arange(n).reshape(shape.dp, shape.tp)
        shards = index.reshape(shape.replicas, -1, shape.tp)
        self.groups = {
            "tp": list(index), "dp": list(index.T), "world": [np.arange(n)],
            "shard": [shards[r, :, t] for r in range(shape.replicas) for t in range(shape.tp)],
            "replica": [shards[:, s, t] for s in range(shards.shape[1]) for t in range(shape.tp)],
        }  # fmt: skip
        self.speed = job.static[self.ranks]
        self.grids: dict[float, np.ndarray] = {}
        self.links = {name: job.link(name, [self.ranks[g] for g in groups]) for name, groups in self.groups.items()}

    def run(self) -> Iterator[bool]:
        shape = self.job.shape
        for self.iteration in range(shape.iterations):
            if self.iteration == self.job.ahead:
                self.noise = np.random.default_rng([self.job.seed, self.number])
            begin = self.host.copy()
            yield from self._iterate()
            self.recorded.add(
                "user_annotation", f"ProfilerStep#{FIRST_STEP + self.iteration}", "host", begin, self.host - begin
            )
            self.finished.append(np.maximum(self.host, self._stream("compute")))

    # ------------------------------------------------------------------ the program

    def _iterate(self) -> Iterator[bool]:
        shape = self.job.shape
        self._load_data()
        if shape.pp > 1:
            warm = min(shape.pp - self.number - 1, shape.microbatches)
            forward = backward = 0
            for _ in range(warm):
                yield from self._forward(forward)
                forward += 1
            while backward < shape.microbatches:
                if forward < shape.microbatches:
                    yield from self._forward(forward)
                    forward += 1
                yield from self._backward(backward)
                backward += 1
        else:
            for batch in range(shape.microbatches):
                yield from self._forward(batch)
                yield from self._backward(batch)
        for handle in self._handles:
            self._join(handle)
        for number in range(4):
            self._kernel(f"adam_{number}", 0.5, batch=None)
        if shape.stray_ranks:
            self._stray(*shape.stray_ranks)
        if shape.asks_loss:
            self._wait_for_device()
        yield from self._settle()

    def _load_data(self) -> None:
        self._handles: list[np.ndarray] = []
        time = self.job.shape.data_us * US * np.exp(0.1 * self._normal())
        if self.job.fault.data_us is not None:
            time = time + self.job.fault.data_us[self.ranks, self.iteration] * US
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        self.recorded.add("user_annotation", name, "host", self.host, time)
        self.host = self.host + time
        self._pause()
        if self.job.shape.meets_on_host:
            self._meet()

    def _meet(self) -> None:
        """A barrier over gloo: the hosts wait for each other, and their devices run dry."""
        end = np.full(len(self.host), self.host.max() + 50 * US)
        self.recorded.add("cpu_op", "c10d::barrier", "host", self.host, np.full(len(self.host), 20 * US))
        began = self.host + 10 * US
        meeting = ("barrier", "world", 1, self._count("world"), -1)
        self.recorded.add("user_annotation", "gloo:barrier", "gloo", began, end - began, collective=meeting)
        self.host = end

    def _count(self, family: str) -> int:
        self.sequence[family] = self.sequence.get(family, 0) + 1
        return self.sequence[family]

    def _pause(self) -> None:
        pauses = self.job.fault.pause_us
        if pauses is None:
            return
        time = pauses[self.ranks, self.iteration] * US
        for place in np.flatnonzero(time):
            if self.job.fault.pause_is_seen:
                self.recorded.extra.append(
                    (
                        int(place),
                        "python_function",
                        "<built-in function collect>",
                        int(self.host[place]),
                        int(time[place]),
                    )
                )
        self.host = self.host + time

    def _forward(self, batch: int) -> Iterator[bool]:
        shape = self.job.shape
        if self.number > 0:
            yield from self._receive(self.number - 1, "forward", batch)
        family = "shard" if shape.replicas > 1 else "dp"
        ahead = self._collective("all_gather", family, 4 << 20, "gather") if shape.sharded else None
        for layer in range(self._layers()):
            if shape.sharded:
                following = self._collective("all_gather", family, 4 << 20, "gather")
                self._join(ahead)
                ahead = following
            for number in range(3):
                self._kernel(f"forward_{number}", 1.0, batch)
            if shape.tp > 1:
                self._join(self._collective("all_reduce", "tp", 8 << 20, "tensor"))
            del layer
        if self.number < shape.pp - 1:
            self._send(self.number + 1, "forward", batch)

    def _backward(self, batch: int) -> Iterator[bool]:
        shape = self.job.shape
        if self.number < shape.pp - 1:
            yield from self._receive(self.number + 1, "backward", batch)
        last = batch == shape.microbatches - 1
        layers = self._layers()
        every = max(1, layers // shape.buckets)
        for layer in range(layers):
            if shape.replicas > 1:
                self._join(self._collective("all_gather", "shard", 4 << 20, "gather"))
            for number in range(4):
                self._kernel(f"backward_{number}", 1.5, batch)
            tensor = self._collective("all_reduce", "tp", 8 << 20, "tensor") if shape.tp > 1 else None
            if not shape.close_behind:
                self._join(tensor)
            if shape.dp > 1 and last and (shape.sharded or (layer + 1) % every == 0):
                kind = "reduce_scatter" if shape.sharded else "all_reduce"
                family = "shard" if shape.replicas > 1 else "dp"
                behind = tensor if shape.close_behind else None
                self._handles.append(self._collective(kind, family, 25 << 20, "gradient", behind))
                if shape.replicas > 1:
                    self._handles.append(
                        self._collective("all_reduce", "replica", 25 << 18, "replica", self._handles[-1])
                    )
            if shape.close_behind:
                self._kernel("backward_weights", 0.5, batch)
                self._join(tensor)
        if self.number > 0:
            self._send(self.number - 1, "backward", batch)

    def _layers(self) -> int:
        fault, layers = self.job.fault, self.job.shape.layers
        heavy = fault.kind == "heavier_stage" and fault.stage == self.number
        return round(layers * fault.stage_factor) if heavy else layers

    # ------------------------------------------------------------------ instructions

    def _normal(self) -> np.ndarray:
        return self.noise.standard_normal(len(self.speed))

    def _stream(self, name: str) -> np.ndarray:
        if name not in self.streams:
            self.streams[name] = np.zeros(len(self.ranks))
        return self.streams[name]

    def _launch(self, call: str) -> np.ndarray:
        """The host launches; from when on the device may begin."""
        shape = self.job.shape
        usual = shape.kernel_us * US * shape.launch_share
        time = usual * np.exp(shape.host_noise * self._normal() - shape.host_noise**2 / 2)
        if self.job.fault.host is not None:
            time = time * self.job.fault.host[self.ranks, self.iteration]
        self.correlation += 1
        called = np.minimum(time * 0.5, 5 * US)
        end = self.host + time
        self.recorded.add("cuda_runtime", call, "host", end - called, called, self.correlation)
        self.host = end
        return end + 3 * US

    def _kernel(self, name: str, weight: float, batch: int | None) -> None:
        shape, fault = self.job.shape, self.job.fault
        launched = self._launch("cudaLaunchKernel")
        if fault.lengths is not None and batch is not None:
            length = np.repeat(fault.lengths[:, self.iteration, batch], shape.tp)
            time, grid = shape.kernel_us * US * weight * length * self.speed, np.rint(512 * weight * length)
        else:
            time, grid = shape.kernel_us * US * weight * self.speed, self._usual_grid(weight)
        time = time * np.exp(shape.kernel_noise * self._normal())
        if fault.device is not None:
            time = time * fault.device[self.ranks, self.iteration]
        start = np.maximum(launched, self._stream("compute"))
        if self._handles:
            time = np.where(start < self._handles[-1], time * shape.contention, time)
        self.streams["compute"] = start + time
        self.recorded.add("kernel", name, "compute", start, time, self.correlation, grid)

    def _usual_grid(self, weight: float) -> np.ndarray:
        if weight not in self.grids:
            self.grids[weight] = np.full(len(self.ranks), np.rint(512 * weight))
        return self.grids[weight]

    def _collective(
        self, kind: str, family: str, size: int, stream: str, behind: np.ndarray | None = None
    ) -> np.ndarray:
        """`behind`: the end of a collective on another stream that this one's stream waits for."""
        launched = self._launch("cudaLaunchKernelExC")
        ready = np.maximum(launched, self._stream(stream))
        if not (self.job.shape.beside and kind == "all_gather"):
            ready = np.maximum(ready, self._stream("compute"))
        if behind is not None:
            ready = np.maximum(ready, behind)
        end = np.zeros(len(ready))
        for group, link in zip(self.groups[family], self.links[family], strict=True):
            transfer = (20 * US + size / 150) * link * np.exp(0.04 * self.noise.standard_normal())
            end[group] = ready[group].max() + transfer
        self.streams[stream] = end
        number = self._count(family)
        name = {"all_reduce": "AllReduce_Sum_bf16_RING_LL", "all_gather": "AllGather_RING_LL"}.get(
            kind, "ReduceScatter_Sum_bf16_RING_LL"
        )
        self.recorded.add(
            "kernel",
            f"ncclDevKernel_{name}",
            stream,
            ready,
            end - ready,
            self.correlation,
            None,
            (kind, family, size // 2, number, -1),
        )
        return end

    def _join(self, handle: np.ndarray | None) -> None:
        if handle is not None:
            self.streams["compute"] = np.maximum(self._stream("compute"), handle)

    def _wait_for_device(self) -> None:
        end = np.maximum(self.host, self._stream("compute"))
        self.correlation += 1
        self.recorded.add("cuda_runtime", "cudaStreamSynchronize", "host", self.host, end - self.host, self.correlation)
        self.host = end

    def _stray(self, sender: int, receiver: int) -> None:
        """A few bytes from one rank of the stage to another: a logged value, no part of the program."""
        if not np.isin((sender, receiver), self.ranks).all():
            return
        launched = self._launch("cudaLaunchKernelExC")
        ready = np.maximum(launched, self._stream("compute"))
        places = [int(np.flatnonzero(self.ranks == rank)[0]) for rank in (sender, receiver)]
        end = ready[places].max() + 4 * US
        for place, kind, other in zip(places, ("send", "recv"), (receiver, sender), strict=True):
            start, length = np.full(len(ready), np.nan), np.full(len(ready), np.nan)
            start[place], length[place] = ready[place], end - ready[place]
            self.recorded.add(
                "kernel", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "stray", start, length,
                self.correlation, None, (kind, "stray", 4, -1, other),
            )  # fmt: skip
        self.streams["compute"][places[1]] = max(self.streams["compute"][places[1]], end)

    # ------------------------------------------------------------------ between stages

    def _post(self, other: int, way: str, batch: int, stream: str) -> tuple[tuple[Any, ...], np.ndarray, int]:
        launched = self._launch("cudaLaunchKernelExC")
        ready = np.maximum(launched, self._stream(stream))
        if not (self.job.shape.beside and stream.startswith("receive")):
            ready = np.maximum(ready, self._stream("compute"))
        ends = (self.number, other) if stream.startswith("send") else (other, self.number)
        return (*ends, way, batch, self.iteration), ready, self.correlation

    def _send(self, other: int, way: str, batch: int) -> None:
        """Launched and left: its end is known when the receiver has come."""
        stream = f"send_{way}"
        key, ready, correlation = self._post(other, way, batch, stream)
        self._pending = [*getattr(self, "_pending", []), (key, stream, ready, correlation, other)]
        self.job.posts[key] = (ready, self.number)

    def _receive(self, other: int, way: str, batch: int) -> Iterator[bool]:
        stream = f"receive_{way}"
        key, ready, correlation = self._post(other, way, batch, stream)
        while key not in self.job.posts:
            yield True
        sent, _ = self.job.posts[key]
        pairs = [np.array([a, b]) for a, b in zip(self.job.shape.stage(other), self.ranks, strict=True)]
        transfer = (15 * US + (8 << 20) / 100) * self.job.link("pp", pairs)
        transfer = transfer * np.exp(0.04 * self._normal())
        # A send behind another one begins when that has ended.
        earlier = self.job.ends.get((key[0], key[1], way), np.zeros(len(ready)))
        end = np.maximum(np.maximum(sent, earlier), ready) + transfer
        self.job.ends[key] = end
        self.job.ends[key[0], key[1], way] = end
        self.streams[stream] = end
        self._record_pair("recv", stream, ready, end, correlation, other)
        self._join(end)

    def _settle(self) -> Iterator[bool]:
        """Records the sends of this iteration once their receivers have come."""
        before: dict[str, np.ndarray] = {}
        for key, stream, ready, correlation, other in getattr(self, "_pending", []):
            while key not in self.job.ends:
                yield True
            start = np.maximum(ready, before.get(stream, self._stream(stream)))
            end = np.maximum(self.job.ends[key], start + US)
            before[stream] = end
            self._record_pair("send", stream, start, end, correlation, other)
        self.streams |= before
        self._pending = []

    def _record_pair(
        self, kind: str, stream: str, start: np.ndarray, end: np.ndarray, correlation: int, other: int
    ) -> None:
        self.recorded.add(
            "kernel", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", stream, start, end - start,
            correlation, None, (kind, "pp", 4 << 20, self._count(f"pp {kind} {other}"), other),
        )  # fmt: skip
