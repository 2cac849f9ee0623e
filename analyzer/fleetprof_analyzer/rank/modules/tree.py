"""The tree of modules of one rank, from the rows of the marked iteration and what the agent said of the modules.

Guarantees: pure; at most `MOST_NODES` nodes, those with the most time; what is left out is counted and lies in the
nodes around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from fleetprof_api.report.module_tree import MOST_NODES, ModuleNode, ModuleTimes, ModuleTree
from fleetprof_api.samples import ModuleColumns, RankSamples

from fleetprof_analyzer.rank.efficiency.operator_flops import count_operators
from fleetprof_analyzer.rank.iterations import OPTIMIZER_STEP
from fleetprof_analyzer.rank.modules.assignment import NOWHERE, Assignment, ModulePath, ModulePhase, assign
from fleetprof_analyzer.rank.modules.held import add_held, find_batch
from fleetprof_analyzer.rank.modules.marked_iteration import MarkedRows
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s

_PHASES: Final = (ModulePhase.FORWARD, ModulePhase.BACKWARD, ModulePhase.RECOMPUTE)
# Columns of amounts, in the order of ModuleTimes' fields.
_HOST, _DEVICE, _LAUNCHES, _OPERATORS, _FLOPS = range(5)
_SAID: Final = [name for name in ModuleColumns.__struct_fields__ if name not in ("name", "calls", "rows", "indices")]
_AMOUNTS: Final = len(ModuleTimes.__struct_fields__)


@dataclass(frozen=True, slots=True)
class _Amounts:
    """The amounts that each row adds, shape (n, 5), with its module and phase, shape (n,)."""

    path: Int64s
    phase: Int64s
    amount: Int64s

    def total(self, mask: Bools) -> ModuleTimes:
        return _times(self.amount[mask].sum(axis=0))


def measure_modules(marked: MarkedRows | None, samples: RankSamples | None) -> ModuleTree | None:
    """The tree, None where no iteration was marked."""
    if marked is None:
        return None
    found = assign(marked)
    amounts = _measure(marked, found)
    own = np.zeros((len(found.paths), len(_PHASES), _AMOUNTS), np.int64)
    is_inside = (amounts.path != NOWHERE) & (amounts.phase != ModulePhase.COMMUNICATION)
    np.add.at(own, (amounts.path[is_inside], amounts.phase[is_inside]), amounts.amount[is_inside])
    whole = own.copy()
    for number in range(len(found.paths) - 1, -1, -1):  # a path stands behind the one around it
        if (outer := found.paths[number].parent) != NOWHERE:
            whole[outer] += whole[number]
    columns = ModuleColumns() if samples is None else samples.modules
    nodes = _make_nodes(found, own, whole, columns)
    kept = _choose(found.paths, whole)
    return ModuleTree(
        iteration_ns=_find_end(marked) - marked.begin_ns,
        whole=amounts.total(np.ones(len(amounts.path), np.bool_)),
        in_modules=amounts.total(is_inside),
        unassigned_backward=amounts.total((amounts.path == NOWHERE) & (amounts.phase == ModulePhase.BACKWARD)),
        recompute=amounts.total(amounts.phase == ModulePhase.RECOMPUTE),
        communication=amounts.total(amounts.phase == ModulePhase.COMMUNICATION),
        ended_early=_ended_early(marked),
        left_out=len(nodes) - len(kept),
        held=add_held(columns),
        **find_batch(columns, [node for node in nodes if not node.depth], by_device=bool(whole[..., _DEVICE].any())),
        nodes=[nodes[number] for number in _in_order(found.paths, kept)],
    )


def _measure(marked: MarkedRows, found: Assignment) -> _Amounts:
    host = np.zeros((len(found.path), _AMOUNTS), np.int64)
    counts = (found.rows.category == Category.OPERATOR) & ~found.is_mark
    host[counts, _HOST] = found.own_ns[counts]
    host[counts, _OPERATORS] = 1
    counted = count_operators(found.rows, marked.names, marked.inputs)
    host[counted.at, _FLOPS] = np.maximum(counted.flops, 0)
    work = marked.rows.select(marked.rows.on_device)
    calls = np.flatnonzero((found.rows.category == Category.RUNTIME) & (found.rows.correlation >= 0))
    calls = calls[np.argsort(found.rows.correlation[calls], kind="stable")]
    numbers = found.rows.correlation[calls]
    at = np.searchsorted(numbers, work.correlation)
    is_known = at < len(numbers)
    is_known[is_known] = numbers[at[is_known]] == work.correlation[is_known]
    path, phase = np.full(len(work), NOWHERE, np.int64), np.full(len(work), int(ModulePhase.FORWARD), np.int64)
    path[is_known] = found.path[calls[at[is_known]]]
    phase[is_known] = found.phase[calls[at[is_known]]]
    device = np.zeros((len(work), _AMOUNTS), np.int64)
    device[:, _DEVICE] = work.duration_ns
    device[:, _LAUNCHES] = 1
    return _Amounts(
        np.concatenate((found.path, path)), np.concatenate((found.phase, phase)), np.concatenate((host, device))
    )


def _make_nodes(found: Assignment, own: Int64s, whole: Int64s, columns: ModuleColumns) -> list[ModuleNode]:
    calls, elapsed_ns = np.zeros(len(found.paths), np.int64), np.zeros(len(found.paths), np.int64)
    is_call = found.is_mark & (found.phase == ModulePhase.FORWARD) & (found.path != NOWHERE)
    np.add.at(calls, found.path[is_call], 1)
    np.add.at(elapsed_ns, found.path[is_call], found.rows.duration_ns[is_call])
    row_of = {name: row for row, name in enumerate(columns.name)}
    depths: list[int] = []
    nodes: list[ModuleNode] = []
    for number, path in enumerate(found.paths):
        depths.append(0 if path.parent == NOWHERE else depths[path.parent] + 1)
        forward, backward, recompute = (_times(whole[number, phase]) for phase in _PHASES)
        node = ModuleNode(
            name=path.name,
            depth=depths[-1],
            calls=int(calls[number]),
            elapsed_ns=int(elapsed_ns[number]),
            forward=forward,
            backward=backward,
            recompute=recompute,
            own=_times(own[number].sum(axis=0)),
        )
        row = row_of.get(path.name)
        nodes.append(node if row is None else _describe(node, columns, row))
    return nodes


def _describe(node: ModuleNode, columns: ModuleColumns, row: int) -> ModuleNode:
    # Columns that an earlier version did not write are empty.
    known = {name: column[row] for name in _SAID if (column := getattr(columns, name))}
    return msgspec.structs.replace(node, **known)


def _choose(paths: Sequence[ModulePath], whole: Int64s) -> set[int]:
    """The paths with the most time, with those around them: these have no less."""
    time_ns = whole.sum(axis=1)
    basis = _DEVICE if time_ns[:, _DEVICE].any() else _HOST
    # Of equal ones the outer stand first.
    order = np.argsort(-time_ns[:, basis], kind="stable")[:MOST_NODES].tolist()
    return set(order)


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


def _times(amounts: Int64s) -> ModuleTimes:
    return ModuleTimes(**dict(zip(ModuleTimes.__struct_fields__, map(int, amounts), strict=True)))
