"""Several scenarios of one capture beside each other, as `fleetprof whatif --scenarios` prints them.

Guarantees: pure; each scenario has an answer, or the reason why there is none.
"""

from collections.abc import Mapping, Sequence

import msgspec
from fleetprof_api.quantities import duration
from fleetprof_api.report.prediction import Prediction

from fleetprof_analyzer.whatif.edits import read_edits
from fleetprof_analyzer.whatif.prediction import predict
from fleetprof_analyzer.whatif.replay.job import CapturedJob
from fleetprof_analyzer.words.text import plain


class NamedPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario's answer."""

    name: str
    prediction: Prediction


class PredictionTable(msgspec.Struct, frozen=True, kw_only=True):
    """The answers in the order of their scenarios."""

    schema_version: int = 1
    scenarios: list[NamedPrediction]


def predict_all(job: CapturedJob, scenarios: Mapping[str, Sequence[str]]) -> PredictionTable:
    """The answers for settings by name. Raises UnreadableEdit."""
    read = {name: read_edits(texts) for name, texts in scenarios.items()}
    return PredictionTable(
        scenarios=[
            NamedPrediction(name=name, prediction=predict(job, list(scenarios[name]), edits))
            for name, edits in read.items()
        ]
    )


def say_table(table: PredictionTable) -> str:
    """A line for each scenario, ended."""
    width = max((len(one.name) for one in table.scenarios), default=0)
    lines = []
    for one in table.scenarios:
        answer = one.prediction
        if answer.iteration_ns is None:
            lines.append(f"{one.name:<{width}}  cannot say: {answer.refused}")
            continue
        value = answer.iteration_ns
        low, high = duration(round(value.low)), duration(round(value.high))
        bound = max(answer.bound_by, key=lambda kind: answer.bound_by[kind], default="")
        lines.append(
            f"{one.name:<{width}}  {duration(round(value.value)):>9} ({low} to {high})  "
            f"throughput {100 * (answer.throughput_change or 0.0):+.1f} %  most of it {bound}"
        )
    return "".join(plain(line) + "\n" for line in lines)
