"""Right rank, right cause, no false alarm: the straggler analysis on planted faults, beside two simple rules.

python bench/faults/stragglers.py [--cases N] [--large N] [--foreign N] [--healthy N] [--seed S] [--workers W]

Prints one line per class. "Apart" are cases that traces cannot tell (docs/measures.md#stragglers), or whose fault
costs the job less than 1.2 % because something else hides it; they count for false ranks only. What a fault costs is
simulated with an iteration before the others: a window is a piece of a job that goes on. The rules: who waited
least in all its collectives, and who came last most often, both on clocks that were aligned for them. `--foreign` draws
N cases of each fault in each of the layouts of foreign_layouts.py instead, and of what strikes most iterations;
`--healthy` N jobs without a fault, of all layouts and classes in turn. Chance makes devices unequal: a rank that is
named there is a false one, unless the same job with its device like its peers' is 1 % faster, which a report needs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from harness.traces import baselines  # noqa: E402
from harness.traces.foreign_layouts import KINDS, LAYOUTS, draw_foreign  # noqa: E402
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

LEAST_GAIN = 0.012
_LEAST_NAMED = 0.01  # what mending must be worth to be in a report
_WHOLE = 40  # cases of a class; a run of so many is kept in bench/results


@dataclass(frozen=True)
class CaseResult:
    """The result of one case."""

    kind: str
    counts: bool  # identifiable, and dear enough
    named: bool  # some rank is named as a straggler, or a link or stage is
    rank: bool  # the right rank is first
    cause: bool
    waits_least: bool
    last_most_often: bool
    gain_error: float
    words: str
    by_chance: float = 0.0  # of a healthy job: what it would save if the devices that are named were as usual


def answer(kind: str, seed: int, large: bool) -> CaseResult:
    """Draws, analyses and judges one case."""
    case, traces, job = draw(kind, seed, LARGE_SHAPES if large else SHAPES)
    operations = operations_of(job, traces)
    found = stragglers_of(operations)
    assert found is not None
    first = found.ranks[0] if found.ranks else None
    right = first is not None and first.rank in case.culprits
    simple = baselines.both(operations)
    shape = case.shape
    return CaseResult(
        kind=kind,
        counts=kind in NO_FAULTS or (case.identifiable and case.gain >= LEAST_GAIN),
        named=found.verdict in ("straggler", "slow_link", "heavy_stage"),
        rank=right,
        cause=right and first is not None and first.cause == CAUSES.get(kind),
        waits_least=simple.waits_least in case.culprits,
        last_most_often=simple.last_most_often in case.culprits,
        gain_error=abs(first.gain - case.gain) if right and first is not None and kind != "heavier_stage" else 0.0,
        words=f"{kind} seed {seed}{' large' * large}: dp {shape.dp} tp {shape.tp} pp {shape.pp}, "
        f"costs {100 * case.gain:.1f} %, truth {case.culprits[:4]}, found {found.verdict} "
        f"{[(one.rank, one.cause) for one in found.ranks[:3]]}",
    )  # fmt: skip


def answer_foreign(layout: str, kind: str, seed: int) -> CaseResult:
    """The same in a layout; "" is any of the bench's own shapes."""
    case, traces, job = draw_foreign(layout, kind, seed) if layout else draw(kind, seed)
    found = stragglers_of(operations_of(job, traces))
    assert found is not None
    first = found.ranks[0] if found.ranks else None
    right = first is not None and first.rank in case.culprits
    devices = [one.rank for one in found.ranks if one.cause == "slow_gpu"]
    is_of_devices = kind in NO_FAULTS and len(devices) == len(found.ranks) > 0
    return CaseResult(
        kind=kind,
        counts=kind == "none" or (case.identifiable and case.gain >= LEAST_GAIN),
        named=found.verdict in ("straggler", "slow_link", "heavy_stage"),
        rank=right,
        cause=right and first is not None and first.cause == CAUSES.get(kind),
        waits_least=False,
        last_most_often=False,
        gain_error=abs(first.gain - case.gain) if right and first is not None else 0.0,
        words=f"{layout} {kind} seed {seed}: costs {100 * case.gain:.1f} %, truth {case.culprits}, "
        f"found {found.verdict} {[(one.rank, one.cause, round(one.gain, 3)) for one in found.ranks[:3]]}",
        by_chance=gain_of_usual_devices(case, job, devices) if is_of_devices else 0.0,
    )


def foreign_lines(cases: int, seed: int, workers: int) -> list[str]:
    """The table of the layouts, and what was missed."""
    classes = [*((layout, kind) for layout in LAYOUTS for kind in KINDS), *(("", kind) for kind in OFTEN)]
    plan = [(layout, kind, seed + number) for layout, kind in classes for number in range(cases)]
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(answer_foreign, *zip(*plan, strict=True), chunksize=4))
    lines = [f"{'layout':<30}{'class':<18}{'cases':>6}{'rank first':>16}{'cause':>16}{'gain off by':>13}{'worst':>9}"]
    missed = []
    for number, (layout, kind) in enumerate(classes):
        of_class = found[cases * number : cases * (number + 1)]
        counted = [one for one in of_class if one.counts]
        rank, cause = sum(one.rank for one in counted), sum(one.cause for one in counted)
        off = [100 * one.gain_error for one in counted if one.rank]
        wrong = [one.words for one in counted if (one.named if kind == "none" else not one.cause)]
        missed += wrong
        right = ("false rank", _share(len(wrong), counted)) if kind == "none" else (_share(rank, counted), "")
        shown = f"{right[0]:>16}{right[1] or _share(cause, counted):>16}"
        errors = f"{sum(off) / len(off):>11.2f} %{max(off):>7.1f} %" if off else ""
        lines.append(f"{layout or 'any':<30}{kind:<18}{len(counted):>6}{shown}{errors}")
    return [*lines, "", *missed] if missed else lines


