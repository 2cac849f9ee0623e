"""Compares two reports, before and after a change, before the comparison's sentences (docs/diff.md).

Guarantees: pure and deterministic; noise is called a change in at most `LEVEL` of comparisons; what is smaller than
`MINIMUM_EFFECT` of an iteration is never called one; what cannot be compared is found, not guessed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from fleetprof_api import __version__
from fleetprof_api.report.capture_cost import Phase
from fleetprof_api.report.diff import Diff, MeasureChange, Side, StragglerSide, UnprofiledChange, Verdict
from fleetprof_api.report.report import Rank, Report

from fleetprof_analyzer.comparison.iterations import IterationSamples, take_samples
from fleetprof_analyzer.comparison.listings import compare_collectives, compare_kernels, count_windows
from fleetprof_analyzer.comparison.modules import compare_modules
from fleetprof_analyzer.comparison.obstacles import CameAndWent, Circumstance, Obstacle
from fleetprof_analyzer.comparison.runs import choose_runs
from fleetprof_analyzer.comparison.significance import find_differences
from fleetprof_analyzer.rank.iteration_measures import MEASURES, PARTS

MINIMUM_EFFECT: Final = 0.02
# The parts of the level: what is promised is their sum.
LEVEL_OF_MEASURES: Final = 0.03
LEVEL_OF_KERNELS: Final = 0.01
LEVEL_OF_UNPROFILED: Final = 0.01
LEVEL: Final = 0.05
_ERRORS_OF_UNPROFILED: Final = 2.576  # of a normal distribution, two-sided at 0.01
# The intervals know how neighbouring iterations depend on each other, not how a job drifts over minutes: captures of
# one unchanged job on a busy machine lay up to five errors apart.
_DRIFT: Final = 3
_FEWEST_UNPROFILED: Final = 20
_ERRORS_OF_INTERVAL: Final = 1.96  # at 0.05, as intervals of capture_cost are


@dataclass(frozen=True, slots=True)
class Compared:
    """`diff` is without its sentences: `reasons` and `notes` are made of the rest, `method` is constant."""

    diff: Diff
    obstacles: list[Obstacle]
    circumstances: list[Circumstance]


def find_changes(before: Report, after: Report) -> Compared:
    """The differences between two reports of a job."""
    runs = choose_runs(before, after)
    if runs.obstacles:
        refused = Diff(
            made_by=f"fleetprof {__version__}",
            comparable=False,
            before=_describe(before, runs.before, None),
            after=_describe(after, runs.after, None),
            level=LEVEL,
            minimum_effect=MINIMUM_EFFECT,
        )
        return Compared(refused, runs.obstacles, runs.circumstances)
    samples = take_samples(runs.before), take_samples(runs.after)
    devices = max(1, len(runs.before[0].devices))
    measures = _compare_measures(*samples, devices)
    unprofiled = _compare_unprofiled(before, after)
    verdict, change = _judge(measures, unprofiled)
    windows = count_windows(_all_like(before, runs.before)), count_windows(_all_like(after, runs.after))
    iterations = len(samples[0].labels), len(samples[1].labels)
    length = next((row.before for row in measures if row.measure == "iteration"), 0)
    diff = Diff(
        made_by=f"fleetprof {__version__}",
        comparable=True,
        before=_describe(before, runs.before, samples[0]),
        after=_describe(after, runs.after, samples[1]),
        verdict=verdict,
        change=change,
        unprofiled=unprofiled,
        measures=measures,
        kernels=compare_kernels(before.kernels, after.kernels, windows, iterations, length, LEVEL_OF_KERNELS),
        collectives=compare_collectives(before.communication, after.communication, windows),
        modules=compare_modules(before.module_tree, after.module_tree),
        stragglers_before=_stragglers(before),
        stragglers_after=_stragglers(after),
        level=LEVEL,
        minimum_effect=MINIMUM_EFFECT,
    )
    return Compared(diff, [], [*runs.circumstances, *_disagreement(measures, unprofiled)])


def _describe(report: Report, ranks: Sequence[Rank], samples: IterationSamples | None) -> Side:
    lengths = None if samples is None else samples.values.get("iteration")
    return Side(
        title=report.title,
        uid="" if report.request is None else report.request.uid,
        asked_unix_ns=0 if report.request is None else report.request.submitted_unix_ns,
        ranks=len(ranks),
        iterations=0 if samples is None else len(samples.labels),
        first_iteration=None if samples is None or not samples.labels else samples.labels[0],
        iteration_ns=None if lengths is None else round(float(lengths.mean())),
        devices=sorted({rank.device_name for rank in ranks if rank.device_name}),
        torch_versions=sorted({rank.torch_version for rank in ranks if rank.torch_version}),
    )


def _all_like(report: Report, ranks: Sequence[Rank]) -> list[Rank]:
    """All ranks of the kind that is compared: kernels and collectives are sums over all of them."""
    return [rank for rank in report.ranks if rank.kind == ranks[0].kind]


def _compare_measures(before: IterationSamples, after: IterationSamples, devices: int) -> list[MeasureChange]:
    names = [
        name
        for name in MEASURES
        if name in before.values and name in after.values and (before.values[name].any() or after.values[name].any())
    ]
    if "iteration" not in names:
        return []
    first, second = (np.stack([samples.values[name] for name in names], axis=1) for samples in (before, after))
    length = float(before.values["iteration"].mean())
    whole = np.array([_whole(name, length, devices, before) for name in names])
    found = find_differences(first, second, whole, LEVEL_OF_MEASURES)
    changes = []
    for column, name in enumerate(names):
        difference = float(second[:, column].mean() - first[:, column].mean())
        verdict: Verdict = "not_judged"
        if found is not None:
            shown = found.p[column] <= LEVEL_OF_MEASURES and abs(difference) >= MINIMUM_EFFECT * whole[column]
            verdict = "not_shown" if not shown else "more" if difference > 0 else "less"
        changes.append(
            MeasureChange(
                measure=name,
                unit=MEASURES[name][0],
                before=round(float(first[:, column].mean())),
                after=round(float(second[:, column].mean())),
                difference=round(difference),
                low=None if found is None else round(float(found.low[column])),
                high=None if found is None else round(float(found.high[column])),
                p=None if found is None else round(float(found.p[column]), 6),
                verdict=verdict,
            )
        )
    return changes


def _whole(name: str, length: float, devices: int, before: IterationSamples) -> float:
    """The whole of a measure: the iteration, times devices for device time; of an energy the energy itself."""
    if MEASURES[name][0] != "ns":
        return float(before.values[name].mean())
    return length * devices if name.startswith(PARTS) else length


def _compare_unprofiled(before: Report, after: Report) -> UnprofiledChange | None:
    phases = [None if report.capture_cost is None else report.capture_cost.before for report in (before, after)]
    first, second = phases
    if first is None or second is None or not first.median_ns or not second.median_ns:
        return None
    difference = second.median_ns - first.median_ns
    errors = [_error(phase) for phase in (first, second)]
    low = high = None
    verdict: Verdict = "not_judged"
    if errors[0] is not None and errors[1] is not None:
        reach = round(_DRIFT * _ERRORS_OF_UNPROFILED * (errors[0] ** 2 + errors[1] ** 2) ** 0.5)
        low, high = difference - reach, difference + reach
        shown = not low <= 0 <= high and abs(difference) >= MINIMUM_EFFECT * first.median_ns
        verdict = "not_shown" if not shown else "more" if difference > 0 else "less"
    return UnprofiledChange(
        before_ns=first.median_ns,
        after_ns=second.median_ns,
        before_iterations=first.iterations,
        after_iterations=second.iterations,
        difference_ns=difference,
        low_ns=low,
        high_ns=high,
        verdict=verdict,
    )


def _error(phase: Phase) -> float | None:
    """Standard error of a median by its 95 % interval; none of few iterations, whose interval is too narrow."""
    if phase.median_low_ns is None or phase.median_high_ns is None or phase.iterations < _FEWEST_UNPROFILED:
        return None
    return (phase.median_high_ns - phase.median_low_ns) / (2 * _ERRORS_OF_INTERVAL)


def _judge(
    measures: Sequence[MeasureChange], unprofiled: UnprofiledChange | None
) -> tuple[Literal["slower", "faster", "not_shown", "not_judged"], float | None]:
    """The verdict on the iteration time, and its change as a share of what it was."""
    judged, difference, length = "not_judged", 0, 0
    captured = next((row for row in measures if row.measure == "iteration"), None)
    if unprofiled is not None and unprofiled.verdict != "not_judged":
        judged, difference, length = unprofiled.verdict, unprofiled.difference_ns, unprofiled.before_ns
        if captured is not None and _contradicts(captured, unprofiled):
            judged = "not_shown"
    elif captured is not None:
        judged, difference, length = captured.verdict, captured.difference, captured.before
    change = round(difference / length, 6) if length else None
    match judged:
        case "more":
            return "slower", change
        case "less":
            return "faster", change
        case "not_shown":
            return "not_shown", change
    return "not_judged", change


def _disagreement(measures: Sequence[MeasureChange], unprofiled: UnprofiledChange | None) -> list[CameAndWent]:
    captured = next((row for row in measures if row.measure == "iteration"), None)
    if unprofiled is None or captured is None or not _contradicts(captured, unprofiled):
        return []
    return [CameAndWent(longer=unprofiled.verdict == "more")]


def _contradicts(captured: MeasureChange, unprofiled: UnprofiledChange) -> bool:
    """Tells whether the captured iterations rule out a change that the unprofiled ones before them show."""
    if captured.low is None or captured.high is None or unprofiled.verdict not in ("more", "less"):
        return False
    within = captured.low <= unprofiled.difference_ns <= captured.high
    return captured.verdict != unprofiled.verdict and not within


def _stragglers(report: Report) -> StragglerSide | None:
    found = report.stragglers
    if found is None:
        return None
    return StragglerSide(
        verdict=found.verdict,
        ranks=[one.rank for one in found.ranks],
        causes=sorted({one.cause for one in found.ranks}),
        gain=found.gain,
    )
