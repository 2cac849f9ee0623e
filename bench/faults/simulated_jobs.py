"""The straggler analysis on jobs that are simulated by event, apart from the bench's own: rank, cause, gain, alarms.

python bench/faults/simulated_jobs.py [--cases N] [--seed S] [--layouts A,B] [--kinds A,B] [--workers W]

N cases of each fault in each layout (tests/harness/traces/simulated/cases.py). Faults that cost less than 2 %, or that
fewer than three recorded iterations have, count for false ranks only. The truth is what the same job takes without the
fault, by the same random numbers; of a heavy stage what it takes with the work shared out, because work cannot vanish.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from harness.traces.simulated.cases import CAUSES, HEALTHY, LAYOUTS, draw_simulated, faults_of  # noqa: E402
from harness.traces.straggler_sections import stragglers_of_traces  # noqa: E402

LEAST_GAIN = 0.02
GAIN_OFF = 0.05


@dataclass(frozen=True)
class EventCaseResult:
    """The result of one case; `named`: a rank, a link or a stage is."""

    layout: str
    kind: str
    counts: bool
    named: bool
    rank: bool
    cause: bool
    gain_error: float
    words: str


def answer(layout: str, kind: str, seed: int) -> EventCaseResult:
    """Draws, analyses and judges one case."""
    case = draw_simulated(layout, kind, seed)
    found = stragglers_of_traces(case.job.traces())
    fault, first = case.job.fault, found.ranks[0] if found.ranks else None
    links = [tuple(link.ranks) for link in found.slow_links]
    if kind == "slow_group":
        right = found.verdict == "slow_link" and links[0] == fault.ranks
    elif kind == "slow_link":
        right = found.verdict == "slow_link" and fault.rank in (first.rank if first else -1, *links[0])
    elif kind == "heavy_stage":
        right = found.verdict == "heavy_stage" and sorted(one.rank for one in found.ranks) == sorted(fault.ranks)
    else:
        right = found.verdict == "straggler" and first is not None and first.rank == fault.rank
    cause = "network" if found.verdict == "slow_link" else first.cause if first else None
    gain = first.gain if found.verdict == "straggler" and first is not None else found.gain
    ranks = [(one.rank, one.cause, round(100 * one.gain, 1)) for one in found.ranks[:3]]
    order = [(one.rank, one.cause, round(100 * one.gain, 1)) for one in found.order[:2]]
    return EventCaseResult(
        layout,
        kind,
        counts=kind in HEALTHY or (case.identifiable and case.gain >= LEAST_GAIN),
        named=found.verdict in ("straggler", "slow_link", "heavy_stage"),
        rank=right,
        cause=right and cause == CAUSES.get(kind),
        gain_error=abs(gain - case.gain) if right else 0.0,
        words=f"{layout} {kind} {seed}: costs {100 * case.gain:.1f} %, truth {fault.rank} {list(fault.ranks)}, found "
        f"{found.verdict} {ranks} links {links[:2]} order {order} fidelity {found.fidelity or 0:.3f}, "
        f"{found.unmatched} of {found.operations} unmatched: {found.reason[:80]}",
    )


def table(found: list[EventCaseResult]) -> list[str]:
    """The lines to print: a class each, all of them, and what was missed."""
    lines = [f"{'layout':<14}{'class':<14}{'cases':>6}{'rank':>16}{'cause':>16}{'gain within 5':>16}{'false':>12}"]
    classes = dict.fromkeys((one.layout, one.kind) for one in found)
    for layout, kind in classes:
        lines.append(
            f"{layout:<14}{kind:<14}" + _row([one for one in found if (one.layout, one.kind) == (layout, kind)])
        )
    lines += [f"{'all faults':<28}" + _row([one for one in found if one.kind not in HEALTHY])]
    lines += [f"{'healthy':<28}" + _row([one for one in found if one.kind in HEALTHY])]
    missed = [one.words for one in found if (one.named if one.kind in HEALTHY else one.counts and not one.cause)]
    off = ["gain: " + one.words for one in found if one.counts and one.cause and one.gain_error > GAIN_OFF]
    false = ["small: " + one.words for one in found if not one.counts and one.named and not one.rank]
    return [*lines, "", *missed, *off, *false]


def _row(cases: list[EventCaseResult]) -> str:
    faults = [one for one in cases if one.kind not in HEALTHY]
    counted = [one for one in faults if one.counts]
    near = [one for one in counted if one.rank]
    false = sum(one.named and not one.rank for one in cases)
    shares = (
        [
            _share(sum(one.rank for one in counted), len(counted)),
            _share(sum(one.cause for one in counted), len(counted)),
            _share(sum(one.gain_error <= GAIN_OFF for one in near), len(near)),
        ]
        if faults
        else [""] * 3
    )
    return (
        f"{len(counted) or len(cases):>6}"
        + "".join(f"{one:>16}" for one in shares)
        + f"{_share(false, len(cases)):>12}"
    )


def _share(count: int, of: int) -> str:
    return f"{count}/{of} {100 * count / max(of, 1):.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=3, help="per layout and class")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    parser.add_argument("--kinds", default="", help="all, if none are given")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    kinds = set(arguments.kinds.split(",")) - {""}
    plan = [
        (layout, kind, arguments.seed + number)
        for layout in arguments.layouts.split(",")
        for kind in faults_of(layout)
        if not kinds or kind in kinds
        for number in range(arguments.cases)
    ]
    with ProcessPoolExecutor(arguments.workers) as pool:
        found = list(pool.map(answer, *zip(*plan, strict=True)))
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
