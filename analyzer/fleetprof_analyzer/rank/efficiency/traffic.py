"""The bytes that an operator moves at least: its tensors once each, those that it reads and those that it writes.

Caches may save reads and kernels may read twice: the bytes are those of the shapes. Formulas:
docs/measures.md#roofline. Guarantees: pure; what shapes and data types do not tell is None.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any, Final

import msgspec
import numpy as np

from fleetprof_analyzer.rank.efficiency.formulas import LARGEST, REFUSALS, Call, convolve, has_formula
from fleetprof_analyzer.rank.efficiency.operator_flops import leave_outermost, were_stopped
from fleetprof_analyzer.reading.columns.dimensions import read_dimensions
from fleetprof_analyzer.trace.naming import where_name
from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Bools, Category, Inputs, Int32s, Int64s, Rows

# c10::ScalarTypeToTypeMeta's names, as Kineto writes them.
_ITEM_BYTES: Final = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2fnuz": 1, "signed char": 1, "unsigned char": 1, "bool": 1, "short": 2,
    "short int": 2, "int": 4, "long": 8, "long int": 8, "c10::complex<float>": 8, "c10::complex<double>": 16,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Tensors:
    """The tensors of a call."""

    call: Call
    types: Sequence[str]

    def sizes(self, at: int) -> list[int]:
        sizes: Any = self.call.dimensions[at]
        if not isinstance(sizes, list) or any(not isinstance(size, int) for size in sizes):
            raise ValueError("no tensor, or several")
        return sizes

    def item(self, at: int) -> int:
        """The bytes of an element."""
        return _ITEM_BYTES[self.types[at]]

    def tensor(self, at: int) -> int:
        """The bytes of one that the operator takes."""
        return prod(self.sizes(at)) * self.item(at)

    def has(self, at: int) -> bool:
        """Tells whether the argument is a tensor."""
        return at < len(self.types) and self.types[at] in _ITEM_BYTES and bool(self.call.dimensions[at])


_Formula = Callable[[_Tensors], int]


def _product(left: int, right: int) -> _Formula:
    def count(one: _Tensors) -> int:
        a, b = one.sizes(left), one.sizes(right)
        made = prod(a[:-1]) * (b[-1] if len(b) > 1 else 1)
        added = one.tensor(0) if left else 0
        return one.tensor(left) + one.tensor(right) + made * one.item(left) + added

    return count


def _linear(one: _Tensors) -> int:
    made = prod(one.sizes(0)[:-1]) * prod(one.sizes(1)[:-1])
    return one.tensor(0) + one.tensor(1) + made * one.item(0) + (one.tensor(2) if one.has(2) else 0)


def _convolution(one: _Tensors) -> int:
    if one.call.values[6] == "True":
        raise ValueError("what a transposed convolution makes is not told")
    values, weight = one.sizes(0), one.sizes(1)
    made = values[0] * weight[0] * prod(convolve(one.call, values[2:], weight[2:]))
    return one.tensor(0) + one.tensor(1) + made * one.item(0) + (one.tensor(2) if one.has(2) else 0)


def _convolution_backward(one: _Tensors) -> int:
    wanted = one.call.values[10].strip("[]").split(", ")
    written = sum(one.tensor(at) for at, is_wanted in zip((1, 2), wanted, strict=False) if is_wanted == "True")
    return sum(one.tensor(at) for at in range(3)) + written


def _attention(one: _Tensors) -> int:
    made = prod(one.sizes(0)[:-1]) * one.sizes(2)[-1]
    return sum(one.tensor(at) for at in range(3)) + made * one.item(0)


def _attention_backward(one: _Tensors) -> int:
    """Reads gradient, query, key, value and output, and writes three gradients."""
    return 2 * sum(one.tensor(at) for at in range(4))


def _multiples(*amounts: int) -> _Formula:
    """Counts each argument so many times."""

    def count(one: _Tensors) -> int:
        return sum(amount * one.tensor(at) for at, amount in enumerate(amounts))

    return count


def _each(one: _Tensors) -> int:
    """Reads its tensors, and writes one as large as they are spread over each other."""
    given = [at for at in range(len(one.types)) if one.has(at)]
    if not given:
        raise ValueError("no tensor")
    axes = max(len(one.sizes(at)) for at in given)
    spread = [[1] * (axes - len(sizes)) + sizes for sizes in map(one.sizes, given)]
    largest: list[int] = [max(sizes) for sizes in zip(*spread, strict=True)]
    return sum(map(one.tensor, given)) + prod(largest) * max(map(one.item, given))


def _look_up(one: _Tensors) -> int:
    """Reads the numbers and what they choose along an axis, and writes that."""
    sizes, axis = one.sizes(0), int(one.call.values[1])
    return one.tensor(2) + 2 * prod(one.sizes(2)) * (prod(sizes) // sizes[axis]) * one.item(0)


_KERNELS: Final = ("flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu")
_ELEMENT_WISE: Final = (
    "add", "sub", "mul", "div", "neg", "exp", "log", "sqrt", "rsqrt", "pow", "tanh", "sigmoid", "relu", "gelu", "silu",
    "clamp", "clamp_min", "leaky_relu", "hardtanh", "elu", "where", "addcmul", "addcdiv", "lerp", "maximum", "minimum",
    "sin", "cos", "abs", "reciprocal", "masked_fill", "threshold_backward", "gelu_backward", "silu_backward",
    "tanh_backward", "sigmoid_backward",
)  # fmt: skip
_NORMS: Final = ("native_layer_norm", "native_batch_norm", "native_group_norm", "cudnn_batch_norm", "_fused_rms_norm")
TRAFFIC: Final[Mapping[str, _Formula]] = MappingProxyType(
    {
        **dict.fromkeys(("aten::mm", "aten::bmm", "aten::mv", "aten::dot"), _product(0, 1)),
        **dict.fromkeys(("aten::addmm", "aten::baddbmm", "aten::addmv", "aten::_addmm_activation"), _product(1, 2)),
        "aten::linear": _linear,
        "aten::convolution": _convolution,
        "aten::convolution_backward": _convolution_backward,
        **{f"aten::_scaled_dot_product_{kernel}": _attention for kernel in _KERNELS},
        **{f"aten::_scaled_dot_product_{kernel}_backward": _attention_backward for kernel in _KERNELS},
        **{f"aten::{name}": _each for name in _ELEMENT_WISE},
        **{f"aten::{name}": _multiples(2) for name in (*_NORMS, "_softmax", "_log_softmax")},
        **{f"aten::{name}_backward": _multiples(1, 2) for name in _NORMS},
        **{f"aten::{name}_backward_data": _multiples(1, 2) for name in ("_softmax", "_log_softmax")},
        "aten::copy_": _multiples(1, 1),
        **dict.fromkeys(("aten::fill_", "aten::zero_", "aten::sum", "aten::mean"), _multiples(1)),
        "aten::index_select": _look_up,
    }
)


def has_traffic(name: str) -> bool:
    """Tells whether this operator's bytes are counted."""
    return name in TRAFFIC or name.removesuffix("_") in TRAFFIC


