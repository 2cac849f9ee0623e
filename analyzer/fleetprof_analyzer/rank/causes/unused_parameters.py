"""DistributedDataParallel's search for parameters that a step does not use: it has a row of its own in each step.

What it notes of each parameter beside that has rows as well: used, as its gradient comes, and read again when all
ranks' notes are there. Guarantees: pure; nothing without rows of the search. The reduction of the notes is not counted.
Source: torch/csrc/distributed/c10d/reducer.cpp (autograd_hook, finalize_bucket_dense).
"""

import re
from typing import Final

import numpy as np
from fleetprof_api.report.rank_tables import KnownCause

from fleetprof_analyzer.rank.causes.rank_view import RankView
from fleetprof_analyzer.rank.causes.stacks import tell
from fleetprof_analyzer.trace.intervals import Union, covered, join, union
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Bools, Category, Rows

_SEARCH: Final = re.compile(r"^torch(?:\.|::)distributed(?:\.|::)ddp(?:\.|::)reducer::search_unused_parameters$")
_INTO_GRADIENT: Final = re.compile(r"^torch(?:\.|::)distributed(?:\.|::)ddp(?:\.|::)reducer::copy_bucket_to_grad$")
_GRADIENT: Final = re.compile(r"^autograd::engine::evaluate_function: .*AccumulateGrad$")
_SELECT: Final = re.compile(r"^aten::select$")
_NOTES: Final = re.compile(r"^aten::fill_$")
_READS: Final = re.compile(r"^aten::item$")
# Operators inside those above.
_INSIDE: Final = re.compile(r"^aten::(?:as_strided|_local_scalar_dense)$")


def find_unused_parameters(view: RankView) -> KnownCause | None:
    """The time of these rows, and of the notes on the threads that make gradients."""
    rows = view.trace.rows.select(~view.trace.rows.on_device)
    search = rows.select(_named(view, rows, _SEARCH))
    if len(search) == 0:
        return None
    spans = union(search.start_ns, search.end_ns)
    gradients = rows.select(_named(view, rows, _GRADIENT))
    operators = rows.select((rows.category == Category.OPERATOR) & ~_named(view, rows, _INSIDE))
    for place in np.unique(gradients.place).tolist():
        here = operators.select(operators.place == place)
        here = here.take(order_by(here.start_ns, -here.duration_ns))
        spans = join(spans, _find_notes(view, here, gradients.select(gradients.place == place)))
    return tell("unused_parameters", view, spans, None)


def _find_notes(view: RankView, rows: Rows, gradients: Rows) -> Union:
    """Finds in one thread's `rows`, by start, a note in each gradient's function and a reading beside its copy."""
    select, copies = _named(view, rows, _SELECT), _named(view, rows, _INTO_GRADIENT)
    following = np.arange(1, len(rows) + 1)
    following[-1:] = len(rows) - 1
    notes = select & _named(view, rows, _NOTES)[following]
    notes &= covered(rows.start_ns, union(gradients.start_ns, gradients.end_ns))
    reads = select & _named(view, rows, _READS)[following] & copies[np.minimum(following + 1, len(rows) - 1)]
    found = np.flatnonzero(notes | reads)
    return union(rows.start_ns[found], rows.end_ns[following[found]])


def _named(view: RankView, rows: Rows, pattern: re.Pattern[str]) -> Bools:
    return where_name(rows, view.trace.names, matcher(pattern))
