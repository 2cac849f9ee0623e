"""The record of predictions: each capture of a history is predicted from those before it, and compared with what came.

Guarantees: pure; a prediction uses nothing that came later; what could not be predicted is counted.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from fleetprof_analyzer.whatif.answer import PredictedValue
from fleetprof_analyzer.whatif.batch_sizes import SizedCapture, predict_size


class CheckedPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """One prediction beside what came: the median iteration of the capture."""

    capture: str
    batch_size: float
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
        recorded = float(np.median(capture.iteration_ns))
        found.append(
            CheckedPrediction(
                capture=name,
                batch_size=capture.size,
                predicted_ns=predicted,
                recorded_ns=recorded,
                error=predicted.value / recorded - 1,
                inside=predicted.low <= recorded <= predicted.high,
            )
        )
    if not found:
        return Backtest(predictions=[], not_predicted=missing)
    errors = [abs(one.error) for one in found]
    return Backtest(
        predictions=found,
        not_predicted=missing,
        median_error=float(np.median(errors)),
        worst_error=max(errors),
        inside=sum(one.inside for one in found) / len(found),
    )
