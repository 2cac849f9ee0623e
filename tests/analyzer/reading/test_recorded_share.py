"""The share of operators that a trace holds, by PyTorch's numbers: each thread takes blocks of 512 of them."""

import gzip
import io
import json
from collections.abc import Iterable

import pytest
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from harness.traces.kept_traces import find

ANNOTATION = "user_annotation"


def block(number: int, first: int, last: int, every: int = 1) -> range:
    """Numbers of the block's places `first` up to `last`."""
    return range(512 * number + first + 1, 512 * number + last + 1, every)


def share(*threads: tuple[str, Iterable[int]]) -> int | None:
    events = [
        {"ph": "X", "cat": category, "name": "aten::mm", "pid": 1, "tid": thread, "ts": at, "dur": 1,
         "args": {"External id": number}}
        for thread, (category, numbers) in enumerate(threads)
        for at, number in enumerate(numbers)
    ]  # fmt: skip
    return read_trace(io.BytesIO(json.dumps({"traceEvents": events}).encode()), "t", Problems()).recorded_permille


@pytest.mark.parametrize(
    ("threads", "permille"),
    [
        # The end of a thread's last block is never used: 110 operators on three threads are all that ran.
        ([("cpu_op", block(0, 0, 90)), ("cpu_op", block(1, 0, 10)), ("cpu_op", block(2, 0, 10))], 1000),
        # Autograd's thread, and a thread of a communication library, which has annotations only.
        ([("cpu_op", [*block(0, 0, 512), *block(3, 0, 200)]), ("cpu_op", block(1, 0, 300)),
          (ANNOTATION, block(2, 0, 6))], 1000),
        # A recording after another one begins with a later block.
        ([("cpu_op", block(70, 0, 120)), ("cpu_op", block(71, 0, 20))], 1000),
        # PyTorch before 1.12: threads take turns, number by number.
        ([("cpu_op", range(1, 1200, 2)), ("cpu_op", range(2, 1200, 2))], 1000),
        # One operator of four, on both threads.
        ([("cpu_op", block(0, 0, 509, 4)), ("cpu_op", block(1, 0, 509, 4))], 251),
        # One block of five.
        ([("cpu_op", [*block(0, 0, 512), *block(5, 0, 512), *block(10, 0, 512)])], 272),
        ([("cpu_op", block(0, 0, 50)), ("cpu_op", block(1, 0, 49))], None),
    ],
)  # fmt: skip
def test_what_lies_within_blocks_or_between_them_is_missing(
    threads: list[tuple[str, Iterable[int]]], permille: int | None
) -> None:
    assert share(*threads) == permille


@pytest.mark.parametrize(
    ("file", "sampled"),
    [("four_ranks/rank0.json.gz", False), ("two_ranks_longer/rank1.json.gz", False),
     ("sampled_2of128/sampled_rank-0.json.gz", True), ("nccl_a100/nccl_data.json.gz", False),
     ("df_index_v100/df_index_resolver.json.gz", False), ("resnet50_v100_old/worker0.pt.trace.json.gz", False),
     ("ddp4_gloo_cpu/ddp4_full_rank0.json.gz", False),
     ("dlrm_v100_8ranks/worker0_step_12.1694128201545.pt.trace.json.gz", False)],
)  # fmt: skip
def test_a_real_trace_holds_all_or_a_sample(file: str, sampled: bool) -> None:
    whole = gzip.decompress(find(file).read_bytes())
    found = read_trace(io.BytesIO(whole), file, Problems()).recorded_permille
    assert found is not None
    assert found <= 20 if sampled else found >= 999
