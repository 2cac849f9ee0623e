"""The movement of a quantity from iteration to iteration, and how much of that goes with another quantity.

Guarantees: pure; tables have shape (R, K); ranks that are always slower or faster move no more than others.
"""

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats
from fleetprof_analyzer.trace.trace import Int64s


def restlessness(values: Floats | Int64s) -> float:
    """The distance of a rank's iterations from its median, on average."""
    return float(np.abs(values - np.median(values, axis=1)[:, None]).mean())


def explained_share(values: Floats | Int64s, by: Floats) -> float:
    """The share of what moves in `values` that goes with `by` (r² within the ranks); 0 where they move apart."""
    moved, other = (part - part.mean(axis=1)[:, None] for part in (values, by))
    both = float((moved**2).sum() * (other**2).sum())
    together = float((moved * other).sum())
    return together**2 / both if both > 0 and together > 0 else 0.0
