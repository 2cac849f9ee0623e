"""A ProfileRequest from the flags of `capture`: the same document that a file would hold.

Guarantees: pure; what the flags cannot say is left to its default; the rules are those of `fleetprof_api.request`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fleetprof_api.limits import LONGEST_WINDOW_OF_ALL_RANKS_NS, MOST_LISTED_RANKS
from fleetprof_api.request import API_VERSION, KIND

from fleetprof_cli.durations import format_duration

_LONGEST_OF_ALL_MS: Final = LONGEST_WINDOW_OF_ALL_RANKS_NS // 10**6
_NAME_LENGTH: Final = 38  # and 12 for the time: names have at most 52


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A workload as sidecars name it."""

    api_version: str
    kind: str
    name: str
    namespace: str

    def target(self) -> dict[str, Any]:
        """The workload as a request's `spec.target`."""
        return {"workload": {"apiVersion": self.api_version, "kind": self.kind, "name": self.name}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the flags said; None where a flag was not given."""

    iterations: int | None = None
    duration_ms: int | None = None
    warmup: int | None = None
    ranks: Sequence[int] | None = None
    sample: int | None = None
    every: int | None = None
    collect: Sequence[str] = ()
    thread_samples: str | None = None
    traces: str | None = None
    canary: str | None = None
    deadline_s: int | None = None
    missing_grace_s: int | None = None
    conflict: str | None = None
    max_trace_mib: int | None = None
    max_slowdown_percent: int | None = None


def parse_ranks(text: str) -> list[int]:
    """`0,8,16-19` as numbers, each once. Raises ValueError with the rule."""
    ranks: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,7})(?:-(\d{1,7}))?\s*", part)
        if not match:
            raise ValueError(f"{part!r} must be a rank or a range of ranks, for example 0,8,16-19")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"{part!r} must be a range from a lower to a higher rank")
        ranks.extend(range(first, min(last, first + MOST_LISTED_RANKS) + 1))
        if len(set(ranks)) > MOST_LISTED_RANKS:
            raise ValueError(f"{text!r} names more than {MOST_LISTED_RANKS} ranks; use --sample or --every")
    return list(dict.fromkeys(ranks))


def find_contradiction(wishes: Wishes) -> str:
    """Which flags exclude, or need, each other; empty where none does."""
    if wishes.iterations is not None and wishes.duration_ms is not None:
        return "--iterations and --duration exclude each other: give one of them"
    if wishes.warmup is not None and wishes.duration_ms is not None:
        return "--warmup counts iterations: give --iterations instead of --duration"
    chosen = {"--ranks": wishes.ranks, "--sample": wishes.sample, "--every": wishes.every}
    given = [flag for flag, value in chosen.items() if value is not None]
    if len(given) > 1:
        return f"{' and '.join(given)} exclude each other: give one of them"
    if wishes.duration_ms is not None and wishes.duration_ms > _LONGEST_OF_ALL_MS and not given:
        longest = format_duration(LONGEST_WINDOW_OF_ALL_RANKS_NS)
        return f"--duration above {longest} needs --ranks, --sample or --every to choose some ranks"
    return ""


def make_document(target: dict[str, Any], stem: str, namespace: str, wishes: Wishes, now: datetime) -> dict[str, Any]:
    """The request as a document; its name is made of `stem` and `now`."""
    window: dict[str, Any] = {"iterations": wishes.iterations, "durationMillis": wishes.duration_ms}
    if wishes.iterations is None and wishes.duration_ms is None:
        window["iterations"] = 5
    window["warmupIterations"] = wishes.warmup
    ranks = {"list": wishes.ranks, "sample": wishes.sample, "every": wishes.every}
    limits = {
        "maxTraceBytes": None if wishes.max_trace_mib is None else wishes.max_trace_mib << 20,
        "maxSlowdownPercent": wishes.max_slowdown_percent,
    }
    spec: dict[str, Any] = {
        "target": target,
        "window": _given(window),
        "ranks": _given(ranks) or None,
        "collect": list(wishes.collect) or None,
        "threadSamples": wishes.thread_samples,
        "traces": wishes.traces,
        "canary": wishes.canary,
        "conflict": wishes.conflict,
        "activeDeadlineSeconds": wishes.deadline_s,
        "missingRanksGraceSeconds": wishes.missing_grace_s,
        "limits": _given(limits) or None,
    }
    stem = stem[:_NAME_LENGTH].strip("-.")
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": f"{stem}-{now:%m%d-%H%M%S}", "namespace": namespace},
        "spec": _given(spec),
    }


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
