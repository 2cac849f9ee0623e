"""Multi-rank training jobs with planted faults, simulated: what was planted is what the straggler analysis must find.

Knows nothing of the analysis.
"""

from typing import Any

import numpy as np

from harness.traces.planted.shapes import JobShape, PlantedFault, led_in
from harness.traces.planted.stage import Stage


class PlantedJob:
    """Runs all stages against each other; afterwards `stages` hold what a profiler would have recorded.

    The noise of the iterations after those `ahead` is that of a job that has none ahead.
    """

    def __init__(self, shape: JobShape, fault: PlantedFault, seed: int, *, ahead: int = 0) -> None:
        self.shape, self.fault, self.seed, self.ahead = shape, fault, seed, ahead
        self.posts: dict[tuple[Any, ...], tuple[np.ndarray, int]] = {}
        self.ends: dict[tuple[Any, ...], np.ndarray] = {}
        spread = np.random.default_rng([seed, 999])
        self.static = 1 + shape.rank_spread * spread.standard_normal(shape.ranks)
        self.stages = [Stage(self, p) for p in range(shape.pp)]
        runners = [stage.run() for stage in self.stages]
        while runners:
            before = len(self.posts) + len(self.ends)
            waiting = [runner for runner in runners if next(runner, None) is not None]
            assert waiting != runners or len(self.posts) + len(self.ends) > before, "the job waits for itself"
            runners = waiting
        ends = zip(*(stage.finished for stage in self.stages), strict=True)
        through_ns = [0, *(max(int(of_ranks.max()) for of_ranks in of_stages) for of_stages in ends)]
        self.length_ns = through_ns[-1] - through_ns[ahead]

    def link(self, family: str, groups: list[np.ndarray]) -> np.ndarray:
        """Factor on the transfers of each group."""
        fault = self.fault
        slow = family in fault.link_families
        return np.array(
            [fault.link_factor if slow and set(fault.link_ranks) & set(g.tolist()) else 1.0 for g in groups]
        )


def cost_when_lasting(shape: JobShape, fault: PlantedFault, mended: PlantedFault, seed: int) -> float:
    """The saving of mending of the iterations of a job that has run before them, as share of their length.

    A window is a piece of such a job. Where all ranks begin together, as above, a fault also costs what they would else
    have entered the first iteration later for: a pipeline's last stage has time to load before its first work comes.
    """
    was, is_mended = (PlantedJob(*led_in(shape, one), seed, ahead=1).length_ns for one in (fault, mended))
    return 1 - is_mended / was
