"""Bytes by shapes beside those of the tensors themselves: python bench/modules/traffic.py [--json]

Each program runs forward and backward, once under a dispatch mode that adds up the tensors that each operator takes and
returns, and once recorded by Kineto with shapes; the analyzer counts the recording. Both by operator.
"""

import argparse
import json
from collections import Counter
from typing import Any, Final

import numpy as np
import torch
from fleetprof_analyzer.rank.efficiency.traffic import count_traffic
from flops import Program, record
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

_ONLY_WRITES: Final = ("aten::copy_", "aten::fill_", "aten::zero_")


class _TensorBytes(TorchDispatchMode):
    """The bytes of the tensors of each operator."""

    def __init__(self) -> None:
        super().__init__()
        self.moved: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        name = f"aten::{function.overloadpacket.__name__}"
        listed = [*args] if name in _ONLY_WRITES else [*args, *(made if isinstance(made, tuple) else [made])]
        self.moved[name] += sum(one.nbytes for one in listed if isinstance(one, torch.Tensor))
        return made


def _given(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, requires_grad=True)


def _activate() -> torch.Tensor:
    return functional.silu(functional.gelu(_given(64, 256))).tanh().sigmoid().relu()


PROGRAMS: Final[dict[str, Program]] = {
    "product": lambda: _given(30, 40) @ _given(40, 50),
    "batch of products": lambda: _given(2, 30, 40) @ _given(2, 40, 50),
    "linear": lambda: functional.linear(_given(20, 30, 40), _given(50, 40), _given(50)),
    "linear in bfloat16": lambda: functional.linear(_given(20, 40).bfloat16(), _given(50, 40).bfloat16()),
    "convolution": lambda: nn.Conv2d(8, 16, 3, padding=1, stride=2)(_given(4, 8, 33, 33)),
    "attention": lambda: functional.scaled_dot_product_attention(*(_given(2, 4, 64, 32) for _ in range(3))),
    "norm": lambda: nn.LayerNorm(256)(_given(64, 256)),
    "norm of a batch": lambda: nn.BatchNorm2d(8)(_given(4, 8, 32, 32)),
    "activations": _activate,
    "spread": lambda: _given(64, 256) * _given(256) + _given(64, 1),
    "softmax": lambda: functional.softmax(_given(64, 256), -1),
    "embedding": lambda: functional.embedding(torch.randint(0, 100, (64,)), _given(100, 256)),
}


def measure(program: Program) -> dict[str, tuple[int, int]]:
    """By shapes and by tensors, of each operator that the dispatch mode sees as well."""
    with _TensorBytes() as tensors:
        program().sum().backward()
    trace = record(program)
    found = count_traffic(trace.rows, trace.names, trace.inputs)
    by_shapes: Counter[str] = Counter()
    names = trace.rows.name[found.at].tolist()
    for name, moved_bytes in zip(names, np.maximum(found.moved_bytes, 0).tolist(), strict=True):
        by_shapes[trace.names[name]] += moved_bytes
    return {name: (moved, tensors.moved[name]) for name, moved in by_shapes.items() if tensors.moved[name]}


def main() -> None:
    """Runs all programs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(7)
    torch.set_num_threads(1)
    found = {name: measure(program) for name, program in PROGRAMS.items()}
    if arguments.json:
        print(json.dumps(found))
        return
    print(f"{'bytes of operators':60} {'by shapes':>10} {'tensors':>10}")
    for program, operators in found.items():
        for name, (by_shapes, by_tensors) in operators.items():
            print(f"{program:20} {name:39} {by_shapes:>10} {by_tensors:>10}")


if __name__ == "__main__":
    main()
