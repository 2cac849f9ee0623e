"""Right rank, right cause, no false alarm: the straggler analysis on planted faults, beside two simple rules.

python bench/faults/stragglers.py [--cases N] [--large N] [--healthy N] [--seed S] [--workers W]

Prints one line per class of the jobs of tests/harness/traces/planted/faults.py, then in how many of the faults above
the floor two simple rules are right: who waited least in all its collectives, and who came last most often, both on
clocks that were aligned for them. What a fault costs is simulated with an iteration before the others: a window is a
piece of a job that goes on. `--healthy` draws N jobs without a fault instead, of all layouts and classes in turn.
Chance makes devices unequal: a rank that is named there is a false one, unless the same job with its device like its
peers' is 1 % faster, which a report needs. recorders.py has the same faults in other layouts.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]

from faults.verdict_table import head, line, share, sort_out  # noqa: E402
from faults.verdicts import MOVES, JudgedVerdict, Truth, judge  # noqa: E402
from harness.traces import baselines  # noqa: E402
from harness.traces.foreign_layouts import LAYOUTS, draw_foreign  # noqa: E402
from harness.traces.planted.faults import (  # noqa: E402
    CAUSES,
    FAULTS,
    LARGE_SHAPES,
    NO_FAULTS,
    OFTEN,
    SHAPES,
    draw,
    gain_of_usual_devices,
    operations_of,
)
from harness.traces.straggler_sections import stragglers_of  # noqa: E402

_LEAST_NAMED = 0.01  # what mending must be worth to be in a report
_WHOLE = 40  # cases of a class; a run of so many is kept in bench/results


@dataclass(frozen=True)
class CaseResult:
    """The result of one case; `by_chance`: what a healthy job would save with usual devices in place of those named."""

    kind: str
    counts: bool
    judged: JudgedVerdict
    waits_least: bool
    last_most_often: bool
    words: str
    by_chance: float = 0.0


def answer(layout: str, kind: str, seed: int, large: bool) -> CaseResult:
    """Draws, analyses and judges one case; a layout "" is any of the bench's own shapes."""
    case, traces, job = (
        draw_foreign(layout, kind, seed) if layout else draw(kind, seed, LARGE_SHAPES if large else SHAPES)
    )
    truth = Truth("nobody", moving=MOVES.get(kind))
    if kind not in NO_FAULTS:
        truth = Truth.of_fault(CAUSES[kind], tuple(case.culprits), case.gain, is_told=case.identifiable)
    operations = operations_of(job, traces)
    found = stragglers_of(operations)
    assert found is not None
    judged = judge(found, truth)
    simple = baselines.both(operations)
    devices = [one.rank for one in found.ranks if one.cause == "slow_gpu"]
    is_of_devices = not truth.is_fault and len(devices) == len(found.ranks) > 0
    ranks = [(one.rank, one.cause, round(one.gain, 3)) for one in found.ranks[:3]]
    return CaseResult(
        kind,
        truth.counts,
        judged,
        waits_least=simple.waits_least in case.culprits,
        last_most_often=simple.last_most_often in case.culprits,
        words=f"{layout} {kind} {seed}: dp {case.shape.dp} tp {case.shape.tp} pp {case.shape.pp}, costs "
        f"{100 * case.gain:.1f} %, truth {case.culprits[:4]}, found {found.verdict} {ranks}: {found.reason[:110]}",
        by_chance=gain_of_usual_devices(case, job, devices) if is_of_devices else 0.0,
    )


def healthy_lines(found: list[CaseResult]) -> list[str]:
    """The number of jobs without a fault that had a rank, a link or a stage named, and which."""
    named = [one for one in found if one.judged.outcome == "wrong"]
    wrong = [one for one in named if one.by_chance < _LEAST_NAMED]
    return [
        f"healthy jobs with a false rank: {len(wrong)} of {len(found)}, with one whose device chance made slower: "
        f"{len(named) - len(wrong)}; left open: {sum(one.judged.outcome == 'open' for one in found)}",
        *(f"{one.words}, worth {100 * one.by_chance:.1f} % in truth" for one in named),
    ]


def table(found: list[CaseResult]) -> list[str]:
    """The lines to print."""
    counted = [one for one in found if one.counts]
    lines = [head()]
    for name in (*dict.fromkeys(one.kind for one in found), "all"):
        mine = [one for one in counted if name in (one.kind, "all")]
        faulty, healthy = (
            [one.judged for one in mine if (one.kind in NO_FAULTS) == is_healthy] for is_healthy in (False, True)
        )
        lines.append(line(name, faulty, healthy))
    faults = [one for one in counted if one.kind not in NO_FAULTS]
    waits_least, last_most_often = (
        share(sum(right), len(faults))
        for right in ([one.waits_least for one in faults], [one.last_most_often for one in faults])
    )
    lines += ["", f"right by who waits least: {waits_least}, by who is last most often: {last_most_often}", ""]
    return [*lines, *sort_out([(one.judged, one.words, one.kind not in NO_FAULTS) for one in counted])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=_WHOLE, help="per class, 8 to 64 ranks")
    parser.add_argument("--large", type=int, default=4, help="per class, 128 to 256 ranks")
    parser.add_argument("--healthy", type=int, default=0, help="jobs without a fault, instead of the others")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    plan = [
        ("", kind, given.seed + number, number >= given.cases)
        for kind in (*FAULTS, *OFTEN, *NO_FAULTS) for number in range(given.cases + given.large)
    ]  # fmt: skip
    if given.healthy:
        classes = [*((layout, "none") for layout in LAYOUTS), *(("", kind) for kind in NO_FAULTS)]
        plan = [(*classes[number % len(classes)], given.seed + number, False) for number in range(given.healthy)]
    with ProcessPoolExecutor(given.workers) as pool:
        found = list(pool.map(answer, *zip(*plan, strict=True), chunksize=2))
    lines = [f"python bench/faults/stragglers.py {' '.join(sys.argv[1:])}".rstrip(), ""]
    lines += healthy_lines(found) if given.healthy else table(found)
    print("\n".join(lines))
    if given.cases >= _WHOLE and not given.healthy:
        results = ROOT / "bench" / "results" / f"stragglers-{time.strftime('%Y-%m-%d')}.txt"
        results.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
