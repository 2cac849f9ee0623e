"""The formulas of floating-point operations by operator; a product of two numbers and the sum with it count as two.

Matrix products, convolutions, attention and recurrent layers have one; all other operators count as none, as they do in
torch.utils.flop_counter. Formulas: docs/measures.md#efficiency. Guarantees: pure; what its shapes do not tell is None.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any, Final

import msgspec

from fleetprof_analyzer.reading.columns.dimensions import read_dimensions
from fleetprof_analyzer.trace.trace import Inputs

LARGEST: Final = 1 << 62
"""Counts from it on are no counts of a real operator: sums of them must fit 64 bits."""
# Those of msgspec are ValueErrors.
REFUSALS: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_TRUE: Final = "True"

Sizes = Sequence[int]


@dataclass(frozen=True, slots=True)
class Call:
    """The inputs of one operator: dimensions of its tensors (of a list of tensors a list), and values where kept."""

    dimensions: Sequence[Any]
    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Formula:
    """The operations of a call; `operand` is the argument whose data type is that of the arithmetic.

    Raises one of `REFUSALS` where the call does not tell them.
    """

    count: Callable[[Call], int]
    operand: int = 0


def count_flops(name: str, inputs: Inputs) -> int | None:
    """Counts those of a call of the operator `name`, None where its shapes do not tell. Raises KeyError: no formula."""
    formula = find_formula(name)
    try:
        values = msgspec.json.decode(inputs.values) if inputs.values else []
        flops = formula.count(Call(read_dimensions(inputs.dimensions) or [], values))
    except REFUSALS:
        return None
    return flops if 0 <= flops < LARGEST else None


def find_formula(name: str) -> Formula:
    """That of an operator; one that changes its first argument (`addmm_`) has that of the other. Raises KeyError."""
    return FORMULAS[name.removesuffix("_")]


def has_formula(name: str) -> bool:
    """Tells whether this operator's operations are counted."""
    return name.removesuffix("_") in FORMULAS


def _product(left: int, right: int) -> Formula:
    """A product of matrices, one or many: each element of the left one meets each column of the right one."""

    def count(call: Call) -> int:
        a, b = _sizes(call, left), _sizes(call, right)
        _agree(a[-1], b[-2] if len(b) > 1 else b[0])
        return 2 * prod(a) * (b[-1] if len(b) > 1 else 1)

    return Formula(count, left)


def _count_linear(call: Call) -> int:
    values, weight = _sizes(call, 0), _sizes(call, 1)
    _agree(values[-1], weight[-1])
    return 2 * prod(values) * prod(weight[:-1])


def _count_grouped(call: Call) -> int:
    a, b = _sizes(call, 0), _sizes(call, 1)
    # Groups share the rows, the columns or what is summed over: each element of `a` meets one group's.
    return 2 * (a[-1] * a[-2] if len(b) == 2 else prod(a)) * b[-1]


def _count_convolution(call: Call) -> int:
    values, weight = _sizes(call, 0), _sizes(call, 1)
    places = values[2:] if call.values[6] == _TRUE else convolve(call, values[2:], weight[2:])
    return _multiply((2, values[0], *places, *weight))


def convolve(call: Call, sizes: Sizes, kernel: Sizes) -> list[int]:
    """The sizes that a convolution makes. Raises one of `REFUSALS`."""
    stride, padding, dilation = (_spread(call.values[at], len(sizes)) for at in (3, 4, 5))
    return [
        (size + 2 * padding[at] - dilation[at] * (kernel[at] - 1) - 1) // stride[at] + 1
        for at, size in enumerate(sizes)
    ]


def _spread(value: str, count: int) -> list[int]:
    found = msgspec.json.decode(value.encode(), type=list[int])
    return found * count if len(found) == 1 else found


