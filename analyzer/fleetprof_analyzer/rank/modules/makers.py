"""The operator that made each node of autograd's graph, by its sequence number.

AccumulateGrad has no number, and belongs to the node that ran before it on its thread. Guarantees: pure; a number that
operators of two modules on two threads have belongs to none.
"""

from collections.abc import Sequence

import numpy as np

from fleetprof_analyzer.rank.modules.kinds import ACCUMULATE, NODE, ModulePhase, RowKind
from fleetprof_analyzer.rank.modules.nesting import NOWHERE
from fleetprof_analyzer.trace.trace import Category, Int64s, Rows


def find_makers(
    rows: Rows,
    names: Sequence[str],
    parents: Sequence[int],
    nodes: Int64s,
    *,
    modules: Int64s,
    phases: Int64s,
    kinds: Int64s,
    threads: Int64s,
) -> Int64s:
    """The module of each of the `nodes` (positions in the rows), NOWHERE where it is not known.

    `modules` are those of the rows, so far as they are known. `threads` run modules: they make graphs, and what others
    number has nothing to do with these.
    """
    makes = (rows.detail >= 0) & (kinds == RowKind.OTHER) & (phases != ModulePhase.BACKWARD)
    makes &= (rows.category == Category.OPERATOR) & np.isin(rows.place, threads)
    at = np.flatnonzero(makes)
    # Numbers are taken by the next node: of the rows with one number the last made it.
    at = at[np.lexsort((rows.start_ns[at], rows.detail[at]))]
    numbers = rows.detail[at]
    last = np.flatnonzero(np.append(numbers[1:] != numbers[:-1], True)) if len(at) else np.zeros(0, np.int64)
    first = np.append(0, last[:-1] + 1) if len(last) else last
    makers = modules[at[last]]
    if len(last):
        places = rows.place[at]
        several = np.minimum.reduceat(places, first) != np.maximum.reduceat(places, first)
        made = modules[at]
        differ = np.minimum.reduceat(made, first) != np.maximum.reduceat(made, first)
        makers = np.where(several & differ, NOWHERE, makers)
    wanted = _number_nodes(rows, names, parents, nodes)
    found = np.searchsorted(numbers[last], wanted)
    hit = (found < len(last)) & (wanted >= 0)
    hit[hit] = numbers[last][found[hit]] == wanted[hit]
    owners = np.full(len(nodes), NOWHERE, np.int64)
    owners[hit] = makers[found[hit]]
    accumulates = {n for n in set(rows.name[nodes].tolist()) if names[n].startswith(ACCUMULATE)}
    before: dict[int, int] = {}
    for position, node in enumerate(nodes.tolist()):
        place = int(rows.place[node])
        if int(rows.name[node]) in accumulates:
            owners[position] = before.get(place, NOWHERE)
        else:
            before[place] = int(owners[position])
    return owners


def _number_nodes(rows: Rows, names: Sequence[str], parents: Sequence[int], nodes: Int64s) -> Int64s:
    """The sequence numbers of autograd's nodes; a node with hooks says its own in the row inside."""
    numbers = rows.detail[nodes]
    silent = {int(nodes[at]): at for at in np.flatnonzero(numbers < 0)}
    for row in np.flatnonzero(rows.detail >= 0).tolist():
        at = silent.get(parents[row])
        if at is not None and names[rows.name[nodes[at]]] == NODE + names[rows.name[row]]:
            numbers[at] = rows.detail[row]
    return numbers
