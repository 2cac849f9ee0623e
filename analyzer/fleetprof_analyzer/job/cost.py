"""The cost of the capture for the job: iteration times before, during and after it (docs/measures.md#capture-cost).

A job's iteration time is the median over its ranks, since training steps in common. Guarantees: deterministic (fixed
seed); no number without enough iterations behind it; how intervals are made is `words.methods`' to say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from fleetprof_api.report.capture_cost import CaptureCost, Interval, Phase

from fleetprof_analyzer.rank.step_times import StepTimes

_RESAMPLES: Final = 4000
_SEED: Final = 20_260_101
_FEWEST: Final = 5
_CONFIDENCE: Final = 0.95

Floats = npt.NDArray[np.float64]


def measure_cost(ranks: Sequence[StepTimes]) -> CaptureCost | None:
    """The cost over all ranks with step times; None when no rank has any or nothing says when it was captured."""
    ranks = [rank for rank in ranks if rank.window_start_unix_ns and rank.window_end_unix_ns]
    if not ranks:
        return None
    window = _find_window(ranks)
    phases: dict[str, list[int]] = {"before": [], "during": [], "settling": [], "after": []}
    for iteration in _job_iterations(ranks):
        phase = _phase(iteration, window)
        if phase is not None:
            phases[phase].append(iteration.duration_ns)
    before, during, after = (np.array(phases[name], np.float64) for name in ("before", "during", "after"))
    during_ratio, during_interval = _ratio(during, before)
    after_ratio, after_interval = _ratio(after, before)
    residue = None if after_ratio is None else round(after_ratio - 1, 6)
    residue_interval = (
        None
        if after_interval is None
        else Interval(low=round(after_interval.low - 1, 6), high=round(after_interval.high - 1, 6))
    )
    stall = None
    if phases["settling"] and len(before):
        stall = max(0, max(phases["settling"]) - int(np.median(before)))
    return CaptureCost(
        before=_describe(before),
        during=_describe(during),
        after=_describe(after),
        during_ratio=during_ratio,
        during_ratio_interval=during_interval,
        stall_ns=stall,
        residue_ratio=residue,
        residue_interval=residue_interval,
        residue_is_zero=None if residue_interval is None else residue_interval.low <= 0 <= residue_interval.high,
        confidence_permille=round(_CONFIDENCE * 1000),
        ranks=len(ranks),
    )


@dataclass(frozen=True, slots=True)
class _JobIteration:
    """One iteration over all ranks that saw it whole: earliest begin, latest end, median duration, its last step."""

    begin_ns: int
    end_ns: int
    duration_ns: int
    last_step: int


@dataclass(frozen=True, slots=True)
class _Window:
    """The capture over all ranks; steps where every rank's trace is numbered."""

    armed_ns: int
    start_ns: int
    end_ns: int
    written_ns: int
    steps: tuple[int, int] | None
    marked_until: int = 0  # the last step of iterations in which modules were marked


def _find_window(ranks: Sequence[StepTimes]) -> _Window:
    start = min(rank.window_start_unix_ns for rank in ranks)
    end = max(rank.window_end_unix_ns for rank in ranks)
    first = [rank.first_step for rank in ranks if rank.first_step is not None]
    last = [rank.last_step for rank in ranks if rank.last_step is not None]
    return _Window(
        armed_ns=min((rank.armed_unix_ns for rank in ranks if rank.armed_unix_ns), default=start),
        start_ns=start,
        end_ns=end,
        written_ns=max(end, *(rank.written_unix_ns for rank in ranks)),
        steps=(min(first), max(last)) if len(first) == len(ranks) and last else None,
        marked_until=max(
            (
                rank.last_step + rank.marked_iterations * rank.steps_per_iteration
                for rank in ranks
                if rank.marked_iterations and rank.last_step is not None
            ),
            default=0,
        ),
    )


def _job_iterations(ranks: Sequence[StepTimes]) -> list[_JobIteration]:
    """Every iteration that some rank saw whole, in order."""
    spans_by_step: dict[int, list[tuple[int, int]]] = {}
    for rank in ranks:
        per_iteration = rank.steps_per_iteration
        ends = dict(zip(rank.steps.step, rank.steps.end_unix_ns, strict=False))
        for step, end in ends.items():
            begin = ends.get(step - per_iteration)
            if step % per_iteration == 0 and begin is not None and end > begin:
                spans_by_step.setdefault(step, []).append((begin, end))
    return [
        _JobIteration(
            begin_ns=min(begin for begin, _ in spans),
            end_ns=max(end for _, end in spans),
            duration_ns=int(np.median([end - begin for begin, end in spans])),
            last_step=step,
        )
        for step, spans in sorted(spans_by_step.items())
    ]


def _phase(iteration: _JobIteration, window: _Window) -> str | None:
    """The phase of one iteration; None between the order and the window."""
    if iteration.end_ns <= window.armed_ns:
        return "before"
    if window.steps is not None:
        during = window.steps[0] <= iteration.last_step <= window.steps[1]
        later = iteration.last_step > window.steps[1]
    else:
        inside = min(iteration.end_ns, window.end_ns) - max(iteration.begin_ns, window.start_ns)
        during = 2 * inside > iteration.end_ns - iteration.begin_ns
        later = iteration.end_ns > window.end_ns
    if during:
        return "during"
    if not later or iteration.last_step <= window.marked_until:
        return None
    return "after" if iteration.begin_ns >= window.written_ns else "settling"


def _describe(durations: Floats) -> Phase:
    if len(durations) == 0:
        return Phase(iterations=0)
    low, high = None, None
    if len(durations) >= _FEWEST:
        low, high = (int(value) for value in _interval(_medians(durations)))
    return Phase(iterations=len(durations), median_ns=int(np.median(durations)), median_low_ns=low, median_high_ns=high)


def _ratio(durations: Floats, reference: Floats) -> tuple[float | None, Interval | None]:
    """Ratio of medians with its interval; None where there is too little for either."""
    if len(durations) == 0 or len(reference) == 0:
        return None, None
    ratio = float(np.median(durations) / np.median(reference))
    if min(len(durations), len(reference)) < _FEWEST:
        return round(ratio, 6), None
    low, high = _interval(_medians(durations, 1) / _medians(reference, 2))
    return round(ratio, 6), Interval(low=round(low, 6), high=round(high, 6))


def _interval(values: Floats) -> tuple[float, float]:
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def _medians(durations: Floats, stream: int = 0) -> Floats:
    """Medians of moving-block resamples, shape (_RESAMPLES,)."""
    count = len(durations)
    block = max(1, round(count ** (1 / 3)))
    blocks = -(-count // block)
    starts = np.random.default_rng((_SEED, stream)).integers(0, count, (_RESAMPLES, blocks, 1))
    index = ((starts + np.arange(block)) % count).reshape(_RESAMPLES, -1)[:, :count]
    return np.asarray(np.median(durations[index], axis=1))
