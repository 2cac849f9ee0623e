"""Predicts an iteration of a capture under edits, with an interval, or says why it cannot.

The answer is what was recorded, times how much longer the edited replay takes than the unchanged one. The interval
adds up, as independent errors: the replay's own error, how much iterations vary in this capture and the next, what no
recording explains, and a share of the change itself, because other work runs at another pace beside an edit. It reaches
from the graph whose dependencies were all seen to bind to the one in which collectives have more, and over all lengths
that the edited work may have; the answer lies between. Guarantees: pure.
"""

import math
from typing import Final

import numpy as np
from fleetprof_api.report.prediction import PredictedValue, Prediction, ReplayQuality

from fleetprof_analyzer.whatif.edits import Edit, NotTold
from fleetprof_analyzer.whatif.replay.graph import CircularWork, Floats, GraphTimes, JobGraph, Lengths
from fleetprof_analyzer.whatif.replay.job import CapturedJob
from fleetprof_analyzer.whatif.scenario import EditedJob, edit, slower_lengths

MOST_REPLAY_ERROR: Final = 0.03
_MOST_UNEXPLAINED: Final = 0.2
_STUDENT_95: Final = (12.706, 4.303, 3.182)  # of one, two and three degrees of freedom
_LEAST_LAUNCHED: Final = 0.7
# Calibrated on simulated jobs of seeds 8200 to 8310, which judge nothing.
_OF_THE_CHANGE: Final = 0.03
_LEAST_HALF_WIDTH: Final = 0.004
NORMAL_95: Final = 1.96


def measure_quality(job: CapturedJob) -> ReplayQuality:
    """The distance between the unchanged replay and the recording."""
    return _quality(job, _replayed(job.graph, job.graph.as_recorded())[1])


def predict(job: CapturedJob, texts: list[str], edits: list[Edit]) -> Prediction:
    """The answer for edits of lengths, which `texts` say."""
    _, unchanged = _replayed(job.graph, job.graph.as_recorded())
    quality = _quality(job, unchanged)
    refusal = _refuse(quality)
    if refusal:
        return Prediction(edits=texts, quality=quality, refused=refusal)
    try:
        scenario = edit(job, edits)
    except NotTold as missing:
        return Prediction(edits=texts, quality=quality, refused=str(missing))
    outcome, edited = _replayed(scenario.graph, scenario.lengths)
    factor = float(edited.mean() / unchanged.mean())
    half, doubt = _half_width(quality, edited, factor, scenario.more_doubt)
    others = [float(_replayed(scenario.graph, one)[1].mean() / unchanged.mean()) for one in scenario.others]
    least, most = min(factor, *others, factor), max(factor, *others, factor)
    if most / least - 1 > half:
        doubt = scenario.doubt
    strict = _factor_if_stricter(job, scenario)
    if strict / most - 1 > half:
        doubt = "whether collectives wait for work that was always through in time"
    most = max(most, strict)
    slower = 0.0
    if (lengths := slower_lengths(scenario)) is not None:
        slower = float(_replayed(scenario.graph, lengths)[1].mean() / unchanged.mean())
        if slower / most - 1 > half:
            doubt = "a mended rank may be slower than its peers by itself"
    bounds = least * max(1 - half, 0.0), max(most, slower) * (1 + half)
    low, high = (quality.recorded_ns * one for one in bounds)
    factor = math.sqrt(least * most)
    total = scenario.graph.bounds(outcome)
    return Prediction(
        edits=texts,
        quality=quality,
        iteration_ns=PredictedValue(value=quality.recorded_ns * factor, low=low, high=high),
        change=factor - 1,
        throughput_change=scenario.samples / factor - 1,
        bound_by={kind: round(time / max(sum(total.values()), 1), 4) for kind, time in total.items()},
        rests_on=scenario.rests_on,
        doubt=doubt,
    )


