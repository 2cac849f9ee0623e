"""A ProfileRequest from the flags of `capture`: the same document that a file would hold.

Guarantees: pure; what the flags cannot say is left to its default; the rules are those of `fleetprof_api.request`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fleetprof_api.limits import LONGEST_WINDOW_OF_ALL_RANKS_NS
from fleetprof_api.request import API_VERSION, KIND, ProfileRequest, parse_request

from fleetprof_cli.durations import format_duration

_LONGEST_OF_ALL_MS: Final = LONGEST_WINDOW_OF_ALL_RANKS_NS // 10**6
_STACKS_DEADLINE_S: Final = 60
_NAME_LENGTH: Final = 38  # and 12 for the time: names have at most 52


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """The flags' values; None where a flag was not given."""

    iterations: int | None = None
    duration_ms: int | None = None
    warmup: int | None = None
    ranks: Sequence[int] | None = None
    sample: int | None = None
    every: int | None = None
    iteration_range: str | None = None
    collect: Sequence[str] = ()
    activities: Sequence[str] = ()
    thread_samples: str | None = None
    traces: str | None = None
    canary: str | None = None
    deadline_s: int | None = None
    missing_grace_s: int | None = None
    conflict: str | None = None
    max_trace_mib: int | None = None
    max_slowdown_percent: int | None = None


def find_contradiction(options: CaptureOptions) -> str:
    """The flags that exclude, or need, each other; empty where none does."""
    if options.warmup is not None and options.duration_ms is not None and options.iterations is None:
        return "--warmup counts iterations: give --iterations as well, or instead of --duration"
    if options.iteration_range is not None and (options.duration_ms is None or options.iterations is not None):
        return "--iteration-range needs --duration, without --iterations: ranges are counted when they are recorded"
    chosen = {"--ranks": options.ranks, "--sample": options.sample, "--every": options.every}
    given = [flag for flag, value in chosen.items() if value is not None]
    if len(given) > 1:
        return f"{' and '.join(given)} exclude each other: give one of them"
    if options.duration_ms is not None and options.duration_ms > _LONGEST_OF_ALL_MS and not given:
        longest = format_duration(LONGEST_WINDOW_OF_ALL_RANKS_NS)
        return f"--duration above {longest} needs --ranks, --sample or --every to choose some ranks"
    return ""


def make_document(
    target: dict[str, Any], stem: str, namespace: str, options: CaptureOptions, now: datetime
) -> dict[str, Any]:
    """The request as a document; its name is made of `stem` and `now`."""
    window: dict[str, Any] = {"iterations": options.iterations, "durationMillis": options.duration_ms}
    if options.iterations is None and options.duration_ms is None:
        window["iterations"] = 5
    window["warmupIterations"] = options.warmup
    ranks = {"list": options.ranks, "sample": options.sample, "every": options.every}
    limits = {
        "maxTraceBytes": None if options.max_trace_mib is None else options.max_trace_mib << 20,
        "maxSlowdownPercent": options.max_slowdown_percent,
    }
    spec: dict[str, Any] = {
        "target": target,
        "window": _given(window),
        "ranks": _given(ranks) or None,
        "iteration": None if options.iteration_range is None else {"range": options.iteration_range},
        "collect": list(options.collect) or None,
        "activities": list(options.activities) or None,
        "threadSamples": options.thread_samples,
        "traces": options.traces,
        "canary": options.canary,
        "conflict": options.conflict,
        "activeDeadlineSeconds": options.deadline_s,
        "missingRanksGraceSeconds": options.missing_grace_s,
        "limits": _given(limits) or None,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": _name(stem, now), "namespace": namespace},
        "spec": _given(spec),
    }


def make_stacks_request(target: dict[str, Any], stem: str, namespace: str, now: datetime) -> ProfileRequest:
    """A request for the stacks of a job; its name is made of `stem` and `now`."""
    return parse_request(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": _name(stem, now), "namespace": namespace},
            "spec": {"target": target, "capture": {"stacks": {}}, "activeDeadlineSeconds": _STACKS_DEADLINE_S},
        }
    )


def _name(stem: str, now: datetime) -> str:
    return f"{stem[:_NAME_LENGTH].strip('-.')}-{now:%m%d-%H%M%S}"


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
