"""The limits of an agent's words: types and ranges, and that no bytes get further."""

import json
from typing import Any

import pytest
from fleetprof_agent import wire
from fleetprof_sidecar.processes.agent_messages import (
    AgentHello,
    AgentProfile,
    AgentReport,
    AgentSteps,
    parse_agent_message,
)
from hypothesis import given
from hypothesis import strategies as st

HELLO: dict[str, Any] = {
    "pid": 17,
    "ppid": 10,
    "uid": 1000,
    "rank": 3,
    "local_rank": 1,
    "world_size": 8,
    "restart_count": 2,
    "role": "trainer",
    "torch": "2.15.0+cu130",
    "python": "3.11.9",
    "device_kind": "cuda",
    "device_name": "NVIDIA H100 80GB HBM3",
    "device_uuid": "GPU-1",
    "host": "node-1",
    "started_unix_ns": 1_790_000_000_000_000_000,
    "kineto": "dynoconfigclient4f5cf5f4-0f2b-4a36-b4a0-b5bd9d2cbb6c",
}
STEPS: dict[str, Any] = {
    "pid": 17,
    "step": 5,
    "at_unix_ns": 1,
    "iteration_ns": 2,
    "per_iteration": 1,
    "own_profile": "warmup",
}
COLUMNS = {"at_unix_ns": [1, 2], "utilization_permille": [None, 5], "power_milliwatts": [1, 2]}
DEVICE = {"pid": 17, "capture": "c", **COLUMNS}
PLACES = {"capture": "c", "first": 2, "file": ["/a/train.py"], "function": ["main"], "line": [7], "generator": [True]}
STACKS = {"capture": "c", "first": 0, "stacks": [[1, 0], []]}
COLLECTIVES = {
    "query": "q",
    "group": ["0 default_pg"],
    "sequence": [7],
    "name": ["all_reduce"],
    "is_p2p": [False],
    "sizes": ["[[4]]"],
    "is_over": [False],
    "created_unix_ns": [9],
    "ranks": ["0-3"],
}
THREADS: dict[str, Any] = {
    "query": "q",
    "at_unix_ns": 5,
    "name": ["main"],
    "task": [17],
    "is_main": [True],
    "stack": [0],
    "call": ["f"],
}
THREAD = {
    "capture": "c",
    "at_unix_ns": [1, 2],
    "stack": [0, None],
    "ran_ns": [1, None],
    "waited_ns": [1, 1],
    "process_ran_ns": [1, 1],
    "process_waited_ns": [None, None],
    "involuntary_switches": [0, 4],
    "usable_cores": 2,
    "cpu_limit_millicores": None,
    "torch_threads": 1,
}
MODULES = {
    "capture": "c",
    "first": 40,
    "name": ["Net", "Net.up"],
    "class_name": ["Net", "Linear"],
    "file": ["/a/train.py", ""],
    "line": [7, 0],
    "call_file": ["/a/train.py", "/a/train.py"],
    "call_line": [70, 9],
    "calls": [1, 2],
    **{name: [0, None] for name in ("parameter_bytes", "gradient_bytes", "optimizer_bytes", "saved_bytes")},
    "output_bytes": [None, 64],
    "rows": [32, None],
    "indices": [None, None],
}


def test_a_hello_is_taken_whole() -> None:
    assert parse_agent_message(wire.encode("hello", **HELLO)) == AgentHello(**HELLO)


def test_what_an_agent_does_not_know_is_none_or_empty() -> None:
    hello = parse_agent_message(wire.encode("hello", pid=17, rank=None))
    assert isinstance(hello, AgentHello)
    assert (hello.rank, hello.world_size, hello.torch, hello.kineto, hello.restart_count) == (None, None, "", "", 0)


def test_steps_are_taken_whole() -> None:
    assert parse_agent_message(wire.encode("steps", **STEPS)) == AgentSteps(**STEPS)


def test_what_the_jobs_own_profiler_is_at_is_one_of_three_words() -> None:
    assert parse_agent_message(wire.encode("profile", pid=17, own_profile="active")) == AgentProfile(17, "active")
    assert parse_agent_message(wire.encode("profile", pid=17)) == AgentProfile(17, "")
    with pytest.raises(ValueError, match="own_profile"):
        parse_agent_message(wire.encode("profile", pid=17, own_profile="idle"))


