"""The answer to a what-if in words, for a terminal.

Guarantees: no control character of a trace reaches the terminal.
"""

from fleetprof_api.quantities import duration, size
from fleetprof_api.report.prediction import Prediction, ReplayQuality

from fleetprof_analyzer.whatif.backtest import Backtest, CheckedPrediction
from fleetprof_analyzer.words.text import capital, plain


def say_answer(answer: Prediction) -> str:
    """Lines, each ended."""
    lines = [] if answer.quality is None else [_say_quality(answer.quality)]
    if answer.refused:
        lines.append(f"Cannot say: {answer.refused}.")
    elif answer.iteration_ns is not None:
        value = answer.iteration_ns
        change = f", {_percent(answer.change)} of now" if answer.change is not None else ""
        lines.append(
            f"With {', '.join(answer.edits) or 'nothing changed'}: an iteration takes {duration(round(value.value))} "
            f"(95 %: {duration(round(value.low))} to {duration(round(value.high))}){change}."
        )
        if answer.throughput_change is not None:
            lines.append(f"Throughput: {_percent(answer.throughput_change)}.")
        if answer.memory_bytes is not None:
            memory = answer.memory_bytes
            lines.append(f"Memory: {size(memory.value)} (95 %: {size(memory.low)} to {size(memory.high)}).")
        if answer.bound_by:
            most = sorted(answer.bound_by.items(), key=lambda item: -item[1])
            lines.append(
                "Its time then: " + ", ".join(f"{100 * part:.0f} % {kind}" for kind, part in most if part >= 0.01)
            )
    lines += [f"Rests on {one}." for one in answer.rests_on]
    if answer.doubt:
        lines.append(f"Most of the interval: {answer.doubt}.")
    return "".join(plain(capital(line)) + "\n" for line in lines)


def say_backtest(found: Backtest) -> str:
    """Each prediction beside what came, then all of them."""
    lines = [
        f"{_what(one):>10}  predicted {duration(round(one.predicted_ns.value)):>8} "
        f"({duration(round(one.predicted_ns.low))} to {duration(round(one.predicted_ns.high))}), came "
        f"{duration(round(one.recorded_ns)):>8}: {_percent(one.error)}{'' if one.inside else ', outside'}"
        for one in found.predictions
    ]
    count = len(found.predictions)
    if found.median_error is None or found.inside is None:
        lines.append(f"No prediction: {found.not_predicted} capture(s) could not be predicted from those before them.")
    else:
        lines.append(
            f"{count} prediction(s), median error {100 * found.median_error:.1f} %, {100 * found.inside:.0f} % inside "
            f"the interval; {found.not_predicted} capture(s) could not be predicted."
        )
    return "".join(plain(line) + "\n" for line in lines)


def _what(one: CheckedPrediction) -> str:
    if one.batch_size is not None:
        return f"{one.batch_size:g}"
    return f"{one.workload} {one.capture}, {', '.join(one.settings)}"


def _say_quality(quality: ReplayQuality) -> str:
    return (
        f"The replay of {quality.iterations} iteration(s) on {quality.ranks} rank(s) takes "
        f"{duration(quality.replayed_ns)} each; recorded were {duration(quality.recorded_ns)} "
        f"({100 * quality.error:+.2f} %, the worst iteration {100 * quality.worst_error:.2f} %)."
    )


def _percent(change: float | None) -> str:
    return f"{100 * (change or 0.0):+.1f} %"
