"""Thresholds that several tests of the straggler verdict share: how much, how often, and in how many iterations.

Guarantees: constants only; a number that one test alone needs stands beside it.
"""

from typing import Final

FAITHFUL: Final = 0.03
"""A share of the window: a replay that is off by more is rough."""
CLEARLY: Final = 1.5
"""Times as much as all others, or as is usual."""
SIGMA: Final = 1.4826
"""Of a normal distribution, over its median absolute deviation."""
LEAST: Final = 0.01
"""Of an iteration, or of the own time: a smaller excess or gain is not worth a verdict."""
LEAST_PAUSE: Final = 0.02
"""Of the own time, or of the window: what comes and goes is no noise from there on."""
LEAST_BESIDE_NOISE: Final = 0.05
"""Of the window: a gain that neither threads which share cores nor work that moves by chance makes."""
LEAST_ON_HOST: Final = 0.1
"""Of the own time of CPU-only ranks, whose threads share cores: a replay shows a part of the noise as a gain."""
MOST: Final = 0.75
"""Of the iterations, what a rank always does; of the ranks of a host, or of what is lost, nearly all of it."""
HALF: Final = 0.5
"""A share of an excess: what makes up so much of it explains it; of ranks, iterations and operators: most of them."""
USUAL: Final = 0.25
"""Quantile over a rank's iterations that stands for those without a pause."""
RARE: Final = 0.005
"""Chance that a job without a fault looks like that, for all of its ranks together."""
VERY_RARE: Final = 0.002
"""The same, where any size counts."""
SUSPECTED: Final = 0.1
"""A chance at which it may be so all the same, and is said to be undecided."""
OUTLIER: Final = 6.0
"""Spreads from the middle that no noise makes."""
FEW_RANKS: Final = 8
"""Fewer do not show how large chance becomes."""
FEW_ITERATIONS: Final = 5
"""Fewer tell neither a mean nor, where threads were sampled in them, their waits for a core."""
FEWEST: Final = 3
"""Iterations, turns, outliers, launches of a group, ranks to compare with: fewer may be alike by chance."""
SEVERAL: Final = 2
"""Ranks, iterations, rounds, kernels: what one does alone may be anything."""
SAME_COUNT: Final = 0.05
"""Of the calls of a kernel or operator: as many."""
SAME_SIZE: Final = 0.02
"""Of their threads or elements: as large."""
MUCH_MORE: Final = 0.2
"""Of the work of the peers, beyond it: chance does not give it to a rank."""
