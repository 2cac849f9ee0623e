"""The floating-point operations of each operator of a trace, and the data type that they work on.

Guarantees: pure; sums stay below 2^62; nothing counts twice: an operator inside a counted one counts nothing. Data
types have the names of torch, so far as they are known here; the others those of the trace.
"""

import re
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from fleetprof_analyzer.rank.efficiency.formulas import count_flops, find_formula, has_formula
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Bools, Category, Inputs, Int64s, Rows

# c10::ScalarTypeToTypeMeta's names, as Kineto writes them.
DATA_TYPES: Final = {
    "float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "c10::Float8_e4m3fn": "float8", "c10::Float8_e5m2": "float8", "c10::Float8_e4m3fnuz": "float8",
    "c10::Float8_e5m2fnuz": "float8", "signed char": "int8", "c10::complex<float>": "complex64",
}  # fmt: skip
_NODE: Final = re.compile(r"^autograd::engine::evaluate_function: ")
_DETACH: Final = re.compile(r"^(?:aten::)?detach$")
_LONGEST_TYPE: Final = 40
_MOST_FLOPS: Final = float(1 << 62)  # of a trace: hours of any device


@dataclass(frozen=True, slots=True)
class OperatorFlops:
    """Columns of equal length: the operators that count, positions in the rows that were asked about, ascending.

    `flops` is -1 where the shapes do not tell it. `inner` is the last one inside that has a formula, or itself.
    `data_type` numbers `data_types`.
    """

    at: Int64s
    inner: Int64s
    flops: Int64s
    data_type: Int64s
    data_types: list[str]


def count_operators(rows: Rows, names: list[str], inputs: list[Inputs]) -> OperatorFlops:
    """Counts those of rows of one trace in any order; `names` and `inputs` are the trace's."""
    counts = (rows.category == Category.OPERATOR) & where_name(rows, names, has_formula)
    at, inner = leave_outermost(rows, np.flatnonzero(counts))
    numbers, owner = _number_kinds(rows, at)
    flops = [count_flops(names[name], inputs[shape]) if shape >= 0 else None for name, shape in numbers]
    counts_of = np.array([-1 if count is None else count for count in flops], np.int64)[owner]
    counts_of[were_stopped(rows, names, inner)] = 0
    if float(counts_of.sum(dtype=np.float64)) >= _MOST_FLOPS:
        counts_of = np.full(len(at), -1, np.int64)
    typed, typed_owner = _number_kinds(rows, inner)
    data_types: dict[str, int] = {}
    kinds = [
        data_types.setdefault(_find_type(names[name], inputs[shape]) if shape >= 0 else "", len(data_types))
        for name, shape in typed
    ]
    return OperatorFlops(
        at,
        inner,
        counts_of,
        np.array(kinds, np.int64)[typed_owner],
        list(data_types),
    )


def were_stopped(rows: Rows, names: list[str], at: Int64s) -> Bools:
    """Marks those that activation checkpointing stopped before they computed anything, shape (n,).

    They run again within backward, where only what runs again has a sequence number, and nothing is inside them but
    what saves their inputs.
    """
    again = np.flatnonzero(rows.detail[at] >= 0)
    nodes = rows.select((rows.category == Category.OPERATOR) & where_name(rows, names, matcher(_NODE)))
    stopped = np.zeros(len(at), np.bool_)
    if not len(again) or not len(nodes):
        return stopped
    computes = ~rows.on_device & ~where_name(rows, names, matcher(_DETACH))
    for place in np.unique(nodes.place):
        own = again[rows.place[at[again]] == place]
        begin_ns, of_place = rows.start_ns[at[own]], nodes.select(nodes.place == place)
        order = np.argsort(of_place.start_ns, kind="stable")
        reach_ns = np.maximum.accumulate(of_place.end_ns[order])
        around = np.searchsorted(of_place.start_ns[order], begin_ns, side="right") - 1
        own = own[(around >= 0) & (reach_ns[np.maximum(around, 0)] > begin_ns)]
        inside_ns = np.sort(rows.start_ns[computes & (rows.place == place)])
        first, last = (np.searchsorted(inside_ns, side) for side in (rows.start_ns[at[own]], rows.end_ns[at[own]]))
        stopped[own] = last - first <= 1  # only itself
    return stopped


def _number_kinds(rows: Rows, at: Int64s) -> tuple[list[tuple[int, int]], Int64s]:
    """The distinct (name, inputs) of these rows, and which of them each has."""
    keys, owner = np.unique((rows.name[at].astype(np.int64) << 32) + rows.shape[at] + 1, return_inverse=True)
    return [(key >> 32, (key & 0xFFFF_FFFF) - 1) for key in keys.tolist()], owner


def leave_outermost(rows: Rows, at: Int64s) -> tuple[Int64s, Int64s]:
    """The rows that lie in no other of them, ascending, and of each the last row that lies in it, or itself.

    Under autocast `aten::linear` is given float32, and the product inside bfloat16: that is what is computed with.
    """
    at = at[order_by(rows.place[at], rows.start_ns[at], -rows.duration_ns[at])]
    places, ends = rows.place[at].tolist(), rows.end_ns[at].tolist()
    kept: list[int] = []
    inner: list[int] = []
    place, until = -1, 0
    for number, start in enumerate(rows.start_ns[at].tolist()):
        if places[number] == place and start < until:
            inner[-1] = number
            continue
        place, until = places[number], ends[number]
        kept.append(number)
        inner.append(number)
    ascending = np.argsort(at[kept], kind="stable")
    return at[kept][ascending], at[inner][ascending]


def _find_type(name: str, inputs: Inputs) -> str:
    try:
        types = msgspec.json.decode(inputs.types, type=list[str])
        text = types[find_formula(name).operand]
    except (IndexError, ValueError):
        return ""
    return DATA_TYPES.get(text, text[:_LONGEST_TYPE])