def _replayed(graph: JobGraph, lengths: Lengths) -> tuple[GraphTimes, Floats]:
    outcome = graph.replay(lengths)
    return outcome, graph.iteration_times(outcome)


def _factor_if_stricter(job: CapturedJob, scenario: EditedJob) -> float:
    """The time that iterations take longer if collectives wait for all that they were never seen to overtake."""
    if not (job.graph.meetings.transfer_ns > 0).any():
        return 0.0
    try:
        graph = job.graph.stricter()
        edited = graph if scenario.graph is job.graph else scenario.graph.stricter()
    except CircularWork:
        return 0.0
    unchanged = _replayed(graph, graph.as_recorded())[1].mean()
    return max(float(_replayed(edited, one)[1].mean() / unchanged) for one in (scenario.lengths, *scenario.others))


def _quality(job: CapturedJob, replayed: Floats) -> ReplayQuality:
    graph = job.graph
    recorded = graph.iteration_times(graph.recorded())
    unexplained = sum(one.unexplained_ns for one in graph.times) / len(graph.times)
    return ReplayQuality(
        recorded_ns=round(float(recorded.mean())),
        replayed_ns=round(float(replayed.mean())),
        error=float(replayed.mean() / recorded.mean() - 1),
        worst_error=float(np.abs(replayed / recorded - 1).max()),
        unexplained=float(unexplained / recorded.sum()),
        launched=_launched(job),
        iterations=len(recorded),
        ranks=len(graph.courses),
    )


def _launched(job: CapturedJob) -> float:
    """The share of rows with a known launch, of the rank that has the fewest."""
    return min((float(one.rows.known.mean()) for one in job.graph.courses if len(one.rows)), default=1.0)


def _refuse(quality: ReplayQuality) -> str:
    if quality.launched < _LEAST_LAUNCHED:
        return (
            f"only {100 * quality.launched:.0f} % of the work has a call that launched it: without these calls nothing "
            "tells the host's own time from its waits; record the runtime's calls (Kineto's activity cuda_runtime)"
        )
    if abs(quality.error) > MOST_REPLAY_ERROR:
        return (
            f"the replay of the unchanged job is off by {100 * quality.error:+.1f} %, more than "
            f"{100 * MOST_REPLAY_ERROR:.0f} %: this capture does not tell what its work waits for"
        )
    if quality.unexplained > _MOST_UNEXPLAINED:
        return (
            f"nothing recorded explains {100 * quality.unexplained:.0f} % of the time in which work waited to begin: "
            "rows are missing, or it waited for something outside this capture"
        )
    return ""


def _half_width(quality: ReplayQuality, edited: Floats, factor: float, more: dict[str, float]) -> tuple[float, str]:
    """(half of the interval over the value, what makes most of it).

    Another capture has iterations of its own, so that both means vary. `more` are parts that an edit brings.
    """
    count = len(edited)
    varies = float(edited.std(ddof=1) / edited.mean()) * math.sqrt(2 / count) if count > 1 else 0.0
    parts = {
        "the replay of the unchanged job is off by as much": abs(quality.error),
        "iterations differ from each other": student_95(count - 1) * varies,
        "what else runs may run at another pace then": _OF_THE_CHANGE * abs(factor - 1),
        "work waited for something that was not recorded": quality.unexplained * min(1.0, abs(factor - 1) * 2),
        **more,
    }
    if count == 1:
        parts["one iteration does not tell how much they vary"] = 0.02
    half = max(math.sqrt(sum(one**2 for one in parts.values())), _LEAST_HALF_WIDTH)
    return half, max(parts, key=lambda name: parts[name])


def student_95(freedom: int) -> float:
    """Student's 97.5 % quantile (from the fourth on by Cornish and Fisher); without freedom that of the normal one."""
    if freedom < 1:
        return NORMAL_95
    if freedom <= len(_STUDENT_95):
        return _STUDENT_95[freedom - 1]
    z = NORMAL_95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
