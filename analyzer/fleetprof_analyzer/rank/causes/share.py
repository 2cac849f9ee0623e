"""The share of an iteration that a cause takes while nothing is recorded: what is saved without it.

Of a cause that comes every n-th iteration a window holds more than its part or less, as it begins: whole periods count.
What recording adds to an iteration is no part of the job: steps before and after the recording tell it, in bounds.
Guarantees: pure; without such steps the iterations count as they were recorded.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.rank.causes.rank_view import NOTHING, RankView
from fleetprof_analyzer.trace.intervals import Union, covered, length
from fleetprof_analyzer.trace.trace import Bools, Int64s

_MOST_PER_ROW_NS: Final = 3_000  # of Kineto: 1.4 to 2.2 µs were measured, PyTorch 2.15
_FEWEST_STEPS: Final = 10
Floats = npt.NDArray[np.float64]


def find_share(view: RankView, each_ns: Int64s, spans: Union = NOTHING) -> int:
    """Permille of an iteration; `each_ns`: what each loses, shape (iterations,); `spans`: where the cause has rows."""
    lengths = np.array([one.duration_ns for one in view.iterations], np.float64)
    counted = _list_rows(view)
    per_row = _find_row_cost(view, len(counted))
    of_cause = np.maximum(0, each_ns - per_row * _count_each(view, counted[covered(counted, spans)]))
    of_job = np.maximum(lengths - per_row * _count_each(view, counted), of_cause)
    whole = _of_whole_periods(of_job, each_ns > 0)
    return min(1000, int(1000 * _of_whole_periods(of_cause, each_ns > 0) / whole)) if whole > 0 else 0


def find_sampled_share(view: RankView, share: float, spans: Union) -> int:
    """Permille of an iteration that a cause takes which samples show for this share of their time.

    `spans`: what they stand for within their iterations, a part of it where there are few; its rows tell those of all.
    """
    whole_ns = float(sum(one.duration_ns for one in view.iterations))
    shown_ns = float(length(spans))
    if not whole_ns or not shown_ns:
        return 0
    counted = _list_rows(view)
    per_row = _find_row_cost(view, len(counted))
    of_cause = share * whole_ns * max(0.0, 1 - per_row * int(covered(counted, spans).sum()) / shown_ns)
    of_job = max(whole_ns - per_row * len(counted), of_cause)
    return min(1000, int(1000 * of_cause / of_job)) if of_job > 0 else 0


def _list_rows(view: RankView) -> Int64s:
    """The starts of the host's rows in the iterations, ns."""
    starts = view.trace.rows.start_ns[~view.trace.rows.on_device]
    return starts[covered(starts, view.whole)]


def _of_whole_periods(values: Floats, struck: Bools) -> float:
    """The mean of an iteration, where those that are struck come every n-th time by that rhythm."""
    distances = np.unique(np.diff(np.flatnonzero(struck)))
    if len(distances) != 1 or struck.all():
        return float(values.mean()) if len(values) else 0
    period = int(distances[0])
    return float(values[struck].mean() + (period - 1) * values[~struck].mean()) / period


def _count_each(view: RankView, starts: Int64s) -> Int64s:
    """The number of rows that begin in each iteration."""
    order = np.sort(starts)
    begins = np.array([one.start_ns for one in view.iterations], np.int64)
    ends = begins + np.array([one.duration_ns for one in view.iterations], np.int64)
    return np.asarray(np.searchsorted(order, ends) - np.searchsorted(order, begins), np.int64)


def _find_row_cost(view: RankView, rows: int) -> float:
    """The time that recording a row took, ns: by the usual iteration in the recording beside those before and after."""
    samples, iterations = view.samples, view.iterations
    if samples is None or not iterations or not rows:
        return 0
    steps, ends = np.array(samples.steps.step, np.int64), np.array(samples.steps.end_unix_ns, np.int64)
    size = max(1, samples.steps_per_iteration)
    whole = steps[size:] - steps[:-size] == size
    begun, ended = ends[:-size][whole], ends[size:][whole]
    first = min(samples.armed_unix_ns or iterations[0].start_ns, iterations[0].start_ns)
    last = max(samples.written_unix_ns, iterations[-1].start_ns + iterations[-1].duration_ns)
    unrecorded = (ended - begun)[(ended <= first) | (begun >= last)]
    if len(unrecorded) < _FEWEST_STEPS:
        return 0
    usual = float(np.median([one.duration_ns for one in iterations]))
    added = len(iterations) * (usual - float(np.median(unrecorded)))
    return min(max(0.0, added / rows), _MOST_PER_ROW_NS)
