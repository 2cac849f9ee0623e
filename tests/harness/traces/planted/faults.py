"""The cases of the straggler bench:

job shapes, faults and noise, drawn from a seed, with the right answer of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from fleetprof_analyzer.rank.communication.extraction import extract_operations
from fleetprof_analyzer.rank.communication.operations import RankOperations
from fleetprof_analyzer.rank.iterations import RecordingTerms, find_iterations
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace

from harness.traces.planted.jobs import PlantedJob, cost_when_lasting
from harness.traces.planted.shapes import JobShape, PlantedFault, without_fault
from harness.traces.planted.traces_of_jobs import Clarity, samples_of, traces_of

FAULTS = ("slow_gpu", "slow_host", "data_loader", "garbage_collection", "slow_link", "throttling", "heavier_stage")
OFTEN = ("collection_often", "throttling_often")  # in most iterations, but not in all
NO_FAULTS = ("none", "moving_lengths", "pauses_everywhere")
_KINDS = (FAULTS, NO_FAULTS, OFTEN)
CAUSES = {
    "slow_gpu": "slow_gpu", "slow_host": "host", "data_loader": "data_loading",
    "garbage_collection": "garbage_collection", "slow_link": "network", "throttling": "throttling",
    "heavier_stage": "stage_imbalance", "collection_often": "garbage_collection", "throttling_often": "throttling",
}  # fmt: skip

SHAPES = (
    JobShape(dp=8), JobShape(dp=16, microbatches=2), JobShape(dp=16, sharded=True), JobShape(dp=32, layers=4),
    JobShape(dp=4, tp=4), JobShape(dp=2, tp=8, layers=4), JobShape(dp=8, tp=4, layers=4),
    JobShape(dp=4, pp=4, microbatches=6, layers=3, kernel_us=300), JobShape(dp=4, tp=2, pp=2, microbatches=4, layers=3),
    JobShape(dp=4, tp=4, pp=4, microbatches=6, layers=2, kernel_us=300), JobShape(dp=64, layers=3),
    JobShape(pp=8, dp=1, microbatches=12, layers=2), JobShape(dp=16, layers=4, meets_on_host=True),
)  # fmt: skip
LARGE_SHAPES = (
    JobShape(dp=128, layers=3), JobShape(dp=256, layers=2), JobShape(dp=16, tp=8, layers=3),
    JobShape(dp=8, tp=4, pp=4, microbatches=6, layers=2),
    JobShape(dp=16, tp=4, pp=4, microbatches=6, layers=1, kernel_us=800),
)  # fmt: skip


@dataclass(frozen=True)
class FaultCase:
    """A job with its fault; `gain` is what the fault costs a job that goes on, from simulating it without the fault."""

    kind: str
    shape: JobShape
    fault: PlantedFault
    seed: int
    clarity: Clarity
    gain: float
    identifiable: bool

    @property
    def culprits(self) -> list[int]:
        """The ranks that may be named first."""
        if self.kind == "heavier_stage":
            return [int(rank) for rank in self.shape.stage(self.fault.stage)]
        return [self.fault.rank] if self.fault.rank >= 0 else []


def draw(
    kind: str, seed: int, shapes: Sequence[JobShape] = SHAPES, *, launch_shares: Sequence[float] = (0.2, 0.5, 0.8),
    sequence: bool | None = None,
) -> tuple[FaultCase, list[Trace], PlantedJob]:  # fmt: skip
    """One case with its traces. `sequence`: whether collectives say their number; None: most do."""
    streams = {kind: 100 * number + at for number, kinds in enumerate(_KINDS) for at, kind in enumerate(kinds)}
    source = np.random.default_rng([seed, streams[kind]])
    fitting = [shape for shape in shapes if _fits(kind, shape)]
    if kind == "slow_link" and source.random() < 0.7:
        fitting = [shape for shape in fitting if _identifiable(kind, shape, PlantedFault())]
    shape = fitting[int(source.integers(len(fitting)))]
    shape = replace(
        shape,
        kernel_noise=float(source.choice([0.01, 0.02, 0.05])),
        rank_spread=float(source.choice([0.003, 0.006, 0.015])),
        launch_share=float(source.choice(launch_shares)),
        asks_loss=bool(source.random() < 0.7),
        iterations=int(source.choice([8, 8, 10, 12])),
    )
    if kind == "slow_host" and max(launch_shares) < 1:
        shape = replace(shape, launch_share=float(source.uniform(0.7, 0.95)))
    if kind in ("data_loader", "garbage_collection", "collection_often", "pauses_everywhere"):
        # Where the host never waits for its device, it runs ahead, and such a fault costs nothing.
        shape = replace(shape, asks_loss=True)
    fault = _plant(kind, shape, source)
    job = PlantedJob(shape, fault, seed)
    most = bool(source.random() < 0.7)
    clarity = Clarity(sequence=most if sequence is None else sequence, pair_sequence=sequence is True)
    gain = 0.0 if kind in NO_FAULTS else cost_when_lasting(shape, fault, _mended(shape, fault), seed)
    return (
        FaultCase(kind, shape, fault, seed, clarity, gain, _identifiable(kind, shape, fault)),
        traces_of(job, clarity, seed),
        job,
    )


def gain_of_usual_devices(case: FaultCase, job: PlantedJob, ranks: Sequence[int]) -> float:
    """The saving of a job without a fault if the devices of `ranks` were like the median of their stage's others.

    Devices differ by chance, so in a healthy job too one may truly hold the others up.
    """
    device = np.ones((case.shape.ranks, case.shape.iterations))
    chosen = np.array(ranks, np.int64)
    for stage in job.stages:
        here, others = np.intersect1d(stage.ranks, chosen), np.setdiff1d(stage.ranks, chosen)
        if len(others):
            device[here] = (np.median(job.static[others]) / job.static[here])[:, None]
    mended = PlantedJob(case.shape, replace(case.fault, device=device), case.seed)
    return 1 - mended.length_ns / job.length_ns


def _mended(shape: JobShape, fault: PlantedFault) -> PlantedFault:
    """Without the fault; a heavy stage's work cannot vanish, so all stages share it."""
    if fault.kind != "heavier_stage":
        return without_fault(fault)
    layers = shape.layers * (shape.pp - 1) + round(shape.layers * fault.stage_factor)
    return PlantedFault(device=np.full((shape.ranks, shape.iterations), layers / (shape.layers * shape.pp)))


