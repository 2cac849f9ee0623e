"""Reports of jobs whose iterations are drawn from known distributions: what a comparison must and must not find."""

from typing import Any

import numpy as np
from fleetprof_api.report.report import Iteration, Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import CommunicationStatistics, KernelStatistics

MS = 1_000_000
# Parts of an iteration of 100 ms, and how far each goes up and down with its neighbours in time.
COMPUTE, EXPOSED, IDLE = 70 * MS, 20 * MS, 10 * MS


def dependent_noise(random: np.random.Generator, count: int, dependence: float, heavy: bool = False) -> np.ndarray:
    """A first-order autoregression of deviation 1."""
    drawn = random.standard_t(3, count + 30) / 3**0.5 if heavy else random.normal(size=count + 30)
    noise = drawn.copy()
    for at in range(1, len(noise)):
        noise[at] = dependence * noise[at - 1] + (1 - dependence**2) ** 0.5 * drawn[at]
    return noise[30:]


def simulate(
    seed: int,
    *,
    ranks: int = 4,
    iterations: int = 10,
    noise: float = 0.01,
    dependence: float = 0.0,
    heavy: bool = False,
    compute: float = 1.0,
    exposed: float = 1.0,
    first: int = 100,
    **fields: Any,
) -> Report:
    """A job whose common noise has the deviation `noise`; ranks differ by a little of their own."""
    random = np.random.default_rng(seed)
    common = [1 + noise * dependent_noise(random, iterations, dependence, heavy) for _ in range(3)]
    made = []
    for number in range(ranks):
        own = 1 + noise / 4 * random.normal(size=(3, iterations))
        parts = [
            np.maximum(whole * factor * shared * mine, 0).astype(int).tolist()
            for whole, factor, shared, mine in zip(
                (COMPUTE, EXPOSED, IDLE), (compute, exposed, 1.0), common, own, strict=True
            )
        ]
        made.append(_rank(number, ranks, first, list(zip(*parts, strict=True)), **fields))
    if not iterations:
        return Report(title=f"simulated {seed}", ranks=made)
    return Report(title=f"simulated {seed}", ranks=made, kernels=_kernels(made), communication=_collectives(made))


def _rank(number: int, world: int, first: int, parts: list[tuple[int, int, int]], **fields: Any) -> Rank:
    times = [
        TimeBreakdown(span=sum(part), compute=part[0], exposed_communication=part[1], idle=part[2]) for part in parts
    ]
    start = 0
    iterations = []
    for index, time_ns in enumerate(times, first):
        iterations.append(Iteration(index=index, start_ns=start, duration_ns=time_ns.span, time_ns=time_ns))
        start += time_ns.span
    settings: dict[str, Any] = {
        "kind": "gpu", "time_basis": "device", "iterations_from": "optimizer_step", "index_from": "agent",
        "device_name": "NVIDIA H100", "world_size": world, "torch_version": "2.15.0",
    }  # fmt: skip
    return Rank(
        rank=number,
        source=f"ranks/{number}/trace.json.gz",
        time_ns=TimeBreakdown(span=start),
        iterations=iterations,
        **settings | fields,
    )


def _kernels(ranks: list[Rank]) -> list[KernelStatistics]:
    """One kernel that is all of compute in ten launches an iteration, and one that never changes."""
    launches = np.array(
        [i.time_ns.compute / 10 for rank in ranks for i in rank.iterations if i.time_ns is not None for _ in range(10)]
    )
    return [_kernel("gemm", launches, len(ranks)), _kernel("relu", np.full(len(launches), 100_000.0), len(ranks))]


def _kernel(name: str, launches: np.ndarray, ranks: int) -> KernelStatistics:
    return KernelStatistics(
        name=name, work_class="compute", count=len(launches), total_ns=int(launches.sum()),
        mean_ns=int(launches.mean()), min_ns=int(launches.min()), max_ns=int(launches.max()),
        deviation_ns=int(launches.std()), p50_ns=0, p90_ns=0, p99_ns=0, ranks=ranks,
    )  # fmt: skip


def _collectives(ranks: list[Rank]) -> list[CommunicationStatistics]:
    times = [i.time_ns.exposed_communication for rank in ranks for i in rank.iterations if i.time_ns is not None]
    return [
        CommunicationStatistics(
            kind="all_reduce", group="default_pg", group_size=len(ranks), message_bytes=1 << 20, count=len(times),
            total_ns=sum(times), min_ns=min(times), overlapped_ns=0, ranks=len(ranks),
        )
    ]  # fmt: skip