def healthy_lines(cases: int, seed: int, workers: int) -> list[str]:
    """The number of jobs without a fault that had a rank, a link or a stage named, and which."""
    classes = [*((layout, "none") for layout in LAYOUTS), *(("", kind) for kind in NO_FAULTS)]
    plan = [(*classes[number % len(classes)], seed + number) for number in range(cases)]
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(answer_foreign, *zip(*plan, strict=True), chunksize=4))
    named = [one for one in found if one.named]
    wrong = [one for one in named if one.by_chance < _LEAST_NAMED]
    return [
        f"healthy jobs with a false rank: {_share(len(wrong), found)}, with one whose device chance made slower: "
        + _share(len(named) - len(wrong), found),
        *(f"{one.words}, worth {100 * one.by_chance:.1f} % in truth" for one in named),
    ]


def answers(cases: int, large: int, seed: int, workers: int) -> Iterator[CaseResult]:
    """All cases, class by class."""
    plan = [(kind, seed + number, number >= cases) for kind in (*FAULTS, *NO_FAULTS) for number in range(cases + large)]
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(answer, *zip(*plan, strict=True), chunksize=2)


def table(found: list[CaseResult]) -> list[str]:
    """The lines to print."""
    lines = [
        f"{'class':<20}{'cases':>7}{'apart':>7}{'rank first':>16}{'cause':>16}{'false rank':>12}"
        f"{'least wait':>12}{'last often':>12}{'gain off by':>13}"
    ]
    for kind in (*FAULTS, *NO_FAULTS):
        of_kind = [one for one in found if one.kind == kind]
        counted = [one for one in of_kind if one.counts]
        if kind in FAULTS:
            rank, cause = sum(one.rank for one in counted), sum(one.cause for one in counted)
            false = sum(one.named and not one.rank for one in of_kind if "found slow_link []" not in one.words)
            off = sum(one.gain_error for one in counted) / max(rank, 1)
            lines.append(
                f"{kind:<20}{len(of_kind):>7}{len(of_kind) - len(counted):>7}{_share(rank, counted):>16}"
                f"{_share(cause, counted):>16}{false:>12}{_simple(counted)}{100 * off:>11.2f} %"
            )
        else:
            false = sum(one.named for one in of_kind)
            lines.append(f"{kind:<20}{len(of_kind):>7}{'':>39}{_share(false, of_kind):>12}{'always':>12}{'always':>12}")
    counted = [one for one in found if one.counts and one.kind in FAULTS]
    rank, cause = sum(one.rank for one in counted), sum(one.cause for one in counted)
    cases = sum(one.kind in FAULTS for one in found)
    lines.append(
        f"{'all faults':<20}{cases:>7}{cases - len(counted):>7}{_share(rank, counted):>16}{_share(cause, counted):>16}"
        f"{'':>12}{_simple(counted)}"
    )
    return lines


def _share(count: int, of: list[CaseResult]) -> str:
    return f"{count}/{len(of)} {100 * count / max(len(of), 1):.1f} %"


def _simple(counted: list[CaseResult]) -> str:
    """The share in which the two simple rules are right."""
    rules = (sum(one.waits_least for one in counted), sum(one.last_most_often for one in counted))
    return "".join(f"{100 * right / max(len(counted), 1):>10.1f} %" for right in rules)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=_WHOLE, help="per class, 8 to 64 ranks")
    parser.add_argument("--large", type=int, default=4, help="per class, 128 to 256 ranks")
    parser.add_argument("--foreign", type=int, default=0, help="per class and layout, instead of the others")
    parser.add_argument("--healthy", type=int, default=0, help="jobs without a fault, instead of the others")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.healthy:
        print("\n".join(healthy_lines(arguments.healthy, arguments.seed, arguments.workers)))
        return
    if arguments.foreign:
        print("\n".join(foreign_lines(arguments.foreign, arguments.seed, arguments.workers)))
        return
    found = list(answers(arguments.cases, arguments.large, arguments.seed, arguments.workers))
    lines = [f"python bench/faults/stragglers.py {' '.join(sys.argv[1:])}".rstrip(), "", *table(found)]
    missed = [
        one.words
        for one in found
        if (one.counts and one.kind in FAULTS and not one.cause) or (one.kind in NO_FAULTS and one.named)
    ]
    lines += ["", *missed] if missed else []
    print("\n".join(lines))
    if arguments.cases >= _WHOLE:
        results = ROOT / "bench" / "results" / f"stragglers-{time.strftime('%Y-%m-%d')}.txt"
        results.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
