"""The record of predictions: each capture of a history is predicted from those before it, and compared with what came.

Guarantees: pure; a prediction uses nothing that came later; what could not be predicted is counted.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from fleetprof_api.report.prediction import PredictedValue

from fleetprof_analyzer.whatif.batch_sizes import SizedCapture, predict_size


class CheckedPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """One prediction beside what came: the median iteration of the capture.

    Of a stored history also the workload, the capture that it was made from, and what changed, as settings.
    """

    capture: str
    batch_size: float | None = None
    workload: str = ""
    before: str = ""
    settings: list[str] = []
    predicted_ns: PredictedValue
    recorded_ns: float
    error: float
    inside: bool


class Backtest(msgspec.Struct, frozen=True, kw_only=True):
    """All predictions of a history; `inside` and `median_error` are null without any."""

    schema_version: int = 1
    predictions: list[CheckedPrediction]
    not_predicted: int
    median_error: float | None = None
    worst_error: float | None = None
    inside: float | None = None


def check(predicted: PredictedValue, recorded_ns: float, capture: str) -> CheckedPrediction:
    """A prediction beside what came."""
    return CheckedPrediction(
        capture=capture,
        predicted_ns=predicted,
        recorded_ns=recorded_ns,
        error=predicted.value / recorded_ns - 1,
        inside=predicted.low <= recorded_ns <= predicted.high,
    )


def sum_up(predictions: list[CheckedPrediction], not_predicted: int) -> Backtest:
    """The predictions together."""
    if not predictions:
        return Backtest(predictions=[], not_predicted=not_predicted)
    errors = [abs(one.error) for one in predictions]
    return Backtest(
        predictions=predictions,
        not_predicted=not_predicted,
        median_error=float(np.median(errors)),
        worst_error=max(errors),
        inside=sum(one.inside for one in predictions) / len(predictions),
    )


def backtest(history: Sequence[tuple[str, SizedCapture]]) -> Backtest:
    """Compares captures in the order in which they were taken, with their names."""
    found: list[CheckedPrediction] = []
    missing = 0
    for number, (name, capture) in enumerate(history):
        before = [one for _, one in history[:number] if one.iteration_ns]
        predicted = predict_size(before, capture.size, []).iteration_ns if before else None
        if predicted is None or not capture.iteration_ns:
            missing += 1
            continue
        checked = check(predicted, float(np.median(capture.iteration_ns)), name)
        found.append(msgspec.structs.replace(checked, batch_size=capture.size))
    return sum_up(found, missing)