def _count_convolution_backward(call: Call) -> int:
    made, values, weight = (_sizes(call, at) for at in range(3))
    places = values[2:] if call.values[7] == _TRUE else made[2:]
    wanted = call.values[10].strip("[]").split(", ")[:2].count(_TRUE)  # of the gradients of input and weight
    return _multiply((wanted, 2, values[0], *places, *weight))


def _attention(query: int, of_keys: int, of_values: int, heads: int = 1) -> Formula:
    """Products of queries with keys (`of_keys` of them) and of scores with values; `heads` is their axis."""
    length = 3 - heads

    def count(call: Call) -> int:
        q, k, v = (_sizes(call, query + at) for at in range(3))
        if not len(q) == len(k) == len(v) == 4:
            raise ValueError("sequences of unequal length stand in one")
        _agree(q[3], k[3])
        _agree(k[length], v[length])
        return 2 * q[0] * q[heads] * q[length] * k[length] * (of_keys * q[3] + of_values * v[3])

    return Formula(count, query)


def _count_recurrent(call: Call) -> int:
    *_, weights = (one for one in call.dimensions if one and isinstance(one[0], list))
    return _multiply((2, *_sizes(call, 0)[:-1], _sum_up(weights)))


def _count_recurrent_backward(call: Call) -> int:
    listed = call.dimensions[1]
    weights = listed if isinstance(listed[0], list) else [listed, _sizes(call, 2)]
    return _multiply((4, *_sizes(call, 0)[:-1], _sum_up(weights)))


def _sum_up(weights: Sequence[Sizes]) -> int:
    """The elements of the matrices; biases are added once."""
    return sum(prod(one) for one in weights if len(one) == 2)


def _multiply(sizes: Iterable[int]) -> int:
    return prod(sizes)


def _sizes(call: Call, at: int) -> list[int]:
    sizes: list[int] = call.dimensions[at]
    if not sizes or not all(isinstance(size, int) for size in sizes):
        raise ValueError("no tensor, or several")
    return sizes


def _agree(one: int, other: int) -> None:
    if one != other:
        raise ValueError("other dimensions than the operator takes")


_FIRST: Final = _product(0, 1)
_SECOND: Final = _product(1, 2)
_KERNELS: Final = ("flash_attention", "efficient_attention", "cudnn_attention", "fused_attention_overrideable")
FORMULAS: Final[Mapping[str, Formula]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("aten::mm", "aten::bmm", "aten::mv", "aten::dot", "aten::_int_mm", "aten::_scaled_mm"), _FIRST
        ),
        **dict.fromkeys(("aten::addmm", "aten::baddbmm", "aten::addbmm", "aten::addmv"), _SECOND),
        "aten::_addmm_activation": _SECOND,
        "aten::linear": Formula(_count_linear),
        "aten::_grouped_mm": Formula(_count_grouped),
        "aten::_scaled_grouped_mm": Formula(_count_grouped),
        "aten::convolution": Formula(_count_convolution),
        "aten::convolution_backward": Formula(_count_convolution_backward),
        **{f"aten::_scaled_dot_product_{kernel}": _attention(0, 1, 1) for kernel in _KERNELS},
        **{f"aten::_scaled_dot_product_{kernel}_backward": _attention(1, 3, 2) for kernel in _KERNELS},
        "aten::_scaled_dot_product_flash_attention_for_cpu": _attention(0, 1, 1),
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _attention(1, 3, 2),
        "aten::_flash_attention_forward": _attention(0, 1, 1, heads=2),
        "aten::_flash_attention_backward": _attention(1, 3, 2, heads=2),
        "flash_attn::_flash_attn_forward": _attention(0, 1, 1, heads=2),
        "flash_attn::_flash_attn_backward": _attention(1, 3, 2, heads=2),
        **dict.fromkeys(("aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"), Formula(_count_recurrent)),
        **dict.fromkeys(
            ("aten::mkldnn_rnn_layer_backward", "aten::_cudnn_rnn_backward", "aten::miopen_rnn_backward"),
            Formula(_count_recurrent_backward),
        ),
    }
)
