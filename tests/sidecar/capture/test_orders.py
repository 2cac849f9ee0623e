"""From the hub's order to what Kineto and the agent are asked."""

from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2
from fleetprof_sidecar.capture.orders import agent_command, build_order, read_terms, sample_interval_ns
from fleetprof_sidecar.processes.views import StepView
from fleetprof_sidecar.sockets.kineto_profiler import KinetoProfiler
from harness.sidecar.orders import ARM, ORDER, trainer_view

S = 10**9


ONE = hub_pb2.Window(iterations=1)
WITHOUT_STEP = {key: value for key, value in ARM.items() if key != "first_step"}


def test_an_order_by_step_counts_in_optimizer_steps() -> None:
    terms = read_terms(hub_pb2.Arm(**ARM), ORDER, trainer_view())
    config, until = build_order(terms, Path("/run/fp/traces"), "cuda", KinetoProfiler())
    assert until == 50 * S
    lines = dict(line.split("=") for line in config.splitlines())
    assert lines["PROFILE_START_ITERATION"] == "98"
    assert lines["ACTIVITIES_ITERATIONS"] == "10"
    assert lines["REQUEST_TRACE_ID"] == "cap-r1"
    assert lines["ACTIVITIES_LOG_FILE"] == "/run/fp/traces/cap-r1.json"
    assert agent_command(terms) == {
        "capture": "cap",
        "first_step": 100,
        "last_step": 109,
        "measured_step": None,
        "start_unix_ns": None,
        "end_unix_ns": None,
        "memory_needed_bytes": 0,
        "ranks": 1,
        "sample_interval_ns": 200_000_000,
        "until_unix_ns": 90 * S,
        "device_counters": False,
        "thread_samples": False,
    }


@pytest.mark.parametrize(
    ("changes", "steps", "measured_step", "last_step"),
    [
        ({"collect": ["ModuleTree"]}, 12, 109, 111),
        ({"collect": ["Shapes"]}, 10, None, 109),
        ({"collect": ["ModuleTree"], "canary": True}, 10, None, 109),  # it is to be what it was
    ],
)
def test_modules_are_marked_in_one_iteration_more(
    changes: dict[str, Any], steps: int, measured_step: int | None, last_step: int
) -> None:
    estimate = hub_pb2.RecordingEstimate(events_per_iteration=1000)
    terms = read_terms(hub_pb2.Arm(**{**ARM, **changes}, estimate=estimate), ORDER, trainer_view())
    config, _ = build_order(terms, Path("/run/fp/traces"), "cpu", KinetoProfiler())
    assert f"ACTIVITIES_ITERATIONS={steps}\n" in config
    command = agent_command(terms)
    assert (command["measured_step"], command["last_step"]) == (measured_step, last_step)
    assert terms.measured_step == 109
    one = read_terms(hub_pb2.Arm(**{**ARM, **changes, "window": ONE}, estimate=estimate), ORDER, trainer_view())
    assert terms.trace_needed_bytes * (steps // 2 - 4) == one.trace_needed_bytes * (steps // 2)


def test_without_the_agent_no_module_is_marked() -> None:
    terms = read_terms(hub_pb2.Arm(**{**ARM, "collect": ["ModuleTree"]}), ORDER, trainer_view(has_agent=False))
    assert (terms.recorded_iterations, agent_command(terms)["measured_step"]) == (5, None)


@pytest.mark.parametrize(
    ("wants_samples", "collect", "samples"),
    [(True, ["Shapes"], True), (False, [], False), (True, ["Stacks"], False)],
)
def test_the_training_thread_is_sampled_unless_the_trace_has_stacks(
    wants_samples: bool, collect: list[str], samples: bool
) -> None:
    """With stacks Kineto records every Python function of every thread: the sampler's too."""
    terms = read_terms(hub_pb2.Arm(**{**ARM, "collect": collect}, thread_samples=wants_samples), ORDER, trainer_view())
    assert agent_command(terms)["thread_samples"] is samples


def test_an_order_for_the_device_alone_leaves_out_the_host() -> None:
    terms = read_terms(hub_pb2.Arm(**ARM, activities=["Device"]), ORDER, trainer_view())
    config, _ = build_order(terms, Path("/run/fp/traces"), "cuda", KinetoProfiler())
    (line,) = (line for line in config.splitlines() if line.startswith("ACTIVITY_TYPES="))
    assert line == "ACTIVITY_TYPES=kernel,gpu_memcpy,gpu_memset,gpu_user_annotation,user_annotation"


def test_an_order_names_the_range_that_bounds_iterations() -> None:
    terms = read_terms(hub_pb2.Arm(**ARM, iteration_range="execute_model"), ORDER, trainer_view())
    assert terms.iteration_range == "execute_model"


def test_an_order_says_the_classes_of_kernels_and_wrong_ones_are_left_out() -> None:
    classes = [("my_reduce", "communication"), ("", "memory"), ("gemm", "copying"), ("a*b", "memory")]
    entries = [hub_pb2.KernelClass(pattern=pattern, work_class=work_class) for pattern, work_class in classes]
    terms = read_terms(hub_pb2.Arm(**ARM, kernel_classes=entries), ORDER, trainer_view())
    assert [(entry.pattern, entry.work_class) for entry in terms.kernel_classes] == [classes[0], classes[3]]


@pytest.mark.parametrize(
    ("window", "step", "duration_ms"),
    [
        (hub_pb2.Window(duration_ns=2 * S), None, 2000),
        (hub_pb2.Window(iterations=5), None, 3000),
        (hub_pb2.Window(iterations=5), StepView(1, 1, S, 1), 6000),
    ],
)
def test_an_order_by_time_says_how_long(window: hub_pb2.Window, step: StepView | None, duration_ms: int) -> None:
    arm = hub_pb2.Arm(**{**WITHOUT_STEP, "start_unix_ns": 40 * S, "window": window})
    terms = read_terms(arm, ORDER, trainer_view(has_agent=False, step=step))
    config, until = build_order(terms, Path("/run/fp/traces"), "cpu", KinetoProfiler())
    assert f"ACTIVITIES_DURATION_MSECS={duration_ms}\n" in config
    assert "PROFILE_START_TIME=40000\n" in config
    assert until < 40 * S


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capture_id": "../../etc"}, "capture id"),
        ({"window": hub_pb2.Window()}, "window: exactly one"),
        ({"window": hub_pb2.Window(iterations=1, duration_ns=1)}, "window: exactly one"),
        ({"window": hub_pb2.Window(duration_ns=1)}, "window.iterations"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_terms(hub_pb2.Arm(**{**ARM, **change}), ORDER, trainer_view())


def test_an_order_names_a_start_a_process_and_a_rank() -> None:
    with pytest.raises(ValueError, match="start: first_step or start_unix_ns"):
        read_terms(hub_pb2.Arm(**WITHOUT_STEP), ORDER, trainer_view())
    with pytest.raises(ValueError, match=r"orders\.rank"):
        read_terms(hub_pb2.Arm(**ARM), hub_pb2.Order(process_id="p", rank=-1), trainer_view())
    with pytest.raises(ValueError, match=r"orders\.process_id"):
        read_terms(hub_pb2.Arm(**ARM), hub_pb2.Order(process_id="", rank=1), trainer_view())


@pytest.mark.parametrize(("interval", "given"), [(0, S // 5), (1, S // 100), (S, S), (100 * S, 10 * S), (-5, S // 5)])
def test_the_sampling_rate_stays_reasonable(interval: int, given: int) -> None:
    assert sample_interval_ns(interval) == given