def count_bytes(name: str, inputs: Inputs) -> int | None:
    """Counts those that a call of the operator moves, None where it is not told. Raises KeyError: no formula."""
    formula = TRAFFIC[name if name in TRAFFIC else name.removesuffix("_")]
    try:
        values = msgspec.json.decode(inputs.values) if inputs.values else []
        types = msgspec.json.decode(inputs.types, type=list[str])
        moved = formula(_Tensors(Call(read_dimensions(inputs.dimensions) or [], values), types))
    except REFUSALS:
        return None
    return moved if 0 <= moved < LARGEST else None


@dataclass(frozen=True, slots=True)
class OperatorTraffic:
    """Columns of equal length: the operators that count, positions, ascending; -1 bytes: not told."""

    at: Int64s
    moved_bytes: Int64s


def count_traffic(rows: Rows, names: list[str], inputs: list[Inputs]) -> OperatorTraffic:
    """Counts those of rows of one trace in any order; none of them lies in another.

    Of products inside each other the innermost counts, with all that it calls; of other operators the outermost.
    """
    at = np.flatnonzero((rows.category == Category.OPERATOR) & where_name(rows, names, has_traffic) & (rows.shape >= 0))
    at = at[order_by(rows.place[at], rows.start_ns[at], -rows.duration_ns[at])]
    is_product = where_name(rows, names, has_formula)[at]
    products = at[is_product]
    products = products[~_are_around(rows, products)]
    others = at[~is_product]
    others, _ = leave_outermost(rows, others[~_lie_in(rows, others, products)])
    at = np.concatenate((products, others))
    at = at[order_by(rows.place[at], rows.start_ns[at], -rows.duration_ns[at])]
    at = np.sort(at[~_are_around(rows, at)])
    keys, owner = np.unique((rows.name[at].astype(np.int64) << 32) + rows.shape[at], return_inverse=True)
    counted = [count_bytes(names[key >> 32], inputs[key & 0xFFFF_FFFF]) for key in keys.tolist()]
    moved_bytes = np.array([-1 if one is None else one for one in counted], np.int64)[owner]
    products = np.flatnonzero(np.isin(at, products))
    moved_bytes[products[were_stopped(rows, names, at[products])]] = 0
    return OperatorTraffic(at, moved_bytes)


def _are_around(rows: Rows, at: Int64s) -> Bools:
    """Marks those that have the next one inside; by thread and start."""
    place, start_ns, end_ns = rows.place[at], rows.start_ns[at], rows.end_ns[at]
    around = np.zeros(len(at), np.bool_)
    around[:-1] = (place[1:] == place[:-1]) & (start_ns[1:] < end_ns[:-1])
    return around


def _lie_in(rows: Rows, at: Int64s, outer: Int64s) -> Bools:
    """Marks those that lie in one of `outer`, of which none lies in another; by thread and start."""
    return find_outer(rows, rows.place[at], rows.start_ns[at], outer) >= 0


def find_outer(rows: Rows, place: Int32s, start_ns: Int64s, outer: Int64s) -> Int64s:
    """The number in `outer` of the row around each of these places and times, -1 for none; shape of `place`."""
    found = np.full(len(place), -1, np.int64)
    for one in np.unique(rows.place[outer]).tolist():
        of_place = np.flatnonzero(rows.place[outer] == one)
        of_place = of_place[np.argsort(rows.start_ns[outer[of_place]], kind="stable")]
        wanted = np.flatnonzero(place == one)
        before = np.searchsorted(rows.start_ns[outer[of_place]], start_ns[wanted], side="right") - 1
        number = of_place[np.maximum(before, 0)]
        inside = (before >= 0) & (start_ns[wanted] < rows.end_ns[outer[number]])
        found[wanted[inside]] = number[inside]
    return found
