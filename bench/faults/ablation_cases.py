"""The cases that rules of the straggler verdict are judged by: every suite, few jobs of each, kept once drawn.

Generated jobs of both generators, some under other recorders, jobs without a fault of every kind, faults that strike in
most iterations or seldom; and captures of real CPU-only jobs, with and without the samples of their threads, where a
folder of them is given. What a rank recorded is extracted once and kept in `build/ablation`, so that only the verdict
is repeated.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

from faults.planted_truth import CASES as REAL
from faults.recorders import MISSING, draw, record
from faults.verdicts import MOVES, Truth
from fleetprof_analyzer.assembly import report
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_analyzer.rank.communication.operations import RankOperations
from harness.traces import foreign_layouts
from harness.traces.planted import faults
from harness.traces.recorders import RECORDERS
from harness.traces.simulated import cases
from harness.traces.straggler_sections import operations_of_traces
from msgspec.structs import replace as replace_struct

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "ablation"
AS_IT_IS = "as it is"
_OTHER_RECORDERS = [one for one in (*RECORDERS, *MISSING) if one != AS_IT_IS]


@dataclass(frozen=True)
class KeptCase:
    """A job with the operations of its ranks, and what is right to say of it."""

    suite: str
    name: str
    operations: list[RankOperations]
    hosts: dict[int, str]
    truth: Truth


def plan(count: int, seed: int) -> list[tuple[str, str, str, str, int]]:
    """(suite, layout, kind, recorder, seed) of each generated case."""
    of_layouts = cases.LAYOUTS | dict.fromkeys(foreign_layouts.LAYOUTS, foreign_layouts.KINDS)
    found = []
    for number in range(seed, seed + count):
        each = [(layout, kind) for layout, kinds in of_layouts.items() for kind in kinds]
        found += [("layouts", layout, kind, AS_IT_IS, number) for layout, kind in each[number % 2 :: 2]]
        for layout, kind in each:
            drawn = crc32(f"{layout} {kind} {number}".encode()) % len(_OTHER_RECORDERS)
            found.append(("recorders", layout, kind, _OTHER_RECORDERS[drawn], number))
        often = (*faults.FAULTS, *faults.OFTEN)
        found += [("bench", "", kind, AS_IT_IS, 2 * number + at) for kind in often for at in range(2)]
        found += [("healthy", "", kind, AS_IT_IS, 3 * number + at) for kind in faults.NO_FAULTS for at in range(3)]
        found += [("healthy", layout, "none", AS_IT_IS, number + 1) for layout in foreign_layouts.LAYOUTS]
    return found


def generate(suite: str, layout: str, kind: str, recorder: str, seed: int) -> KeptCase | None:
    """None where the fault costs too little to tell, or traces cannot tell it."""
    name = f"{recorder}: {layout} {kind} {seed}".replace(f"{AS_IT_IS}: ", "")
    if layout:
        truth, traces = draw(layout, kind, seed)
        operations = operations_of_traces(record(recorder, truth, traces, seed)) if truth.counts else []
    else:
        case, traces, job = faults.draw(kind, seed)
        operations = faults.operations_of(job, traces)
        truth = Truth("nobody", moving=MOVES.get(kind))
        if kind not in faults.NO_FAULTS:
            truth = Truth.of_fault(faults.CAUSES[kind], tuple(case.culprits), case.gain, is_told=case.identifiable)
    return KeptCase(suite if truth.is_fault else "healthy", name, operations, {}, truth) if truth.counts else None


def captured(folder: Path) -> Iterator[KeptCase]:
    """The captures of real jobs below a folder: those of planted_faults.py, or with an `expected.json` beside them."""
    for written in sorted([*folder.rglob("planted.txt"), *folder.rglob("expected.json")]):
        document = json.loads(written.read_text())
        if written.name == "planted.txt":
            expected = REAL[document["case"]]
            ranks = (document["culprit"],) if expected.verdict == "straggler" else ()
            truth = Truth(expected.verdict, ranks, expected.causes)
        else:
            truth = Truth(document["verdict"], tuple(document["ranks"]), tuple(document["causes"]), document["gain"])
        operations, hosts = _operations_of(written.parent / document.get("folder", "."))
        name = str(written.parent.relative_to(folder))
        yield KeptCase("real", name, operations, hosts, truth)
        unsampled = [replace(one, cores=replace_struct(one.cores, ran_ns=[], waited_ns=[])) for one in operations]
        yield KeptCase("real", f"{name} without samples", unsampled, hosts, truth)


def _operations_of(folder: Path) -> tuple[list[RankOperations], dict[int, str]]:
    """The operations that the verdict gets where a report is made of this folder."""
    given: list[tuple[list[RankOperations], dict[int, str]]] = []
    judge = report.judge_summaries

    def look(summaries: Any, hosts: Any = None) -> Any:
        from fleetprof_analyzer.rank.communication.operations import decode

        given.append(([decode(data) for _, data, _ in summaries if data], dict(hosts or {})))
        return judge(summaries, hosts)

    report.judge_summaries = look
    try:
        analyze_directory(folder)
    finally:
        report.judge_summaries = judge
    return given[0]


def keep_all(count: int, seed: int, real: Path | None) -> Iterator[Path]:
    """The files of all cases, one after the other; draws those that are not there."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for case in captured(real) if real is not None else ():
        yield _keep(KEPT / f"real-{case.name.replace('/', '-')}", case)
    for parts in sorted(plan(count, seed), key=lambda one: crc32(repr(one).encode())):
        path = KEPT / "-".join(map(str, parts)).replace(" ", "_")
        if not path.exists():
            _keep(path, generate(*parts))
        if path.stat().st_size:
            yield path


def _keep(path: Path, case: KeptCase | None) -> Path:
    """Nothing is written of a case that does not count."""
    path.write_bytes(b"" if case is None else pickle.dumps(case, 5))
    return path
