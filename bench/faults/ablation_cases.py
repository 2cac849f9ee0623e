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

import numpy as np
from faults.planted_truth import CASES as REAL
from faults.recorders import GAIN_OFF, LEAST_GAIN, draw
from fleetprof_analyzer.assembly import report
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_analyzer.rank.communication.operations import RankOperations
from fleetprof_api.report.stragglers import Stragglers
from harness.traces import foreign_layouts
from harness.traces.planted import faults
from harness.traces.recorders import RECORDERS
from harness.traces.simulated import cases
from harness.traces.straggler_sections import operations_of_traces
from msgspec.structs import replace as replace_struct

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "ablation"
OTHER_RECORDERS = ("AMD", "launches alone", "no calls", "no host")
_UNDER_OTHERS = ("ddp", "fsdp", "launch-bound")
_NAMED = ("straggler", "slow_link", "heavy_stage")
_HEALTHY_FOREIGN = (*foreign_layouts.LAYOUTS, "")
_ONLY_SIMULATED = (
    "slow_link", "slow_group", "slow_copy", "heavy_stage", "unequal_work", "more_kernels", "moving", "all_load",
)  # fmt: skip
OUTCOMES = ("right", "cause", "gain", "open", "small", "nobody", "wrong", "quiet", "moves", "unsure", "alarm", "crash")
_QUIET = {"moving_imbalance": "moves", "undecided": "unsure"}
_MOVES = {"moving": "unequal_work", "moving_lengths": "unequal_work", "pauses_everywhere": "garbage_collection"}


@dataclass(frozen=True)
class ExpectedOfCase:
    """The right answer: the verdict, the ranks of which one may come first, the cause, and what it costs."""

    verdict: str  # "nobody" of a job without a fault
    ranks: tuple[int, ...] = ()
    causes: tuple[str, ...] = ()
    gain: float | None = None  # None: not known


@dataclass(frozen=True)
class KeptCase:
    """A job with the operations of its ranks, and what is right to say of it."""

    suite: str
    name: str
    operations: list[RankOperations]
    hosts: dict[int, str]
    expected: ExpectedOfCase


def plan(count: int, seed: int) -> list[tuple[str, str, str, str, int]]:
    """(suite, layout, kind, recorder, seed) of each generated case."""
    of_layouts = cases.LAYOUTS | dict.fromkeys(foreign_layouts.LAYOUTS, foreign_layouts.KINDS)
    found = []
    for number in range(seed, seed + count):
        each = [(layout, kind) for layout, kinds in of_layouts.items() for kind in kinds]
        found += [("layouts", layout, kind, "as it is", number) for layout, kind in each[number % 2 :: 2]]
        found += [
            ("recorders", layout, kind, recorder, number)
            for layout in _UNDER_OTHERS for kind in foreign_layouts.KINDS for recorder in OTHER_RECORDERS
            if kind in of_layouts[layout]
        ]  # fmt: skip
        often = (*faults.FAULTS, *faults.OFTEN)
        found += [("bench", "", kind, "as it is", 2 * number + at) for kind in often for at in range(2)]
        found += [("healthy", "", kind, "as it is", 3 * number + at) for kind in faults.NO_FAULTS for at in range(3)]
        found += [("healthy", layout, "none", "as it is", number + 1) for layout in foreign_layouts.LAYOUTS]
    return found


def generate(suite: str, layout: str, kind: str, recorder: str, seed: int) -> KeptCase | None:
    """None where the fault costs too little to tell, or traces cannot tell it."""
    name = f"{recorder}: {layout} {kind} {seed}".replace("as it is: ", "")
    if layout:
        truth, traces = draw(layout, kind, seed)
        if not truth.counts:
            return None
        operations = operations_of_traces(RECORDERS[recorder](traces, np.random.default_rng(seed)))
        ranks, gain = truth.ranks, truth.gain
    else:
        case, traces, job = faults.draw(kind, seed)
        if kind not in faults.NO_FAULTS and not (case.identifiable and case.gain >= LEAST_GAIN):
            return None
        operations, ranks, gain = faults.operations_of(job, traces), tuple(case.culprits), case.gain
    cause = (cases.CAUSES | faults.CAUSES | _MOVES).get(kind)
    if cause is None or kind in _MOVES:
        expected = ExpectedOfCase("nobody") if cause is None else ExpectedOfCase("moving_imbalance", (), (cause,))
        return KeptCase("healthy", name, operations, {}, expected)
    verdict = {"network": "slow_link", "stage_imbalance": "heavy_stage"}.get(cause, "straggler")
    return KeptCase(suite, name, operations, {}, ExpectedOfCase(verdict, ranks, (cause,), gain))


def captured(folder: Path) -> Iterator[KeptCase]:
    """The captures of real jobs below a folder: those of planted_faults.py, or with an `expected.json` beside them."""
    for written in sorted([*folder.rglob("planted.txt"), *folder.rglob("expected.json")]):
        record = json.loads(written.read_text())
        if written.name == "planted.txt":
            truth = REAL[record["case"]]
            ranks = (record["culprit"],) if truth.verdict == "straggler" else ()
            expected = ExpectedOfCase(truth.verdict, ranks, truth.causes)
        else:
            expected = ExpectedOfCase(
                record["verdict"], tuple(record["ranks"]), tuple(record["causes"]), record["gain"]
            )
        operations, hosts = _operations_of(written.parent / record.get("folder", "."))
        name = str(written.parent.relative_to(folder))
        yield KeptCase("real", name, operations, hosts, expected)
        unsampled = [replace(one, cores=replace_struct(one.cores, ran_ns=[], waited_ns=[])) for one in operations]
        yield KeptCase("real", f"{name} without samples", unsampled, hosts, expected)


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


def judge(found: Stragglers, expected: ExpectedOfCase) -> str:
    """Which of OUTCOMES a verdict is; `alarm` names a rank where none is late."""
    first = found.ranks[0].rank if found.ranks else None
    names = found.verdict in _NAMED
    if expected.verdict not in _NAMED and names:
        return "alarm"
    if expected.verdict == "nobody":
        return _QUIET.get(found.verdict, "quiet")
    if expected.verdict == "moving_imbalance" and found.verdict == expected.verdict:
        return "right" if found.cause in expected.causes else "cause"
    if names:
        links = {rank for link in found.slow_links[:1] for rank in link.ranks}
        if first not in expected.ranks and not (expected.verdict == "slow_link" and links & set(expected.ranks)):
            return "wrong"
        cause = "network" if found.verdict == "slow_link" else found.ranks[0].cause
        gain = found.ranks[0].gain if found.verdict == "straggler" else found.gain
        if cause not in expected.causes:
            return "cause"
        return "right" if expected.gain is None or abs(gain - expected.gain) <= GAIN_OFF else "gain"
    if found.verdict == "undecided":
        return "open"
    is_small = expected.gain is not None and expected.gain < (found.smallest_gain or 0.0)
    return "small" if is_small else "nobody"
