"""A sidecar asks no more of its trainers than the limits of a request allow, whatever a hub sends."""

from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.choices import Collect
from fleetprof_api.hub import hub_pb2
from fleetprof_api.kernel_class import MOST_KERNEL_CLASSES
from fleetprof_sidecar.capture.order_limits import MOST_CAPTURES, check_limits
from fleetprof_sidecar.capture.orders import build_order, read_terms, window_ns
from fleetprof_sidecar.sockets.kineto_profiler import KinetoProfiler
from harness.sidecar.captures_in_memory import NOW, CapturesBench, S, TableInMemory, view
from hypothesis import given
from hypothesis import strategies as st

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)


@pytest.mark.attack
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"window": hub_pb2.Window(iterations=101)}, "window.iterations 101: must be from 0 to 100"),
        ({"window": hub_pb2.Window(iterations=-1)}, "window.iterations -1"),
        ({"window": hub_pb2.Window(iterations=1, warmup_iterations=101)}, "window.warmup_iterations 101"),
        ({"window": hub_pb2.Window(duration_ns=60 * S + 1), "start_unix_ns": NOW + S}, "window.duration_ns"),
        ({"asked_iterations": 101}, "asked_iterations 101"),
        ({"first_step": -5}, "first_step -5"),
        ({"max_trace_bytes": 2**36 + 1}, "max_trace_bytes"),
        ({"max_trace_bytes": -1}, "max_trace_bytes"),
        ({"max_slowdown_percent": 1001}, "max_slowdown_percent"),
        ({"give_up_unix_ns": NOW + 100_000 * S}, "give_up_unix_ns"),
        ({"collect": ["PROFILE_MEMORY"]}, "collect 'PROFILE_MEMORY': must be one of Shapes"),
        ({"collect": ["Stacks"] * 7}, "collect 7"),
        ({"activities": ["Host"]}, "activities 'Host': must be one of Device"),
        ({"activities": ["Device", "Device"]}, "activities 2: must be from 0 to 1"),
        ({"iteration_range": "a" * 201}, "iteration_range's length 201"),
        ({"iteration_range": "a\n"}, "iteration_range: must be printable"),
        ({"kernel_classes": [hub_pb2.KernelClass()] * (MOST_KERNEL_CLASSES + 1)}, "kernel_classes 65"),
    ],
)
def test_what_is_over_a_limit_is_refused_by_its_name(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    bench = CapturesBench(tmp_path, TableInMemory())
    bench.arm(**change)
    refused = bench.last()
    assert (refused.state, refused.reason) == (hub_pb2.FAILED, "OverLimit")
    assert words in refused.message
    assert bench.table.orders == {}
    assert bench.table.agent_messages == []


@pytest.mark.attack
def test_no_more_captures_at_once_than_a_sidecar_allows(tmp_path: Path) -> None:
    table = TableInMemory()
    table.views = {str(number): view(str(number)) for number in range(MOST_CAPTURES + 2)}
    bench = CapturesBench(tmp_path, table)
    for number in range(MOST_CAPTURES + 2):
        bench.arm(f"cap{number}", str(number))
    assert len(table.orders) == MOST_CAPTURES
    assert bench.last(f"cap{MOST_CAPTURES}").message == "16 captures have not ended here: at most 16 at once"
    bench.arm("cap0", "0")  # repeated by a hub that was restarted: it is one of them
    assert bench.last("cap0").state == hub_pb2.ASKED


@given(
    st.builds(
        hub_pb2.Arm,
        capture_id=st.one_of(st.just("cap"), st.text(st.characters(codec="utf-8"), max_size=5)),
        window=st.builds(
            hub_pb2.Window,
            iterations=st.one_of(st.integers(0, 101), INT32),
            warmup_iterations=st.one_of(st.integers(0, 101), INT32),
            duration_ns=st.one_of(st.just(0), st.integers(0, 61 * S), INT64),
        ),
        collect=st.lists(st.one_of(st.sampled_from(Collect), st.text(st.characters(codec="utf-8"))), max_size=8),
        first_step=st.one_of(st.none(), st.integers(0, 1000), INT64),
        give_up_unix_ns=st.one_of(st.integers(NOW, NOW + 1000 * S), INT64),
        deliver_until_unix_ns=INT64,
        max_trace_bytes=INT64,
        max_slowdown_percent=INT32,
        sample_interval_ns=INT64,
        asked_iterations=INT32,
    )
)
def test_no_order_makes_a_trainer_do_more_than_is_allowed(arm: hub_pb2.Arm) -> None:
    """The words to Kineto and the agent of any order that passes, by their own words."""
    if arm.WhichOneof("start") is None:
        arm.start_unix_ns = NOW + 20 * S
    try:
        check_limits(arm, NOW)
        terms = read_terms(arm, hub_pb2.Order(process_id="p", rank=1), view())
        config, _ = build_order(terms, Path("/run/fp/traces"), "cuda", KinetoProfiler())
    except ValueError:
        return
    config_lines = dict(line.split("=") for line in config.splitlines())
    assert int(config_lines.get("ACTIVITIES_ITERATIONS", 0)) <= 100
    assert int(config_lines.get("ACTIVITIES_WARMUP_ITERATIONS", 0)) <= 100
    assert int(config_lines.get("ACTIVITIES_DURATION_MSECS", 0)) <= 60_000
    assert window_ns(terms) <= 60 * S
    assert 10_000_000 <= terms.sample_interval_ns <= 10 * S
    assert 0 < terms.max_trace_bytes <= 2**36
    assert terms.give_up_unix_ns <= NOW + 90_000 * S
    assert {key for key in config_lines if key.startswith("PROFILE_")} <= {
        "PROFILE_START_ITERATION",
        "PROFILE_START_TIME",
        "PROFILE_REPORT_INPUT_SHAPES",
        "PROFILE_WITH_STACK",
        "PROFILE_WITH_MODULES",
        "PROFILE_PROFILE_MEMORY",
        "PROFILE_WITH_FLOPS",
    }
