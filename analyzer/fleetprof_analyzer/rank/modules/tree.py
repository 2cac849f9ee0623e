"""The tree of modules of one rank, from the rows of the marked iteration and what the agent said of the modules.

Guarantees: pure; at most `MOST_NODES` nodes, those with the most time; what is left out is counted and lies in the
nodes around it. Figures are medians over the measured iterations where these tell all of a module; else they are those
of the marked one, which holds the cost of marks.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
from fleetprof_api.report.findings import Example
from fleetprof_api.report.module_tree import MOST_NODES, ModuleNode, ModuleTimes, ModuleTree
from fleetprof_api.report.report import Iteration
from fleetprof_api.samples import ModuleColumns, RankSamples

from fleetprof_analyzer.rank.iterations import OPTIMIZER_STEP
from fleetprof_analyzer.rank.modules.amounts import AMOUNTS, DEVICE, HOST, measure_amounts, times_of
from fleetprof_analyzer.rank.modules.assignment import Assignment, ModulePath, assign
from fleetprof_analyzer.rank.modules.held import add_held, find_batch
from fleetprof_analyzer.rank.modules.kinds import ModulePhase
from fleetprof_analyzer.rank.modules.marked_iteration import MarkedRows
from fleetprof_analyzer.rank.modules.nesting import NOWHERE
from fleetprof_analyzer.rank.modules.unmarked.medians import PHASES, measure_medians
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.trace import Category, Int64s, Trace

_SAID: Final = [name for name in ModuleColumns.__struct_fields__ if name not in ("name", "calls", "rows", "indices")]


def measure_modules(
    marked: MarkedRows | None,
    samples: RankSamples | None,
    trace: Trace | None = None,
    iterations: Sequence[Iteration] = (),
) -> ModuleTree | None:
    """The tree, None where no iteration was marked. `trace`: without that iteration; `iterations`: those measured."""
    if marked is None:
        return None
    found = assign(marked)
    columns = ModuleColumns() if samples is None else samples.modules
    own, whole, marked_totals = _measure(marked, found)
    totals: dict[str, Any] = {**marked_totals}
    iteration_ns, count = _find_end(marked) - marked.begin_ns, 0
    counts = np.zeros(len(found.paths), np.int64)
    medians = None if trace is None else measure_medians(trace, iterations, marked, found, columns)
    if medians is not None:
        own = np.where(medians.own_of[:, None, None] > 0, medians.own, own)
        whole = np.where(medians.whole_of[:, None, None] > 0, medians.whole, whole)
        totals, counts = {**medians.totals}, medians.whole_of
        iteration_ns, count = medians.iteration_ns, medians.iterations
    nodes = _make_nodes(found, own, whole, counts, columns)
    if medians is not None and samples is not None:
        nodes = [_give_example(node, samples.rank, span) for node, span in zip(nodes, medians.spans, strict=True)]
    kept = choose_paths(found.paths, whole)
    return ModuleTree(
        iteration_ns=iteration_ns,
        measured_iterations=count,
        **totals,
        ended_early=_ended_early(marked),
        left_out=len(nodes) - len(kept),
        held=add_held(columns),
        **find_batch(columns, [node for node in nodes if not node.depth], by_device=bool(whole[..., DEVICE].any())),
        nodes=[nodes[number] for number in _in_order(found.paths, kept)],
    )


def _measure(marked: MarkedRows, found: Assignment) -> tuple[Int64s, Int64s, dict[str, ModuleTimes]]:
    """Own and whole amounts of each path, shape (paths, phases, amounts), and fields of the tree."""
    counts = (found.rows.category == Category.OPERATOR) & ~found.is_mark
    work = marked.rows.select(marked.rows.on_device)
    amounts = measure_amounts(found.rows, found.own_ns, counts, work, marked.names, marked.inputs)
    path, phase = amounts.take(found.path, NOWHERE), amounts.take(found.phase, ModulePhase.FORWARD)
    own = np.zeros((len(found.paths), len(PHASES), AMOUNTS), np.int64)
    is_inside = (path != NOWHERE) & (phase != ModulePhase.COMMUNICATION)
    np.add.at(own, (path[is_inside], phase[is_inside]), amounts.amount[is_inside])
    whole = own.copy()
    for number in range(len(found.paths) - 1, -1, -1):  # a path stands behind the one around it
        if (outer := found.paths[number].parent) != NOWHERE:
            whole[outer] += whole[number]
    totals = {
        "whole": amounts.total(np.ones(len(path), np.bool_)),
        "in_modules": amounts.total(is_inside),
        "unassigned_backward": amounts.total((path == NOWHERE) & (phase == ModulePhase.BACKWARD)),
        "recompute": amounts.total(phase == ModulePhase.RECOMPUTE),
        "communication": amounts.total(phase == ModulePhase.COMMUNICATION),
    }
    return own, whole, totals


def _make_nodes(
    found: Assignment, own: Int64s, whole: Int64s, counts: Int64s, columns: ModuleColumns
) -> list[ModuleNode]:
    calls, elapsed_ns = np.zeros(len(found.paths), np.int64), np.zeros(len(found.paths), np.int64)
    is_call = found.is_mark & (found.phase == ModulePhase.FORWARD) & (found.path != NOWHERE)
    np.add.at(calls, found.path[is_call], 1)
    np.add.at(elapsed_ns, found.path[is_call], found.rows.duration_ns[is_call])
    row_of = {name: row for row, name in enumerate(columns.name)}
    depths: list[int] = []
    nodes: list[ModuleNode] = []
    for number, path in enumerate(found.paths):
        depths.append(0 if path.parent == NOWHERE else depths[path.parent] + 1)
        forward, backward, recompute = (times_of(whole[number, phase]) for phase in PHASES)
        node = ModuleNode(
            name=path.name,
            depth=depths[-1],
            calls=int(calls[number]),
            elapsed_ns=int(elapsed_ns[number]),
            forward=forward,
            backward=backward,
            recompute=recompute,
            own=times_of(own[number].sum(axis=0)),
            measured_iterations=int(counts[number]),
        )
        row = row_of.get(path.name)
        nodes.append(node if row is None else _describe(node, columns, row))
    return nodes


def _give_example(node: ModuleNode, rank: int, span: tuple[int, int] | None) -> ModuleNode:
    if span is None:
        return node
    example = Example(rank=rank, start_ns=span[0], duration_ns=span[1] - span[0])
    return msgspec.structs.replace(node, example=example)


def _describe(node: ModuleNode, columns: ModuleColumns, row: int) -> ModuleNode:
    # Columns that an earlier version did not write are empty.
    known = {name: column[row] for name in _SAID if (column := getattr(columns, name))}
    return msgspec.structs.replace(node, **known)


def choose_paths(paths: Sequence[ModulePath], whole: Int64s) -> set[int]:
    """The paths with the most time, with those around them, by `whole` of shape (paths, phases, amounts)."""
    time_ns = whole.sum(axis=1)
    most_ns = time_ns[:, DEVICE if time_ns[:, DEVICE].any() else HOST].copy()
    # Medians over other iterations may pass those of what is around.
    for number in range(len(paths) - 1, -1, -1):
        if (outer := paths[number].parent) != NOWHERE:
            most_ns[outer] = max(most_ns[outer], most_ns[number])
    # Of equal ones the outer stand first.
    return set(np.argsort(-most_ns, kind="stable")[:MOST_NODES].tolist())


def _in_order(paths: Sequence[ModulePath], kept: set[int]) -> list[int]:
    """The kept paths, each before what is inside it, in the order in which they were called first."""
    inside: dict[int, list[int]] = {}
    for number in sorted(kept, reverse=True):
        inside.setdefault(paths[number].parent, []).append(number)
    waiting, order = list(inside.get(NOWHERE, [])), []
    while waiting:
        number = waiting.pop()
        order.append(number)
        waiting += inside.get(number, [])
    return order


def _find_end(marked: MarkedRows) -> int:
    if marked.end_ns is not None and not _ended_early(marked):
        return marked.end_ns
    host = ~marked.rows.on_device
    return int(marked.rows.end_ns[host].max())


def _ended_early(marked: MarkedRows) -> bool:
    """Tells whether marking ended before the step that ends the iteration had begun.

    Where that step ends says nothing: Kineto may stop inside it, and cuts it short then.
    """
    if marked.end_ns is None:
        return False
    rows = marked.rows.select(where_name(marked.rows, marked.names, matcher(OPTIMIZER_STEP)))
    since = rows.start_ns[rows.start_ns >= marked.begin_ns]
    return not len(since) or int(since.max()) > marked.end_ns
