"""The same faults under every recorder: who is named, as other devices, drivers and versions would have recorded it.

python bench/faults/recorders.py [--cases N] [--seed S] [--layouts A,B] [--kinds A,B] [--recorders A,B]
    [--workers W] [--results FILE]

N cases of each fault in each layout of both generators (tests/harness/traces/simulated/cases.py, foreign_layouts.py),
each through all recorders of tests/harness/traces/recorders.py, and without one or two ranks that hold nobody up.
Prints a line of verdict_table.py per recorder, layout and kind, and each case that is not as it should be. The kinds
take turns, and FILE gets each case as it comes, so a run that is stopped has some of all; what it holds is not judged
again. `--recorders "as it is"` judges the jobs as they are drawn, more of them in less time.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import msgspec
import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]

from faults.verdict_table import head, line, sort_out  # noqa: E402
from faults.verdicts import MOVES, JudgedVerdict, Truth, judge  # noqa: E402
from fleetprof_analyzer.trace.trace import Trace  # noqa: E402
from harness.traces import foreign_layouts  # noqa: E402
from harness.traces.planted import faults  # noqa: E402
from harness.traces.recorders import RECORDERS, UNMARKED, without_ranks  # noqa: E402
from harness.traces.simulated import cases  # noqa: E402
from harness.traces.straggler_sections import stragglers_of_traces  # noqa: E402

MISSING = {"a rank missing": 1, "two ranks missing": 2}

OF_HOSTS = (("data_loading",), ("garbage_collection",))  # causes that are the host's own time where nothing marks them
HEALTHY = cases.HEALTHY
KINDS = (*dict.fromkeys(kind for kinds in cases.LAYOUTS.values() for kind in kinds),)
_CAUSES = cases.CAUSES | faults.CAUSES


@dataclass(frozen=True)
class RecordedCase:
    """The result of one case under one recorder."""

    layout: str
    kind: str
    recorder: str
    judged: JudgedVerdict
    words: str


@dataclass(frozen=True)
class JudgedCase:
    """One case with its results under all recorders; none if it does not count."""

    layout: str
    kind: str
    seed: int
    results: list[RecordedCase]


def plan(layouts: list[str], kinds: list[str], count: int, seed: int) -> list[tuple[str, str, int]]:
    """(layout, kind, seed) of each case; the kinds take turns, with their layouts in an order of chance."""
    of_events = {layout: set(of) for layout, of in cases.LAYOUTS.items()}
    every = of_events | {layout: set(foreign_layouts.KINDS) for layout in foreign_layouts.LAYOUTS}
    source, of_kinds = np.random.default_rng(seed), []
    for kind in kinds:
        has = [layout for layout in layouts or every if kind in every[layout]]
        of_kinds.append(
            [(has[at], kind, seed + number) for number in range(count) for at in source.permutation(len(has)).tolist()]
        )
    return [case for turn in zip_longest(*of_kinds) for case in turn if case is not None]


def draw(layout: str, kind: str, seed: int) -> tuple[Truth, list[Trace]]:
    """One case of either generator."""
    cause = _CAUSES.get(kind, "")
    if layout in cases.LAYOUTS:
        case = cases.draw_simulated(layout, kind, seed)
        fault, traces = case.job.fault, case.job.traces()
        ranks = fault.ranks if kind in cases.OF_GROUPS else (fault.rank,)
        is_told, gain = case.identifiable, case.gain
    else:
        found, traces, _ = foreign_layouts.draw_foreign(layout, kind, seed)
        is_told, ranks, gain = found.identifiable, tuple(found.culprits), found.gain
    moving = "unequal_work" if layout.startswith(cases.OF_CHANGING_SHAPES) else MOVES.get(kind)
    truth = Truth.of_fault(cause, ranks, gain, is_told=is_told) if cause else Truth("nobody", moving=moving)
    return truth, traces


def record(recorder: str, truth: Truth, traces: list[Trace], seed: int) -> dict[int, Trace]:
    """The traces by rank as a recorder would have written them; those of missing ranks are of none that is late."""
    source = np.random.default_rng(seed)
    if recorder not in MISSING:
        return dict(enumerate(RECORDERS[recorder](traces, source)))
    others = [rank for rank in range(len(traces)) if rank not in truth.ranks]
    return without_ranks(traces, source.choice(others, MISSING[recorder], replace=False).tolist())


def answer(layout: str, kind: str, seed: int, recorders: list[str]) -> list[RecordedCase]:
    """Draws one case and judges it under each recorder."""
    truth, traces = draw(layout, kind, seed)
    if not truth.counts:
        return []
    results = []
    for recorder in recorders:
        words = f"{recorder}: {layout} {kind} {seed}: costs {100 * (truth.gain or 0):.1f} %, truth {truth.ranks}, "
        try:
            found = stragglers_of_traces(record(recorder, truth, traces, seed))
        except Exception as error:
            results.append(RecordedCase(layout, kind, recorder, JudgedVerdict("crash"), words + repr(error)[:90]))
            continue
        ranks = [(one.rank, one.cause, round(100 * one.gain, 1)) for one in found.ranks[:3]]
        words += f"found {found.verdict} {ranks}, floor {100 * (found.smallest_gain or 0):.1f} %, "
        words += f"fidelity {found.fidelity or 0:.3f}: {found.reason[:110]}"
        causes = truth.causes + ("host",) * (recorder in UNMARKED and truth.causes[:1] in OF_HOSTS)
        results.append(RecordedCase(layout, kind, recorder, judge(found, replace(truth, causes=causes)), words))
    return results


def table(found: list[RecordedCase]) -> list[str]:
    """A line per recorder, one per layout and kind of fault, and the cases that are not as they should be."""
    lines = [head()]
    for of in ("recorder", "layout", "kind"):
        names = dict.fromkeys(getattr(case, of) for case in found)
        lines += [*(_line(name, [case for case in found if getattr(case, of) == name]) for name in names), ""]
    lines += [_line("all", found), ""]
    return [*lines, *sort_out([(case.judged, case.words, case.kind not in HEALTHY) for case in found])]


def _line(name: str, found: list[RecordedCase]) -> str:
    faulty, healthy = (
        [case.judged for case in found if (case.kind in HEALTHY) == is_healthy] for is_healthy in (False, True)
    )
    return line(name, faulty, healthy)


def judge_cases(jobs: list[tuple[str, str, int]], recorders: list[str], workers: int) -> Iterator[JudgedCase]:
    """Each case with its results under the recorders, in the order of the plan."""
    with ProcessPoolExecutor(workers) as pool:
        for job, found in zip(jobs, pool.map(answer, *zip(*jobs, strict=True), [recorders] * len(jobs)), strict=True):
            yield JudgedCase(*job, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=1, help="per layout and kind")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--layouts", default="", help="all, if none are given")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--recorders", default=",".join([*RECORDERS, *MISSING]))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path(os.devnull), help="a file for each case as it comes")
    given = parser.parse_args()
    chosen = [one for one in given.layouts.split(",") if one]
    jobs = plan(chosen, given.kinds.split(","), given.cases, given.seed)
    kept = given.results.read_bytes().splitlines() if given.results.exists() else []
    found = [msgspec.json.decode(line, type=JudgedCase) for line in kept]
    known = {(case.layout, case.kind, case.seed) for case in found}
    with given.results.open("ab", buffering=0) as results:
        for case in judge_cases([job for job in jobs if job not in known], given.recorders.split(","), given.workers):
            results.write(msgspec.json.encode(case) + b"\n")
            found.append(case)
    print("\n".join(table([result for case in found for result in case.results])))


if __name__ == "__main__":
    main()
