"""The config's text: which keys, which values, and that nothing of a caller's gets in unchecked."""

import re
from typing import Any, cast

import pytest
from fleetprof_sidecar.kineto.config import build_config, latest_delivery_unix_ns
from fleetprof_sidecar.profiler import StepStart, TimeStart, TraceName, TraceOrder
from fleetprof_sidecar.sockets.kineto_profiler import KinetoProfiler
from hypothesis import given
from hypothesis import strategies as st

KEYS = {
    "ACTIVITIES_LOG_FILE",
    "REQUEST_TRACE_ID",
    "PROFILE_START_ITERATION",
    "ACTIVITIES_ITERATIONS",
    "ACTIVITIES_WARMUP_ITERATIONS",
    "PROFILE_START_TIME",
    "ACTIVITIES_DURATION_MSECS",
    "ACTIVITIES_WARMUP_PERIOD_SECS",
    "PROFILE_REPORT_INPUT_SHAPES",
    "PROFILE_WITH_STACK",
    "PROFILE_WITH_MODULES",
    "PROFILE_WITH_FLOPS",
    "PROFILE_PROFILE_MEMORY",
}


def order(**changes: Any) -> TraceOrder:
    fields: dict[str, Any] = {
        "output": "/run/fleetprof/traces/c-r0.json",
        "trace_id": "c-r0",
        "start": StepStart(first_step=100, steps=5),
        "device_kind": "cpu",
    }
    return TraceOrder(**fields | changes)


def lines(wanted: TraceOrder) -> dict[str, str]:
    return dict(line.split("=") for line in build_config(wanted).splitlines())


def test_a_start_by_step_sends_two_less_than_the_first_whole_step() -> None:
    assert build_config(order(start=StepStart(first_step=100, steps=10, warmup_steps=2))) == (
        "ACTIVITIES_LOG_FILE=/run/fleetprof/traces/c-r0.json\n"
        "REQUEST_TRACE_ID=c-r0\n"
        "PROFILE_START_ITERATION=98\n"
        "ACTIVITIES_ITERATIONS=10\n"
        "ACTIVITIES_WARMUP_ITERATIONS=2\n"
    )


@pytest.mark.parametrize(("device_kind", "warmup"), [("cpu", "0"), ("cuda", "2"), ("rocm", "2"), ("", "2")])
def test_a_start_by_time_leaves_a_device_time_to_warm_up(device_kind: str, warmup: str) -> None:
    start = TimeStart(start_unix_ms=1_790_000_000_123, duration_ms=2000)
    assert lines(order(start=start, device_kind=device_kind)) == {
        "ACTIVITIES_LOG_FILE": "/run/fleetprof/traces/c-r0.json",
        "REQUEST_TRACE_ID": "c-r0",
        "PROFILE_START_TIME": "1790000000123",
        "ACTIVITIES_DURATION_MSECS": "2000",
        "ACTIVITIES_WARMUP_PERIOD_SECS": warmup,
    }
    assert latest_delivery_unix_ns(start, device_kind) == (1_790_000_000_123 - 1000 * int(warmup) - 1500) * 10**6


@pytest.mark.parametrize(
    ("collect", "keys"),
    [
        ("Shapes", {"PROFILE_REPORT_INPUT_SHAPES"}),
        ("Stacks", {"PROFILE_WITH_STACK"}),
        ("ModuleTree", set()),
        ("DeviceMetrics", set()),
    ],
)
def test_what_to_collect_becomes_its_key(collect: str, keys: set[str]) -> None:
    assert lines(order(collect=[collect])).keys() - lines(order()).keys() == keys


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"collect": ["PROFILE_MEMORY"]}, "collect: 'PROFILE_MEMORY' is not one of Shapes"),
        ({"output": "traces/c.json"}, "output"),
        ({"output": "/t/../c.json"}, "output"),
        ({"output": "/t/o..p.json"}, "output"),
        ({"output": "/t/c.txt"}, "output"),
        ({"output": "/t.json/c.json"}, "output"),
        ({"output": "/t/c.pt.trace.json"}, "output"),
        ({"output": "/t/c d.json"}, "output"),
        ({"output": "/t/c.json\n"}, "output"),
        ({"output": "/t/c=d.json"}, "output"),
        ({"trace_id": "a\nPROFILE_MEMORY=true"}, "trace_id"),
        ({"trace_id": ""}, "trace_id"),
        ({"trace_id": 'quote"'}, "trace_id"),
        ({"start": StepStart(first_step=1, steps=5)}, "first_step"),
        ({"start": StepStart(first_step=10, steps=0)}, "steps"),
        ({"start": StepStart(first_step=10, steps=5, warmup_steps=-1)}, "warmup_steps"),
        ({"start": StepStart(first_step=cast("int", "9\nX=1"), steps=5)}, "first_step"),
        ({"start": StepStart(first_step=True, steps=5)}, "first_step"),
        ({"start": TimeStart(start_unix_ms=0, duration_ms=5)}, "start_unix_ms"),
        ({"start": TimeStart(start_unix_ms=1, duration_ms=0)}, "duration_ms"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_name(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}"):
        build_config(order(**changes))


@given(
    output=st.text(max_size=60) | st.from_regex(r"(/[a-z.]{1,8}){1,4}\.json", fullmatch=True),
    trace_id=st.text(max_size=20) | st.from_regex(r"[a-z0-9.-]{1,20}", fullmatch=True),
    start=st.builds(StepStart, first_step=st.integers(), steps=st.integers(), warmup_steps=st.integers())
    | st.builds(TimeStart, start_unix_ms=st.integers(), duration_ms=st.integers()),
    collect=st.sets(st.sampled_from(["Shapes", "Stacks", "ModuleTree", "DeviceMetrics", "X"])),
    device_kind=st.sampled_from(["", "cpu", "cuda"]),
)
def test_every_config_is_whole_lines_of_allowed_keys(**fields: Any) -> None:
    try:
        text = build_config(TraceOrder(**fields))
    except ValueError:
        return
    assert text.isascii()
    assert text.endswith("\n")
    assert ".." not in text
    for line in text.splitlines():
        assert re.fullmatch(r"[A-Z_]+=[A-Za-z0-9/._-]+", line)
        assert line.partition("=")[0] in KEYS


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("c-1-r0_17.json", TraceName("c-1-r0", 17, True)),
        ("c-1-r0_17.json.tmp", TraceName("c-1-r0", 17, False)),
        ("c-1-r0.json", None),
        ("C-r0_17.json", None),
        ("c-1-r0_17.json.gz", None),
    ],
)
def test_kineto_puts_the_pid_before_the_ending(name: str, found: TraceName | None) -> None:
    assert KinetoProfiler().read_name(name) == found
