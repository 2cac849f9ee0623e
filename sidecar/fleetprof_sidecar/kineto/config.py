"""The text that makes Kineto take one trace: generated from a closed list of keys, never passed through.

Guarantees: `build_config` writes keys of the list below and nothing else, never PROFILE_MEMORY (its thread spins a
core for the rest of the trainer's life), one `KEY=VALUE` a line; every value is a checked number, a checked path or a
checked id, so that no `=`, `#`, CR, LF, `..` or non-ASCII character gets in (libkineto schedules what it parsed up to a
bad line). Keys and their meaning: libkineto's Config.cpp, PyTorch 2.13 to 2.15.

The first step. Kineto begins to trace inside the hook of step PROFILE_START_ITERATION + 1, so the first step that is
recorded whole is two later: for a window that begins with step F, F - 2 is sent. Warm-up iterations do not shift that,
provided that the config arrives before they have to begin; one that arrives later shifts the window without a word.
Measured on PyTorch 2.13 and 2.15 (tests/sidecar/test_real_torch.py).
"""

import re
from collections.abc import Mapping
from typing import Final

from fleetprof_api.choices import Activity, Collect
from fleetprof_api.profiler import KINETO

from fleetprof_sidecar.profiler import StepStart, TimeStart, TraceOrder

_COLLECT: Final[Mapping[str, tuple[str, ...]]] = {
    Collect.SHAPES: ("PROFILE_REPORT_INPUT_SHAPES",),
    Collect.STACKS: ("PROFILE_WITH_STACK",),
    Collect.MODULE_TREE: (),  # the agent's marks
    Collect.DEVICE_METRICS: (),  # sampled by the agent through NVML, nothing of Kineto's
}
# Without user_annotation the marks of optimizer steps are missing, and with them the bounds of iterations.
_ACTIVITY_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    Activity.DEVICE: ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "user_annotation"),
}
_PATH: Final = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+\.json")
_TRACE_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def build_config(order: TraceOrder) -> str:
    """The config of one order. Raises ValueError naming the field that breaks a rule."""
    lines: dict[str, str] = {
        "ACTIVITIES_LOG_FILE": _checked_path(order.output),
        "REQUEST_TRACE_ID": _checked_trace_id(order.trace_id),
    }
    match order.start:
        case StepStart(first_step=first_step, steps=steps, warmup_steps=warmup_steps):
            first = _within("first_step", first_step, KINETO.steps_before_first, 2**31)
            lines["PROFILE_START_ITERATION"] = str(first - KINETO.steps_before_first)
            lines["ACTIVITIES_ITERATIONS"] = str(_within("steps", steps, 1, 100_000))
            lines["ACTIVITIES_WARMUP_ITERATIONS"] = str(_within("warmup_steps", warmup_steps, 0, 100_000))
        case TimeStart(start_unix_ms=start_unix_ms, duration_ms=duration_ms):
            lines["PROFILE_START_TIME"] = str(_within("start_unix_ms", start_unix_ms, 1, 2**53))
            lines["ACTIVITIES_DURATION_MSECS"] = str(_within("duration_ms", duration_ms, 1, 600_000))
            lines["ACTIVITIES_WARMUP_PERIOD_SECS"] = str(warmup_s(order.device_kind))
    for name in sorted(order.collect):
        if name not in _COLLECT:
            raise ValueError(f"collect: {name!r} is not one of {', '.join(_COLLECT)}")
        for key in _COLLECT[name]:
            lines[key] = "true"
    for name in order.activities:
        if name not in _ACTIVITY_TYPES:
            raise ValueError(f"activities: {name!r} is not one of {', '.join(_ACTIVITY_TYPES)}")
    if order.activities:
        lines["ACTIVITY_TYPES"] = ",".join(kind for name in sorted(order.activities) for kind in _ACTIVITY_TYPES[name])
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def warmup_s(device_kind: str) -> int:
    """Seconds that Kineto needs before a window by time begins."""
    return 0 if device_kind == "cpu" else KINETO.warmup_ns // 10**9


def latest_delivery_unix_ns(start: TimeStart, device_kind: str) -> int:
    """After this moment Kineto would refuse the order, silently."""
    return start.start_unix_ms * 10**6 - warmup_s(device_kind) * 10**9 - KINETO.delivery_margin_ns


def _checked_path(path: str) -> str:
    # libkineto puts the pid before the first ".json" of the whole path and refuses any "..".
    if not _PATH.fullmatch(path) or ".." in path or path.count(".json") != 1 or ".pt.trace" in path:
        raise ValueError(f"output {path!r}: must be an absolute path of A-Z a-z 0-9 . _ - with one '.json', at its end")
    return path


def _checked_trace_id(trace_id: str) -> str:
    if not _TRACE_ID.fullmatch(trace_id) or ".." in trace_id:
        raise ValueError(f"trace_id {trace_id!r}: must be 1 to 128 of A-Z a-z 0-9 . _ -, no '..'")
    return trace_id


def _within(name: str, value: int, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} {value!r}: must be an integer from {low} to {high}")
    return value