def test_device_columns_are_taken_and_unknown_ones_dropped() -> None:
    message = parse_agent_message(wire.encode("device", **DEVICE, invented=[1, 2]))
    assert message == AgentReport(17, "device", {"capture": "c", **COLUMNS})


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("times", {"capture": "c", "step": [1, 2], "end_unix_ns": [3, 4]}, None),
        ("armed", {"capture": "c"}, None),
        ("cancelled", {"capture": "c"}, None),
        ("bye", {"capture": "", "reason": "exit"}, None),
        ("bye", {}, {"capture": "", "reason": ""}),
        ("short", {"capture": "c", "headroom_bytes": 1, "needed_bytes": 2, "recording": True}, None),
        (
            "short",
            {"capture": "c", "headroom_bytes": 1, "needed_bytes": 2, "recording": 7},
            {"capture": "c", "headroom_bytes": 1, "needed_bytes": 2, "recording": False},
        ),
        ("memory", {"capture": "c", "before_bytes": 1, "peak_bytes": 3, "after_bytes": 2}, None),
        ("places", PLACES, None),
        ("places", {**PLACES, "function": ["a\u202eb"]}, {**PLACES, "function": ["a?b"]}),
        ("places", {k: v for k, v in PLACES.items() if k != "generator"}, {**PLACES, "generator": [False]}),
        ("collections", {"capture": "c", "start_unix_ns": [7], "duration_ns": [1]}, None),
        ("held", {"capture": "c", "at_unix_ns": [7], "own_bytes": [4096]}, None),
        ("stacks", STACKS, None),
        ("stacks", {"query": "q", "first": 0, "stacks": [[1]]}, None),
        ("collectives", COLLECTIVES, None),
        ("threads", {**THREADS, "step": 3, "step_unix_ns": 4}, None),
        ("threads", THREADS, {**THREADS, "step": 0, "step_unix_ns": 0}),
        # Of an agent that does not tell calls.
        (
            "threads",
            {k: v for k, v in THREADS.items() if k != "call"},
            {**THREADS, "step": 0, "step_unix_ns": 0, "call": [""]},
        ),
        ("modules", {**MODULES, "invented": [1, 2]}, MODULES),
        ("thread", {**THREAD, "invented": [1, 2]}, THREAD),
        ("armed", {"capture": "c", "extra": 1}, {"capture": "c"}),
    ],
)
def test_reports_keep_their_fields(kind: str, fields: dict[str, Any], expected: Any) -> None:
    assert parse_agent_message(wire.encode(kind, pid=1, **fields)) == AgentReport(1, kind, expected or fields)


def test_text_is_made_printable() -> None:
    hello = parse_agent_message(wire.encode("hello", pid=1, host="a\x1b[31mb\u202ec"))
    assert isinstance(hello, AgentHello)
    assert hello.host == "a?[31mb?c"


