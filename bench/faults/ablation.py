"""What each rule of the straggler verdict adds: the same cases without it.

python bench/faults/ablation.py [--cases N] [--seed S] [--layouts A,B] [--recorders A,B] [--workers W]

Draws the cases of recorders.py, judges them with all rules, and then without one rule at a time. Prints a line per
rule: how many faults are named rightly, left open, not seen and named wrongly without it, and how many healthy jobs are
named or left open; then the cases that differ. A rule whose line is that of all rules, under all recorders and several
seeds, adds nothing.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]

from faults.recorders import draw, judge, judge_cases  # noqa: E402
from harness.traces.recorders import RECORDERS  # noqa: E402
from harness.traces.straggler_sections import operations_of_traces, stragglers_of  # noqa: E402

_STRAGGLERS = "fleetprof_analyzer.job.stragglers."
_EXCESS, _RHYTHM, _SEARCH = (_STRAGGLERS + name for name in ("lateness.excess", "causes.rhythm", "search.search"))


def _nothing(*_: Any, **__: Any) -> list[Any]:
    return []


def _none_apart(x: Any) -> Any:
    return np.zeros(len(x), np.bool_)


def _all_stand_out(x: Any) -> Any:
    return np.ones(len(x), np.bool_)


ALL = "all rules"
RULES: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "late in most iterations": (_EXCESS, "_persistent", _nothing),
    "apart from all others": (_EXCESS, "are_apart", _none_apart),
    "the largest too often": (_EXCESS, "are_largest", _none_apart),
    "a mean that stands out as well": (_EXCESS, "stand_out", _all_stand_out),
    "no chance of few iterations": (_EXCESS, "_may_be_chance", lambda *_: False),
    "late in the mean": (_EXCESS, "_in_the_mean", _nothing),
    "beside waits for a core": (_EXCESS, "_beside_waits", _nothing),
    "outliers": (_EXCESS, "find_outliers", lambda *_: iter(())),
    "no chance of leads": (_EXCESS, "may_be_chance_of_leads", lambda *_: False),
    "own time in a rhythm": (_RHYTHM, "_find_late", lambda *_: iter(())),
    "blocked in a rhythm": (_RHYTHM, "_find_blocked", lambda *_: iter(())),
    "hosts in a rhythm": (_RHYTHM, "_find_hosts", lambda *_: iter(())),
    "most often (sign)": (_SEARCH, "find_most_often", _nothing),
    "loaders of all ranks": (_SEARCH, "find_slow_loaders", lambda *_: ([], {})),
    "the same kernels": (_SEARCH, "find_slow_devices", lambda *_: ([], {})),
    "more work": (_SEARCH, "weigh_work", lambda _, candidates, **__: candidates),
}


@contextmanager
def without(rule: str) -> Iterator[None]:
    """Judges without this rule meanwhile."""
    if rule == ALL:
        yield
        return
    place, name, instead = RULES[rule]
    module = importlib.import_module(place)
    before = getattr(module, name)
    setattr(module, name, instead)
    try:
        yield
    finally:
        setattr(module, name, before)


def answer(layout: str, kind: str, seed: int, recorders: list[str]) -> list[tuple[str, str, str]]:
    """(rule that is left out, outcome, the case in words) of one case."""
    truth, traces = draw(layout, kind, seed)
    if not truth.counts:
        return []
    results = []
    for recorder in recorders:
        operations = operations_of_traces(RECORDERS[recorder](traces, np.random.default_rng(seed)))
        for rule in (ALL, *RULES):
            with without(rule):
                found = stragglers_of(operations)
            assert found is not None
            outcome = judge(found, truth)
            results.append(
                (rule, f"healthy {outcome}" if kind == "none" else outcome, f"{recorder}: {layout} {kind} {seed}")
            )
    return results


def table(found: list[tuple[str, str, str]]) -> list[str]:
    """A line per rule, and the cases that differ."""
    columns = ("right", "open", "small", "nobody", "wrong", "healthy wrong", "healthy open")
    lines = [f"{'without':<32}" + "".join(f"{column:>15}" for column in columns)]
    usual = {case: outcome for rule, outcome, case in found if rule == ALL}
    differ = []
    for rule in (ALL, *RULES):
        here = [(outcome, case) for other, outcome, case in found if other == rule]
        counts = Counter(outcome for outcome, _ in here)
        lines.append(f"{rule:<32}" + "".join(f"{counts[column]:>15}" for column in columns))
        differ += [
            f"without {rule}: {case}: {outcome}, {usual[case]} with it"
            for outcome, case in here
            if outcome != usual[case]
        ]
    return [*lines, "", *differ]


if __name__ == "__main__":
    print("\n".join(table(judge_cases(__doc__, answer, ["as it is", "AMD", "launches alone", "no calls"]))))
