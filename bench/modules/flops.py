"""Floating-point operations by shapes beside those of torch.utils.flop_counter: python bench/modules/flops.py [--json]

Each family of operators runs forward and backward, once under the counter and once recorded by Kineto with shapes; the
analyzer counts the recording. `knows`: whether the counter has a formula for all of it.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from fleetprof_analyzer.rank.efficiency.operator_flops import count_operators
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

Program = Callable[[], torch.Tensor]


def _given(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, requires_grad=True)


def _attend(*sizes: tuple[int, ...], **options: Any) -> Program:
    return lambda: functional.scaled_dot_product_attention(*(_given(*one) for one in sizes), **options)


def _layer(layer: nn.Module, *sizes: int) -> Program:
    def run() -> torch.Tensor:
        made = layer(_given(*sizes))
        return made[0] if isinstance(made, tuple) else made

    return run


def _autocast() -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return functional.linear(_given(4, 8), _given(6, 8))


def _attend_with_weights() -> torch.Tensor:
    made: torch.Tensor = nn.MultiheadAttention(8, 2)(_given(5, 2, 8), _given(7, 2, 8), _given(7, 2, 8))[0]
    return made


def _cell() -> torch.Tensor:
    made: torch.Tensor = nn.LSTMCell(4, 6)(_given(3, 4))[0]
    return made


PROGRAMS: Final[dict[str, Program]] = {
    "product": lambda: _given(3, 4) @ _given(4, 5),
    "product of three axes": lambda: _given(2, 3, 4) @ _given(4, 5),
    "batch of products": lambda: _given(2, 3, 4) @ _given(2, 4, 5),
    "sum and batch of products": lambda: torch.baddbmm(_given(2, 3, 5), _given(2, 3, 4), _given(2, 4, 5)),
    "einsum": lambda: torch.einsum("bij,bkj->bik", _given(2, 3, 4), _given(2, 5, 4)),
    "linear": lambda: functional.linear(_given(2, 3, 4), _given(5, 4), _given(5)),
    "linear without bias": lambda: functional.linear(_given(2, 3, 4), _given(5, 4)),
    "linear under autocast": _autocast,
    "product in bfloat16": lambda: _given(8, 6).bfloat16() @ _given(6, 4).bfloat16(),
    "convolution of one axis": _layer(nn.Conv1d(3, 4, 3, padding=1, stride=2), 2, 3, 11),
    "convolution": _layer(nn.Conv2d(3, 4, (3, 2), padding=(1, 0), stride=2, dilation=(1, 2)), 2, 3, 11, 9),
    "convolution of the same size": _layer(nn.Conv2d(3, 4, 3, padding="same"), 2, 3, 11, 9),
    "convolution of three axes": _layer(nn.Conv3d(3, 4, 2), 2, 3, 5, 5, 5),
    "convolution without a batch": _layer(nn.Conv2d(3, 4, 3), 3, 9, 9),
    "transposed convolution": _layer(nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), 2, 4, 5, 5),
    "attention": _attend((2, 4, 8, 16), (2, 4, 6, 16), (2, 4, 6, 16)),
    "causal attention": _attend((2, 4, 8, 16), (2, 4, 8, 16), (2, 4, 8, 16), is_causal=True),
    "attention in groups": _attend((2, 4, 8, 16), (2, 2, 6, 16), (2, 2, 6, 16), enable_gqa=True),
    "attention as products": _attend((2, 4, 8, 16), (2, 4, 6, 16), (2, 4, 6, 8)),
    "attention with weights": _attend_with_weights,
    "cells of an LSTM": _cell,
    "GRU": _layer(nn.GRU(8, 16, batch_first=True), 2, 5, 8),
    "LSTM with projections": _layer(nn.LSTM(8, 16, 2, bidirectional=True, proj_size=4), 5, 2, 8),
}
UNKNOWN_TO_THE_COUNTER: Final[dict[str, Program]] = {
    # Its formula of the weight's gradient does not divide by the groups.
    "convolution in groups": _layer(nn.Conv2d(4, 8, 3, groups=2), 2, 4, 9, 9),
    "LSTM": _layer(nn.LSTM(8, 16), 5, 2, 8),
    "matrix and vector": lambda: _given(3, 4) @ _given(4),
}


def record(program: Program) -> Trace:
    """One forward and backward, recorded with shapes."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True) as recorded:
        program().sum().backward()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        recorded.export_chrome_trace(str(path))
        with path.open("rb") as file:
            return read_trace(file, path.name, Problems())


def measure(program: Program) -> dict[str, Any]:
    """Operations by shapes, by the counter, and the data types."""
    with FlopCounterMode(display=False) as counter:
        program().sum().backward()
    trace = record(program)
    found = count_operators(trace.rows, trace.names, trace.inputs)
    return {
        "shapes": int(found.flops.sum()),
        "counter": counter.get_total_flops(),
        "unknown": int((found.flops < 0).sum()),
        "types": sorted({found.data_types[kind] for kind in found.data_type.tolist()}),
    }


def main() -> None:
    """Runs all programs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(7)
    torch.set_num_threads(1)
    found = {
        name: {**measure(program), "knows": name in PROGRAMS}
        for name, program in {**PROGRAMS, **UNKNOWN_TO_THE_COUNTER}.items()
    }
    if arguments.json:
        print(json.dumps(found))
        return
    print(f"{'operations, forward and backward':32} {'by shapes':>10} {'counter':>10}")
    for name, one in found.items():
        note = "" if one["knows"] else "  the counter does not know all of it"
        print(f"{name:32} {one['shapes']:>10} {one['counter']:>10}{note}")


if __name__ == "__main__":
    main()
