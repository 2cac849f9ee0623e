"""Traces that were damaged on purpose: bytes, structure, values. The same seed gives the same trace."""

import gzip
import json
import random
from collections.abc import Callable
from typing import Any

NUMBERS = [
    0,
    -1,
    1,
    2**31,
    2**53,
    2**63 - 1,
    2**63,
    -(2**63),
    10**18,
    10**30,
    1e300,
    -1e-300,
    0.5,
    "7",
    "x",
    None,
    [],
    {},
]
TEXTS = ["", "\0", "\u202e", "a" * 5000, "ncclDevKernel_AllReduce", "Optimizer.step#x", "ProfilerStep#1",
         "ProfilerStep#99999999999999999", "autograd::engine::evaluate_function: MulBackward0", "gloo:all_reduce",
         "enumerate(DataLoader)#x", "Memcpy HtoD (Pageable -> Device)", "cudaStreamSynchronize",
         "cudaMalloc"]  # fmt: skip
DIMENSIONS = [[[2, 3], []], [[[4], [5, 6]], [7]], [[-1]], [[2**61, 2]], [[2**61, 3]], [[10**30]], [[1.5]], [[True]],
              [[[[1]]]], [["4"]], [[0, 5]], [3], [[4]] * 3000]  # fmt: skip
CATEGORIES = ["kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "user_annotation", "cuda_runtime", "cuda_driver",
              "python_function", "cuda_sync", "Kernel", "", None, 7]  # fmt: skip
ARGUMENTS = ["correlation", "device", "stream", "bytes", "External id", "Sequence number", "grid", "block",
             "Collective name", "Process Group Name", "Process Group Ranks", "Group size", "In msg nelems", "dtype",
             "Seq", "Input Dims", "Src Rank"]  # fmt: skip


def mutate(seed: int, document: dict[str, Any]) -> bytes:
    """A damaged copy of a trace's document, plain or gzip."""
    make = random.Random(seed)
    events = [dict(event) for event in make.sample(document["traceEvents"], min(120, len(document["traceEvents"])))]
    head = {key: value for key, value in document.items() if key != "traceEvents"}
    for _ in range(make.randint(1, 25)):
        make.choice(_CHANGES)(make, events, head)
    text = json.dumps({**head, "traceEvents": events}, default=str, allow_nan=True).encode()
    for _ in range(make.choice([0, 0, 0, 1, 5])):
        text = _damage(make, text)
    return _damage(make, gzip.compress(text, 1)) if make.random() < 0.2 else text


def _value(make: random.Random, events: list[dict[str, Any]], head: dict[str, Any]) -> None:
    if events:
        make.choice(events)[make.choice(["ts", "dur", "pid", "tid", "name", "cat", "ph", "args"])] = make.choice(
            [*NUMBERS, *TEXTS]
        )


def _time(make: random.Random, events: list[dict[str, Any]], head: dict[str, Any]) -> None:
    if events:
        event = make.choice(events)
        event["ts"], event["dur"] = make.choice([0, 1, 5, 10.5, 1e6]), make.choice([0, 1, 3, 10**6, 0.001])


def _kind(make: random.Random, events: list[dict[str, Any]], head: dict[str, Any]) -> None:
    if events:
        event = make.choice(events)
        event["cat"], event["name"] = make.choice(CATEGORIES), make.choice(TEXTS)


def _argument(make: random.Random, events: list[dict[str, Any]], head: dict[str, Any]) -> None:
    if events:
        event = make.choice(events)
        args = event.get("args")
        changed = {make.choice(ARGUMENTS): make.choice([*NUMBERS, *TEXTS, *DIMENSIONS])}
        event["args"] = (args if isinstance(args, dict) else {}) | changed


def _place(make: random.Random, events: list[dict[str, Any]], head: dict[str, Any]) -> None:
    for event in events:
        event["tid"] = make.randint(0, 5)


def _copy(make: random.Random, events: list[dict[str, Any]], head: dict[str, Any]) -> None:
    if events:
        events.extend(dict(make.choice(events)) for _ in range(make.randint(1, 20)))


def _drop(make: random.Random, events: list[dict[str, Any]], head: dict[str, Any]) -> None:
    del events[: make.randint(0, len(events))]


def _head(make: random.Random, events: list[dict[str, Any]], head: dict[str, Any]) -> None:
    key = make.choice(["distributedInfo", "baseTimeNanoseconds", "deviceProperties", "trace_id"])
    head[key] = make.choice([*NUMBERS, {"rank": make.choice(NUMBERS), "world_size": make.choice(NUMBERS)}])


_Change = Callable[[random.Random, list[dict[str, Any]], dict[str, Any]], None]
_CHANGES: list[_Change] = [_value, _time, _kind, _argument, _place, _copy, _drop, _head, _kind, _argument]


def _damage(make: random.Random, data: bytes) -> bytes:
    at = make.randrange(len(data) + 1)
    match make.randrange(4):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + bytes(make.randrange(256) for _ in range(make.randint(1, 40))) + data[at:]
        case 2:
            return data[:at] + make.choice([b"[" * 3000, b'"', b"}", b"NaN", b"\\", b"\xff\xfe"]) + data[at:]
        case _:
            return data[:at] + data[at + make.randint(1, 200) :]
