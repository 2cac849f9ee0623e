"""Thresholds that several tests of the straggler verdict share: how much, how often, and in how many iterations.

Guarantees: constants only; a number that one test alone needs stands beside it.
"""

from typing import Final

SIGMA: Final = 1.4826
"""Of a normal distribution, over its median absolute deviation."""
LEAST: Final = 0.01
"""Of an iteration, or of the own time: a smaller excess or gain is not worth a verdict."""
LEAST_ON_HOST: Final = 0.1
"""Of the own time of CPU-only ranks, whose threads share cores: a replay shows a part of the noise as a gain."""
LASTING: Final = 0.75
"""Of the iterations: what a rank does in so many of them it does always."""
HALF: Final = 0.5
"""Of an excess: what makes up so much of it explains it."""
USUAL: Final = 0.25
"""Quantile over a rank's iterations that stands for those without a pause."""
RARE: Final = 0.005
"""Chance that a job without a fault looks like that, for all of its ranks together."""
VERY_RARE: Final = 0.002
"""The same, where any size counts."""
FEW_RANKS: Final = 8
"""Fewer do not show how large chance becomes."""
FEWEST_SAMPLED: Final = 5
"""Iterations in which all threads were sampled: fewer tell nothing of their waits for a core."""
FEWEST: Final = 3
"""Iterations, turns, outliers, launches of a group: what comes less often may be chance."""
