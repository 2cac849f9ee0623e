"""Predictions in advance: the changes that a page offers, each answered as `fleetprof whatif` answers it.

Guarantees: pure; work is bounded: a large replay has fewer scenarios, and a very large one none, which is said.
"""

from collections.abc import Sequence
from itertools import product
from typing import Final

import msgspec
from fleetprof_api.report.prediction import Prediction, Predictions

from fleetprof_analyzer.whatif.edits import read_edits
from fleetprof_analyzer.whatif.prediction import measure_quality, predict
from fleetprof_analyzer.whatif.replay.job import CapturedJob

_NETWORKS: Final = ("0.25x", "0.5x", "2x", "4x", "8x")
_RANKS: Final = (0.5, 2, 4, 8)
_MOST_RANKS: Final = 256
_SIZES: Final = (0.5, 0.75, 1.25, 1.5, 2)
_MOST: Final = 64
_MOST_ROWS: Final = 400_000  # over all scenarios: two seconds


def foresee(job: CapturedJob, late: Sequence[int]) -> Predictions:
    """The answers without a change, for one change each, then for network and ranks together.

    `late`: ranks that others wait for.
    """
    rows = sum(len(course.rows) for course in job.graph.courses)
    most = min(_MOST, _MOST_ROWS // max(rows, 1))
    quality = measure_quality(job)
    changes = _list_changes(job, late)
    if most <= len(changes):
        return Predictions(quality=quality, refused=f"{rows:,} rows are too many to replay each change in advance")
    scenarios = [_answer(job, [])]
    predicted: dict[str, list[str]] = {}
    for key, texts in changes.items():
        answers = [_answer(job, [text]) for text in texts[: most - len(scenarios)]]
        known = [one for one in answers if not one.refused]
        predicted[key] = [one.edits[0] for one in known]
        # One reason stands for all values of a change.
        scenarios += known or answers[:1]
    both = [list(pair) for pair in product(predicted["network"], predicted["ranks"])][: most - len(scenarios)]
    scenarios += [one for pair in both if not (one := _answer(job, pair)).refused]
    return Predictions(quality=quality, scenarios=scenarios)


def _list_changes(job: CapturedJob, late: Sequence[int]) -> dict[str, list[str]]:
    """By change the values that are offered, as texts of `EDITS`."""
    count, samples = len(job.ranks), job.samples or 0
    ranks = [round(count * one) for one in _RANKS if count * one % 1 == 0 and 2 <= count * one <= _MOST_RANKS]
    return {
        "without-straggler": [f"without-straggler={rank}" for rank in late[:1]],
        "loader": ["loader=0"],
        "graph": ["graph=all"],
        "network": [f"network={factor}" for factor in _NETWORKS],
        "ranks": [f"ranks={one}" for one in ranks],
        "batch_size": [f"batch_size={size}" for size in sorted({round(samples * one) for one in _SIZES} - {0})],
    }


def _answer(job: CapturedJob, texts: list[str]) -> Prediction:
    return msgspec.structs.replace(predict(job, texts, read_edits(texts)), quality=None)
