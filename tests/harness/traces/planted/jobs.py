"""Multi-rank training jobs with planted faults, simulated: what was planted is what the straggler analysis must find.

Knows nothing of the analysis.
"""

from typing import Any

import numpy as np

from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.stage import Stage


class PlantedJob:
    """Runs all stages against each other; afterwards `stages` hold what a profiler would have recorded."""

    def __init__(self, shape: JobShape, fault: PlantedFault, seed: int) -> None:
        self.shape, self.fault = shape, fault
        self.posts: dict[tuple[Any, ...], tuple[np.ndarray, int]] = {}
        self.ends: dict[tuple[Any, ...], np.ndarray] = {}
        spread = np.random.default_rng([seed, 999])
        self.static = 1 + shape.rank_spread * spread.standard_normal(shape.ranks)
        self.stages = [Stage(self, p, np.random.default_rng([seed, p])) for p in range(shape.pp)]
        runners = [stage.run() for stage in self.stages]
        while runners:
            before = len(self.posts) + len(self.ends)
            waiting = [runner for runner in runners if next(runner, None) is not None]
            assert waiting != runners or len(self.posts) + len(self.ends) > before, "the job waits for itself"
            runners = waiting
        self.length_ns = max(int(stage.finished.max()) for stage in self.stages)

    def link(self, family: str, groups: list[np.ndarray]) -> np.ndarray:
        """Factor on the transfers of each group."""
        fault = self.fault
        slow = family in fault.link_families
        return np.array(
            [fault.link_factor if slow and set(fault.link_ranks) & set(g.tolist()) else 1.0 for g in groups]
        )
