"""The figures of modules as medians over measured iterations, in which nothing was marked.

Guarantees: pure; of a module only iterations count in which all of it is told, so that a median is never of a part;
a module without one has none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from fleetprof_api.report.module_tree import ModuleTimes
from fleetprof_api.report.report import Iteration
from fleetprof_api.samples import ModuleColumns

from fleetprof_analyzer.rank.modules.amounts import AMOUNTS, find_launches, measure_amounts, times_of
from fleetprof_analyzer.rank.modules.assignment import Assignment
from fleetprof_analyzer.rank.modules.kinds import ModulePhase
from fleetprof_analyzer.rank.modules.marked_iteration import MarkedRows
from fleetprof_analyzer.rank.modules.nesting import NOWHERE
from fleetprof_analyzer.rank.modules.unmarked.alike import find_alike
from fleetprof_analyzer.rank.modules.unmarked.measured import MeasuredRows, assign_measured
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s, Trace

_MOST_ITERATIONS: Final = 32
PHASES: Final = (ModulePhase.FORWARD, ModulePhase.BACKWARD, ModulePhase.RECOMPUTE)


@dataclass(frozen=True, slots=True)
class Medians:
    """`own` and `whole`: shape (paths, phases, amounts); `*_of`: iterations behind them, shape (paths,).

    `totals`: fields of ModuleTree. `spans`: (start, end) of each path's forward in the last of the iterations, ns.
    """

    own: Int64s
    whole: Int64s
    own_of: Int64s
    whole_of: Int64s
    totals: dict[str, ModuleTimes]
    iterations: int
    iteration_ns: int
    spans: list[tuple[int, int] | None]


def measure_medians(
    trace: Trace, iterations: Sequence[Iteration], marked: MarkedRows, found: Assignment, columns: ModuleColumns
) -> Medians | None:
    """None where no iteration is measured, or nobody said which modules were not called."""
    chosen = [one for one in iterations if one.complete is not False and one.duration_ns > 0]
    chosen = [one for one in chosen if one.start_ns + one.duration_ns <= marked.begin_ns + 1][-_MOST_ITERATIONS:]
    if not chosen or not columns.name or not found.paths:
        return None
    work = trace.rows.select(trace.rows.on_device)
    marked_work = marked.rows.select(marked.rows.on_device)
    bounds = [(one.start_ns, one.start_ns + one.duration_ns) for one in chosen]
    launched = np.unique(marked_work.correlation), np.unique(work.correlation)
    measured = assign_measured(trace.rows, trace.names, bounds, found, launched, find_alike(columns))
    is_aligned = measured.is_known.any(axis=1)
    if not is_aligned.any():
        return None
    work = work.select(find_launches(measured.rows, work) != NOWHERE)
    counts = measured.rows.category == Category.OPERATOR
    amounts = measure_amounts(measured.rows, measured.own_ns, counts, work, trace.names, trace.inputs)
    path, phase = amounts.take(measured.path, NOWHERE), amounts.take(measured.phase, ModulePhase.FORWARD)
    iteration = amounts.take(measured.iteration, 0)
    is_inside = amounts.take(measured.is_inside.astype(np.int64), 0) > 0
    is_unmatched = (amounts.take(measured.is_unmatched.astype(np.int64), 0) > 0) | is_inside
    in_module = (path != NOWHERE) & (phase != ModulePhase.COMMUNICATION)

    def add(mask: Bools) -> Int64s:
        found = np.zeros((len(chosen), AMOUNTS), np.int64)
        np.add.at(found, iteration[mask], amounts.amount[mask])
        return found[is_aligned]

    shape = (len(chosen), len(found.paths), len(PHASES), AMOUNTS)
    own, whole = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for into, mask in ((own, in_module & ~is_inside), (whole, in_module)):
        np.add.at(into, (iteration[mask], path[mask], phase[mask]), amounts.amount[mask])
    for number in range(len(found.paths) - 1, -1, -1):  # a path stands behind the one around it
        if (outer := found.paths[number].parent) != NOWHERE:
            whole[:, outer] += whole[:, number]
    totals = {
        "whole": np.ones(len(path), np.bool_),
        "in_modules": in_module & ~is_inside,
        "unmatched": is_unmatched,
        "unassigned_backward": (path == NOWHERE) & (phase == ModulePhase.BACKWARD) & ~is_unmatched,
        "recompute": phase == ModulePhase.RECOMPUTE,
        "communication": phase == ModulePhase.COMMUNICATION,
    }
    lengths = np.array([one.duration_ns for one in chosen], np.int64)[is_aligned]
    return Medians(
        own=_by_path(own, measured.own_known),
        whole=_by_path(whole, measured.is_known),
        own_of=measured.own_known.sum(axis=0),
        whole_of=measured.is_known.sum(axis=0),
        totals={name: times_of(_median(add(mask))) for name, mask in totals.items()},
        iterations=int(is_aligned.sum()),
        iteration_ns=int(_median(lengths)),
        spans=_find_spans(measured, found, int(np.flatnonzero(is_aligned)[-1])),
    )


def _find_spans(measured: MeasuredRows, found: Assignment, iteration: int) -> list[tuple[int, int] | None]:
    rows = measured.rows
    mask = (measured.iteration == iteration) & (measured.phase == ModulePhase.FORWARD) & (measured.path != NOWHERE)
    at = np.flatnonzero(mask & ~measured.is_inside & (rows.category == Category.OPERATOR))
    last = np.iinfo(np.int64).max
    begin, end = np.full(len(found.paths), last, np.int64), np.zeros(len(found.paths), np.int64)
    np.minimum.at(begin, measured.path[at], rows.start_ns[at])
    np.maximum.at(end, measured.path[at], rows.end_ns[at])
    for number in range(len(found.paths) - 1, -1, -1):
        if (outer := found.paths[number].parent) != NOWHERE:
            begin[outer], end[outer] = min(begin[outer], begin[number]), max(end[outer], end[number])
    return [(one, int(end[number])) if one < last else None for number, one in enumerate(begin.tolist())]


def _by_path(amounts: Int64s, is_known: Bools) -> Int64s:
    found = np.zeros(amounts.shape[1:], np.int64)
    everywhere = is_known.all(axis=0)
    found[everywhere] = _median(amounts[:, everywhere])
    for number in np.flatnonzero(~everywhere & is_known.any(axis=0)).tolist():
        found[number] = _median(amounts[is_known[:, number], number])
    return found


def _median(amounts: Int64s) -> Int64s:
    """The median over the first axis."""
    ordered = np.sort(amounts, axis=0)
    middle: Int64s = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2
    return middle
