"""Known causes in words: what the evidence shows, and what to try, with the option's name.

Guarantees: pure; a row for each cause of `rank.causes.registry`; figures are those of the rank with the most.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fleetprof_api.report.known_causes import KnownCause, KnownCauseName

from fleetprof_analyzer.job.findings.found import ProvenCause


@dataclass(frozen=True, slots=True)
class CauseWords:
    """`message` says what the evidence shows; `advice` what to try, and holds each of the `options`."""

    message: Callable[[KnownCause, int], str]
    advice: str
    options: tuple[str, ...]


def say_proven_cause(facts: ProvenCause) -> tuple[str, str]:
    """(what it is, what to try)."""
    words = CAUSE_WORDS[facts.known.cause]
    return words.message(facts.known, facts.of_iterations), words.advice


def _say_collector(known: KnownCause, of_iterations: int) -> str:
    runs = "a run" if known.count == 1 else f"{known.count} runs"
    longest = f"{known.longest_ns / 1e6:,.0f} ms"
    return (
        f"the garbage collector of Python stops the training thread: {runs} of up to {longest} in "
        f"{known.iterations} of {of_iterations} iterations"
    )


CAUSE_WORDS: Final[Mapping[KnownCauseName, CauseWords]] = {
    "garbage_collection": CauseWords(
        _say_collector,
        "call gc.freeze() once all is loaded, gc.disable(), and gc.collect() every few hundred iterations; keep fewer "
        "small objects (tensors or arrays in place of lists and dicts)",
        ("gc.freeze", "gc.disable", "gc.collect"),
    ),
}