@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        ("hello", {**HELLO, "pid": 0}, "pid"),
        ("hello", {**HELLO, "pid": True}, "pid"),
        ("hello", {**HELLO, "pid": "17"}, "pid"),
        ("hello", {**HELLO, "rank": -1}, "rank"),
        ("hello", {**HELLO, "rank": 2**31}, "rank"),
        ("hello", {**HELLO, "rank": 1.0}, "rank"),
        ("hello", {**HELLO, "host": "x" * 257}, "host"),
        ("hello", {**HELLO, "torch": 2}, "torch"),
        ("hello", {**HELLO, "kineto": "../dynolog"}, "kineto"),
        ("hello", {**HELLO, "kineto": "dynoconfigclient"}, "kineto"),
        ("steps", {**STEPS, "step": 2**63}, "step"),
        ("steps", {**STEPS, "per_iteration": 0}, "per_iteration"),
        ("steps", {"pid": 1}, "step"),
        ("steps", {**STEPS, "headroom_bytes": -1}, "headroom_bytes"),
        ("short", {"pid": 1, "capture": "c", "headroom_bytes": 1}, "needed_bytes"),
        ("memory", {"pid": 1, "capture": "c", "before_bytes": 1, "peak_bytes": 2**63, "after_bytes": 1}, "peak_bytes"),
        ("times", {"pid": 1, "capture": "c", "step": [1], "end_unix_ns": []}, "times"),
        ("times", {"pid": 1, "capture": "c", "step": [None], "end_unix_ns": [1]}, "step"),
        ("times", {"pid": 1, "capture": "C!", "step": [], "end_unix_ns": []}, "capture"),
        ("device", {**DEVICE, "power_milliwatts": [1]}, "device"),
        ("device", {**DEVICE, "power_milliwatts": [1, "2"]}, "power_milliwatts"),
        ("device", {**DEVICE, "power_milliwatts": 5}, "power_milliwatts"),
        ("device", {"pid": 1, "capture": "c"}, "at_unix_ns"),
        ("armed", {"pid": 1, "capture": ["c"]}, "capture"),
        ("places", {"pid": 1, **PLACES, "file": ["x" * 257]}, "file"),
        ("places", {"pid": 1, **PLACES, "file": "train.py"}, "file"),
        ("places", {"pid": 1, **PLACES, "file": [], "function": []}, "places"),
        ("places", {"pid": 1, **PLACES, "line": [2**31]}, "line"),
        ("places", {"pid": 1, **PLACES, "first": 1024}, "first"),
        ("places", {"pid": 1, **PLACES, "generator": [1]}, "generator"),
        ("places", {"pid": 1, **PLACES, "generator": []}, "places"),
        ("collections", {"pid": 1, "capture": "c", "start_unix_ns": [7], "duration_ns": []}, "collections"),
        ("held", {"pid": 1, "capture": "c", "at_unix_ns": [7], "own_bytes": []}, "held"),
        ("held", {"pid": 1, "capture": "c", "at_unix_ns": [7], "own_bytes": [-1]}, "own_bytes"),
        ("collections", {"pid": 1, "capture": "c", "start_unix_ns": [7], "duration_ns": [-1]}, "duration_ns"),
        ("stacks", {"pid": 1, **STACKS, "stacks": [[0] * 65]}, "stacks"),
        ("stacks", {"pid": 1, **STACKS, "stacks": [[-1]]}, "stacks"),
        ("stacks", {"pid": 1, **STACKS, "stacks": [5]}, "stacks"),
        ("stacks", {"pid": 1, **STACKS, "stacks": [[]] * 1025}, "stacks"),
        ("modules", {"pid": 1, **MODULES, "calls": [1]}, "modules"),
        ("modules", {"pid": 1, **MODULES, "class_name": [1, 2]}, "class_name"),
        ("modules", {"pid": 1, **MODULES, "line": [7, -1]}, "line"),
        ("modules", {"pid": 1, **MODULES, "output_bytes": [None, -1]}, "output_bytes"),
        ("modules", {"pid": 1, **MODULES, "first": 4096}, "first"),
        ("thread", {"pid": 1, **THREAD, "stack": [0]}, "thread"),
        ("thread", {"pid": 1, **THREAD, "waited_ns": [-1, 0]}, "thread"),
        ("thread", {"pid": 1, **THREAD, "ran_ns": None}, "ran_ns"),
        ("thread", {"pid": 1, **THREAD, "usable_cores": -1}, "usable_cores"),
    ],
)
def test_a_wrong_field_is_named(kind: str, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}"):
        parse_agent_message(wire.encode(kind, **fields))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"v":1}',
        b'{"v":1,"t":"arm","pid":1}',
        b'{"v":2,"t":"hello"}',
        b"[" * 30000,
        b"\xff",
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_agent_message(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.sampled_from(sorted({*HELLO, *STEPS, *DEVICE, "end_unix_ns", "reason", "pid"}))


@given(st.sampled_from(sorted(wire.FROM_AGENT | wire.TO_AGENT)), st.dictionaries(FIELDS, JSON), st.binary(max_size=3))
def test_no_message_raises_anything_but_value_error(kind: str, fields: dict[str, Any], junk: bytes) -> None:
    data = json.dumps({"v": 1, "t": kind, "pid": 1, **fields}).encode() + junk
    try:
        message = parse_agent_message(data)
    except ValueError:
        return
    assert isinstance(message, AgentHello | AgentSteps | AgentProfile | AgentReport)
    assert 0 < message.pid < 2**31
