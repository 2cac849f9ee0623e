"""Draws simulated jobs and their faults from a seed, with the right answer of each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from harness.traces.simulated.jobs import EventJob
from harness.traces.simulated.shapes import DynamicShapes, LoopShape, SimulatedFault

HEALTHY: Final = ("none", "moving", "all_load")
COMMON: Final = ("slow_gpu", "slow_host", "data_loader", "gc", "throttling", "none")
OF_HOSTS: Final = ("slow_host", "data_loader", "gc", "none")
OF_DYNAMIC: Final = (*COMMON, "unequal_work", "more_kernels")
OF_CHANGING_SHAPES: Final = ("lengths", "experts")
"""Beginnings of the names of layouts whose work moves from rank to rank."""
OF_GROUPS: Final = ("slow_group", "heavy_stage")
OF_PIPELINES: Final = ("slow_gpu", "slow_host", "data_loader", "none")
UNNUMBERED, UNLAUNCHED = "unnumbered_", "unlaunched_"
"""Before the name of a layout: no sequence numbers; and no calls of the runtime either."""
# Faults of each layout.
LAYOUTS: Final[dict[str, tuple[str, ...]]] = {
    "ddp": (*COMMON, "unequal_work", "moving", "all_load"), "accumulation": COMMON, "tp": (*COMMON, "slow_link"),
    "fsdp": (*COMMON, "unequal_work"), "hsdp": (*COMMON, "slow_link"), "launch": OF_HOSTS, "launch_hsdp": OF_HOSTS,
    "pipeline": (*COMMON, "slow_link", *OF_GROUPS),
    "sparse": ("slow_gpu", "slow_host", "data_loader", "slow_copy", "gc", "none"),
    "lengths": OF_DYNAMIC, "lengths_fsdp": OF_DYNAMIC, "experts": OF_DYNAMIC, "experts_fsdp": OF_DYNAMIC,
    "batched": OF_PIPELINES, "interleaved": OF_PIPELINES,
}  # fmt: skip
CAUSES: Final = {
    "slow_gpu": "slow_gpu", "slow_host": "host", "data_loader": "data_loading", "gc": "garbage_collection",
    "throttling": "throttling", "slow_link": "network", "slow_group": "network", "slow_copy": "data_loading",
    "unequal_work": "unequal_work", "more_kernels": "unequal_work", "heavy_stage": "stage_imbalance",
}  # fmt: skip
_BATCH_COPY_US: Final = 300
_LEAST_SEEN: Final = 3
_SIZES: Final[dict[str, list[dict[str, int]]]] = {
    "ddp": [{"dp": 4}, {"dp": 8}, {"dp": 8}, {"dp": 12}], "accumulation": [{"dp": 4}, {"dp": 8}],
    "tp": [{"dp": 2, "tp": 4}, {"dp": 4, "tp": 2}, {"dp": 3, "tp": 4}, {"dp": 4, "tp": 4}],
    "fsdp": [{"shards": 4}, {"shards": 8}, {"shards": 8}],
    "hsdp": [{"shards": 4, "dp": 2}, {"shards": 2, "dp": 4}, {"shards": 4, "dp": 4}],
    "lengths": [{"dp": 4}, {"dp": 8}, {"dp": 8}], "lengths_fsdp": [{"shards": 4}, {"shards": 8}],
    "experts": [{"dp": 4}, {"dp": 8}], "experts_fsdp": [{"shards": 4}, {"shards": 8}],
    "launch": [{"dp": 4}, {"dp": 8}], "sparse": [{"dp": 4}, {"dp": 8}],
    "pipeline": [{"pp": 4, "dp": 4}, {"pp": 2, "dp": 4}, {"pp": 4, "dp": 2}, {"pp": 3, "dp": 3}],
    "batched": [{"pp": 2, "dp": 4}, {"pp": 4, "dp": 2}, {"pp": 4, "dp": 4}, {"pp": 3, "dp": 3}, {"pp": 8, "dp": 2}],
    "interleaved": [{"pp": 4, "dp": 2}, {"pp": 3, "dp": 3}, {"pp": 4, "dp": 4}, {"pp": 8, "dp": 2}],
}  # fmt: skip
_LOOPS: Final = {
    "fsdp": "sharded",
    "hsdp": "sharded",
    "launch_hsdp": "sharded",
    "pipeline": "staged",
    "sparse": "recommends",
    "lengths_fsdp": "sharded",
    "experts_fsdp": "sharded",
    "batched": "batched",
    "interleaved": "batched",
}


@dataclass(frozen=True)
class SimulatedCase:
    """A job with its fault, and what an iteration would save without it; a heavy stage's work would go to all stages.

    What comes and goes can be told where three iterations have it, beside the first, at which the window's edge lies,
    and one has not.
    """

    layout: str
    kind: str
    seed: int
    job: EventJob
    gain: float

    @property
    def identifiable(self) -> bool:
        recorded = [number for number in self.job.fault.of_iterations if number > self.job.shape.warm]
        comes_and_goes = _LEAST_SEEN <= len(recorded) < self.job.shape.iterations - 1
        return self.kind not in ("gc", "throttling") or comes_and_goes


def faults_of(layout: str) -> tuple[str, ...]:
    """The faults of a layout; without numbers or launches those of the layout that has them."""
    return LAYOUTS[layout.removeprefix(UNNUMBERED).removeprefix(UNLAUNCHED)]


def draw_simulated(layout: str, kind: str, seed: int) -> SimulatedCase:
    source = np.random.default_rng((seed, 100))
    plain = layout.removeprefix(UNNUMBERED).removeprefix(UNLAUNCHED)
    shape = _draw_shape(plain, source)
    if plain != layout:
        shape = replace(shape, tells="group", launches=not layout.startswith(UNLAUNCHED))
        layout = plain
    if kind == "slow_copy":
        shape = replace(shape, pageable=True)
    healthy = EventJob(shape, SimulatedFault(), seed, profiled=kind == "none")
    if kind == "none":
        return SimulatedCase(layout, kind, seed, healthy, 0.0)
    fault = _plant(kind, layout, shape, healthy.iteration_us, source)
    job = EventJob(shape, fault, seed)
    mended = _share_out(job) if kind == "heavy_stage" else healthy
    gain = 0.0 if kind in HEALTHY else 1 - mended.iteration_us / job.iteration_us
    return SimulatedCase(layout, kind, seed, job, gain)


def _share_out(job: EventJob) -> EventJob:
    """The same job with a heavy stage's work, and that of the last stage, shared out evenly: work cannot vanish."""
    shape, fault = job.shape, job.fault
    levels = [1.0] * (shape.pp - 1) + [shape.last_stage]
    levels[fault.ranks[0] // shape.dp] *= fault.factor
    even = replace(fault, factor=float(np.mean(levels)), ranks=tuple(range(shape.ranks)))
    return EventJob(replace(shape, last_stage=1.0), even, job.seed)


def _draw_shape(layout: str, source: np.random.Generator) -> LoopShape:
    def pick(*choices: Any) -> Any:
        return choices[int(source.integers(len(choices)))]

    shape = LoopShape(
        loop=_LOOPS.get(layout, "replicated"),
        layers=pick(3, 4, 5), buckets=pick(1, 2, 3), iterations=pick(8, 10, 12, 16),
        kernel_us=source.uniform(70, 220), host_us=source.uniform(4, 9), net_us=source.uniform(60, 400),
        asks_loss=source.random() < 0.5, holds_gathers=source.random() < 0.6, pageable=source.random() < 0.3,
        rank_spread=source.uniform(0.002, 0.008), host_noise=source.uniform(0.15, 0.4), contention=pick(1.0, 1.0, 1.06),
        marks=pick("profiler_step", "optimizer"), tells=pick("sequence", "sequence", "group", "host"),
        annotates=source.random() < 0.5,
    )  # fmt: skip
    size = pick(*_SIZES["hsdp" if layout == "launch_hsdp" else layout])
    of_layout: dict[str, Callable[[], dict[str, Any]]] = {
        "accumulation": lambda: {"accumulation": pick(2, 3), "layers": pick(2, 3)},
        "tp": lambda: {"layers": 3, "net_us": source.uniform(40, 150)},
        "pipeline": lambda: {
            "layers": pick(1, 2), "microbatches": pick(4, 6, 8), "net_us": source.uniform(60, 200),
            "last_stage": source.uniform(1.0, 1.1),
        },
        "batched": lambda: _of_batches(source) | {"microbatches": pick(4, 6, 8, 12)},
        "interleaved": lambda: _of_batches(source)
        | {"microbatches": size["pp"] * pick(1, 2), "chunks": pick(2, 3), "layers": 1},
        "launch": partial(_of_launch_bound, source), "launch_hsdp": partial(_of_launch_bound, source),
    }  # fmt: skip
    if layout.startswith(OF_CHANGING_SHAPES):
        dynamic = _draw_dynamic(layout, pick, source)
        host_rows = dynamic.host_rows or shape.tells != "sequence"  # or nothing would tell which collectives meet
        shape = replace(shape, dynamic=replace(dynamic, host_rows=host_rows))
    return replace(shape, **size, **of_layout.get(layout, dict)())


def _draw_dynamic(layout: str, pick: Callable[..., Any], source: np.random.Generator) -> DynamicShapes:
    of_experts = {"experts": pick(2, 4, 8), "grouped": source.random() < 0.3, "skips": source.random() < 0.3}
    return DynamicShapes(
        spread=source.uniform(0.05, 0.3), expert_spread=source.uniform(0.05, 0.3), evenness=source.uniform(1, 8),
        quadratic=source.random() < 0.3, tiles=source.random() < 0.5, tile_border=source.uniform(0.3, 1.2),
        tuned=source.random() < 0.4, fixed_grids=source.random() < 0.25, says_grids=source.random() < 0.9,
        says_inputs=source.random() < 0.35, host_rows=source.random() < 0.85,
        **(of_experts if layout.startswith("experts") else {}),
    )  # fmt: skip


def _of_batches(source: np.random.Generator) -> dict[str, Any]:
    return {
        "layers": int(source.integers(1, 3)), "net_us": source.uniform(60, 200),
        "last_stage": source.uniform(1.0, 1.1), "names_first": source.random() < 0.5,
        "synchronizes": source.random() < 0.5,
    }  # fmt: skip


def _of_launch_bound(source: np.random.Generator) -> dict[str, float]:
    return {"kernel_us": source.uniform(5, 12), "host_us": source.uniform(16, 26), "net_us": source.uniform(20, 50)}


def _plant(kind: str, layout: str, shape: LoopShape, usual_us: float, source: np.random.Generator) -> SimulatedFault:
    rank, stage = int(source.integers(shape.ranks)), int(source.integers(shape.pp))
    of_stage = tuple(range(stage * shape.dp, (stage + 1) * shape.dp))
    iterations = range(shape.warm + shape.iterations)
    if kind == "data_loader":
        rank = rank % shape.dp if shape.pp > 1 else rank  # the first stage loads
        batches = shape.accumulation * (shape.microbatches if shape.pp > 1 else 1)
        ahead = 1.0 if shape.asks_loss or layout == "sparse" else 1.5
        late_us = source.uniform(0.15, 0.6) * usual_us / batches * ahead
        slow = {number: float(late_us * np.exp(source.normal(0, 0.25))) for number in iterations}
        return SimulatedFault(kind, rank, of_iterations=slow)
    if kind == "gc":
        pause_us, often = source.uniform(0.25, 0.8) * usual_us, source.uniform(0.4, 0.95)
        chosen = [number for number in iterations if source.random() < often]
        pauses = {number: float(pause_us * np.exp(source.normal(0, 0.2))) for number in chosen}
        return SimulatedFault(kind, rank, of_iterations=pauses, places={n: source.uniform(0.05, 0.95) for n in chosen})
    if kind == "throttling":
        factor = source.uniform(1.2, 1.7)
        chosen = [number for number in iterations if source.random() < 0.65]
        if source.random() < 0.5:
            length = int(source.integers(max(3, shape.iterations // 3), shape.iterations - 2))
            start = shape.warm + int(source.integers(0, shape.iterations - length + 1))
            chosen = list(range(start, start + length))
        return SimulatedFault(
            kind, rank, of_iterations={n: float(factor * np.exp(source.normal(0, 0.03))) for n in chosen}
        )
    factors = {
        "slow_gpu": (1.1, 1.6), "slow_host": (1.4, 2.5) if layout.startswith("launch") else (3, 12),
        "unequal_work": (1.15, 1.6), "more_kernels": (0.4, 1.5), "moving": (0.08, 0.25),
        "all_load": (0.3 * usual_us, usual_us), "slow_link": (3, 8), "slow_group": (4, 15), "heavy_stage": (1.15, 1.5),
        "slow_copy": (1 + 0.3 * usual_us / _BATCH_COPY_US, 1 + 0.8 * usual_us / _BATCH_COPY_US),
    }  # fmt: skip
    links = {"tp": ("tp",), "hsdp": ("shard",), "pipeline": ("dp", "p2p")}
    groups = (f"dp{stage}",) if kind == "slow_group" else links.get(layout, ())
    return SimulatedFault(kind, rank, source.uniform(*factors[kind]), groups=groups, ranks=of_stage)
