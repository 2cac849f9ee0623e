"""The methods of intervals and verdicts, as a report and a comparison say it beside them.

Guarantees: constant; describes `job.cost` and `comparison.comparison`, and changes with them.
"""

from typing import Final

METHOD_OF_COST: Final = (
    "median over iterations of the job's iteration time (median over ranks); 95 % interval of the ratio of medians by "
    "a circular moving-block bootstrap (4,000 resamples, block of the cube root of n, fixed seed), which allows for "
    "neighbouring iterations that depend on each other; no interval below 5 iterations"
)
METHOD_OF_COMPARISON: Final = (
    "measures: permutations of iterations between the captures, Welch's statistic with its error enlarged for "
    "dependence between neighbours, largest over all measures (maxT), level 0.03; unprofiled iteration time: "
    "difference of medians against thrice the error of both bootstrap intervals, level 0.01; kernels: Welch's test of "
    "means with one sample per iteration, Bonferroni, level 0.01"
)