def operations_of(job: PlantedJob, traces: Sequence[Trace]) -> list[RankOperations]:
    """The operations that the analyzer keeps of the traces."""
    found = []
    for trace in traces:
        samples = samples_of(job, trace)
        iterations = find_iterations(trace, samples, RecordingTerms(), Problems())
        operations = extract_operations(trace, iterations, samples, rank_number=trace.metadata.rank)
        assert operations is not None
        found.append(operations)
    return found


def _fits(kind: str, shape: JobShape) -> bool:
    if kind == "heavier_stage":
        return shape.pp > 1
    # In a pure pipeline nobody does the same work; the report says so (`unidentifiable`).
    return shape.dp > 1 or kind not in ("slow_host", "data_loader")


def _identifiable(kind: str, shape: JobShape, fault: PlantedFault) -> bool:
    """Tells whether traces can tell the rank.

    Pauses must be three, the window's edge apart; a slow link needs several groups of the rank that have sisters.
    """
    if kind == "garbage_collection":
        assert fault.pause_us is not None
        return int((fault.pause_us[fault.rank, 1:] > 0).sum()) >= 3
    if kind != "slow_link":
        return True
    families = (shape.tp > 1 and shape.dp * shape.pp > 1) + (shape.dp > 1 and shape.tp > 1)
    return families + (shape.pp > 2 and shape.dp * shape.tp > 1) >= 2


def _plant(kind: str, shape: JobShape, source: np.random.Generator) -> PlantedFault:
    ranks, count = shape.ranks, shape.iterations
    rank = int(source.integers(ranks))
    ones = np.ones((ranks, count))
    # A pause before the window's first collective is hidden by the window's edge: most cases have three others.
    some = 1 + np.sort(source.choice(count - 1, size=int(source.integers(2, count // 2 + 1)), replace=False))
    length_us = _length_us(shape)
    if kind == "slow_gpu":
        ones[rank] = source.uniform(1.08, 1.4)
        return PlantedFault(kind, rank, device=ones)
    if kind == "throttling":
        start = int(source.integers(0, count - 4))
        stop = min(start + int(source.integers(3, count - 3)), count)
        ones[rank, start:stop] = source.uniform(1.15, 1.6)
        clocks = np.full((ranks, count), 1755.0) + source.normal(0, 5, (ranks, count))
        clocks[rank] /= ones[rank]
        return PlantedFault(kind, rank, device=ones, clock_megahertz=clocks if source.random() < 0.5 else None)
    if kind in OFTEN:
        often = source.permutation(count) < source.integers(2, 2 + count // 4)  # without it: two, or a few more
        if kind == "throttling_often":
            ones[rank, ~often] = source.uniform(1.15, 1.6)
            return PlantedFault(kind, rank, device=ones)
        ones[:] = 0
        ones[rank, ~often] = length_us * source.uniform(0.08, 0.5, int((~often).sum()))
        return PlantedFault(kind, rank, pause_us=ones, pause_is_seen=False)
    if kind == "slow_host":
        ones[rank] = source.uniform(1.5, 3)
        return PlantedFault(kind, rank, host=ones)
    if kind == "data_loader":
        ones[:] = 0
        ones[rank] = length_us * source.uniform(0.05, 0.4) * np.exp(0.2 * source.standard_normal(count))
        return PlantedFault(kind, rank, data_us=ones)
    if kind == "garbage_collection":
        ones[:] = 0
        ones[rank, some] = length_us * source.uniform(0.08, 0.5, len(some))
        return PlantedFault(kind, rank, pause_us=ones, pause_is_seen=bool(source.random() < 0.5))
    if kind == "slow_link":
        families = ("tp", "dp", "pp") if shape.tp > 1 or shape.pp > 1 else ("dp",)
        return PlantedFault(
            kind, rank, link_ranks=(rank,), link_families=families, link_factor=float(source.uniform(2, 8))
        )
    if kind == "heavier_stage":
        factor = max(float(source.uniform(1.25, 1.6)), 1 + 1 / shape.layers)
        return PlantedFault(kind, stage=int(source.integers(shape.pp)), stage_factor=factor)
    if kind == "moving_lengths":
        lengths = np.exp(0.25 * source.standard_normal((shape.dp, count, shape.microbatches)))
        return PlantedFault(kind, lengths=lengths)
    if kind == "pauses_everywhere":
        ones[:] = np.where(
            source.random((ranks, count)) < 0.25, length_us * source.uniform(0.1, 0.4, (ranks, count)), 0
        )
        return PlantedFault(kind, pause_us=ones, pause_is_seen=bool(source.random() < 0.5))
    return PlantedFault(kind)


def _length_us(shape: JobShape) -> float:
    """About how long an iteration lasts."""
    kernels = shape.layers * (3 + 6) * shape.microbatches + 2
    return shape.data_us + shape.kernel_us * kernels * (1 + (shape.pp - 1) / max(shape.microbatches, 1) / 2)
