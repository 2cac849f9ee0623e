"""The spec of a request: capture, ranks, begin and limits."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fleetprof_api.choices import HOST_OPTIONS, Activity, Collect, Traces, explain_retired
from fleetprof_api.limits import (
    HIGHEST_RANK,
    LEAST_TRACE_BYTES,
    LONGEST_DEADLINE_NS,
    LONGEST_WINDOW_OF_ALL_RANKS_NS,
    MOST_LISTED_RANKS,
    MOST_SLOWDOWN_PERCENT,
    MOST_TRACE_BYTES,
    SECOND_NS,
)
from fleetprof_api.report.recording import DEFAULT_MAX_TRACE_BYTES
from fleetprof_api.request.analysis import Analysis
from fleetprof_api.request.changes import MayChange, rules_of_changes
from fleetprof_api.request.part import Part
from fleetprof_api.request.rules import Cel, Unique, rule
from fleetprof_api.request.target import Target
from fleetprof_api.request.window import IterationRange, Reading, Window

_LONGEST_MILLIS: Final = LONGEST_WINDOW_OF_ALL_RANKS_NS // 10**6


class CanaryMode(StrEnum):
    """The choice whether one rank records an iteration first. Never, not Off: that is YAML's false."""

    AUTO = "Auto"
    ALWAYS = "Always"
    NEVER = "Never"


class Conflict(StrEnum):
    """The choice of a request that cannot begin, since others are under way."""

    WAIT = "Wait"
    FAIL = "Fail"


class ThreadSampling(StrEnum):
    """The choice whether the agent looks where in its Python code the training thread is."""

    AUTO = "Auto"
    NEVER = "Never"


class Redact(StrEnum):
    """Data to remove before anything leaves the pod. Not supported yet, and refused."""

    SHAPES = "Shapes"
    PATHS = "Paths"
    NAMES = "Names"


class Ranks(Part):
    """The ranks to capture; all when absent."""

    list_: (
        Annotated[
            list[Annotated[int, Field(ge=0, le=HIGHEST_RANK)]],
            Field(min_length=1, max_length=MOST_LISTED_RANKS),
            Unique(),
        ]
        | None
    ) = Field(default=None, alias="list", description="Exactly these ranks.")
    sample: int | None = Field(
        default=None, ge=1, le=100_000, description="This many ranks, spread evenly over the nodes."
    )
    every: int | None = Field(default=None, ge=2, le=100_000, description="Every Nth rank, beginning with 0.")

    @rule(
        "[has(self.list), has(self.sample), has(self.every)].filter(given, given).size() == 1",
        "exactly one of spec.ranks.list, spec.ranks.sample and spec.ranks.every must be set",
    )
    def _is_one(self) -> bool:
        return [self.list_, self.sample, self.every].count(None) == 2


class Limits(Part):
    """The capture is aborted on a rank that passes a limit."""

    max_trace_bytes: int = Field(
        default=DEFAULT_MAX_TRACE_BYTES,
        ge=LEAST_TRACE_BYTES,
        le=MOST_TRACE_BYTES,
        description="A rank whose trace is larger drops it.",
    )
    max_slowdown_percent: int = Field(
        default=200,
        ge=0,
        le=MOST_SLOWDOWN_PERCENT,
        description="A rank whose iterations become slower by more than this stops recording; 0: no limit. "
        "Needs the agent.",
    )


class Storage(Part):
    """The place of the result, below what the administrator configured."""

    profile: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        description="Name of an administrator's storage profile. Not supported yet, and refused.",
    )


class _Targeted(Part):
    target: Target = Field(
        description="The running job to profile, in the request's namespace; exactly one of its fields."
    )


def _refuse_retired(wanted: object) -> object:
    for name in wanted if isinstance(wanted, list) else ():
        if isinstance(name, str) and (why := explain_retired(name)):
            raise PydanticCustomError("rule", "{text}", {"text": why, "field": ""})
    return wanted


class Recording(Part):
    """A request without its target, as a ProfilePolicy's template holds it."""

    ranks: Ranks | None = Field(
        default=None, description="Which ranks, exactly one of its fields; all ranks when absent."
    )
    window: Window | None = Field(
        default=None,
        description="How much to record: `iterations`, `durationMillis`, or what ends first of both. Needed without "
        "`capture`.",
    )
    capture: Reading | None = Field(
        default=None, description="What to read instead of a recording: `stacks` tells where a job that hangs stands."
    )
    iteration: IterationRange | None = Field(
        default=None,
        description="What an iteration is, for jobs without optimizer steps (inference, evaluation); an optimizer step "
        "when absent. Needs `window.durationMillis` without `iterations`.",
    )
    collect: Annotated[
        list[Annotated[Collect, Field(strict=False)]], Field(max_length=4), Unique(), BeforeValidator(_refuse_retired)
    ] = Field(
        default=[],
        description="What to record beside operators and kernels; each costs time in the job. ModuleTree: one "
        "iteration more, in which the agent marks each module; no other measure counts it. "
        "Modules, Memory and Flops of earlier versions are refused.",
    )
    activities: Annotated[list[Annotated[Activity, Field(strict=False)]], Field(max_length=1), Unique()] = Field(
        default=[],
        description="What to record; everything when empty. Device: kernels, copies and the marks of iterations alone, "
        "which is the smallest recording there is; nothing of the host is measured then. Needs a GPU.",
    )
    thread_samples: Annotated[ThreadSampling, Field(strict=False)] = Field(
        default=ThreadSampling.AUTO,
        description="Whether the agent notes, some hundred times within the window, where the training thread is in "
        "its Python code. Auto: it does, unless `collect` has Stacks or Stacks are not allowed. Never: it does not.",
    )
    traces: Annotated[Traces, Field(strict=False)] = Field(
        default=Traces.FULL,
        description="Which ranks upload a whole trace. Full: all ranks. Summary: none; each uploads a summary. Auto: "
        "the suspects and one rank to compare them with.",
    )
    redact: Annotated[list[Annotated[Redact, Field(strict=False)]], Field(max_length=3), Unique()] = Field(
        default=[], description="What to remove before anything leaves the pod. Not supported yet, and refused."
    )
    canary: Annotated[CanaryMode, Field(strict=False)] = Field(
        default=CanaryMode.AUTO,
        description="Whether one rank records one iteration first, and the others follow only if it is unharmed. Auto: "
        "it does so if no earlier capture shows what a capture costs.",
    )
    conflict: Annotated[Conflict, Field(strict=False)] = Field(
        default=Conflict.WAIT,
        description="What to do while other requests capture these ranks or use up the namespace's limit. Wait: wait "
        "for a turn, first come first served. Fail: end.",
    )
    limits: Limits = Field(default=Limits(), description="When a rank stops or drops its recording.")
    active_deadline_seconds: int = Field(
        default=900,
        ge=30,
        le=LONGEST_DEADLINE_NS // SECOND_NS,
        description="The request ends after this time, with what is stored by then. Time in which it is suspended, or "
        "waits in the queue, does not count.",
    )
    missing_ranks_grace_seconds: int | None = Field(
        default=None,
        ge=0,
        le=LONGEST_DEADLINE_NS // SECOND_NS,
        description="Once some of the ranks are there, wait this long for those that are known to be missing (pods "
        "that do not run, ranks of `ranks.list` that nobody sees, ranks whose sidecar is gone), then go on without "
        "them. Until the deadline when absent.",
    )
    ttl_seconds_after_finished: Annotated[int | None, MayChange()] = Field(
        default=None,
        ge=0,
        le=31_536_000,
        description="The request is deleted this long after its end; never when absent, or while Flux or Argo CD, "
        "which would make it again, keep it. Traces and report stay in the store. May be changed at any time.",
    )
    suspend: Annotated[
        bool,
        MayChange(
            "!self.suspend || oldSelf.suspend",
            "spec.suspend can only go from true to false; delete the request to cancel a capture",
        ),
    ] = Field(default=False, description="Do not begin yet; set it to false to begin.")
    storage: Storage | None = Field(
        default=None, description="Where the result goes, below what the administrator configured."
    )
    analysis: Analysis | None = Field(default=None, description="How the analysis is run.")

    @rule(
        "has(self.window) != has(self.capture)",
        "exactly one of spec.window and spec.capture must be set",
    )
    def _is_window_or_stacks(self) -> bool:
        return (self.window is None) != (self.capture is None)

    @rule(
        "!has(self.iteration) || (has(self.window) && !has(self.window.iterations))",
        "spec.iteration needs spec.window.durationMillis alone: nothing counts ranges before they are recorded",
        field="iteration",
    )
    def _records_ranges_by_time(self) -> bool:
        return self.iteration is None or (self.window is not None and self.window.iterations is None)

    @rule(
        "!has(self.capture) || !has(self.ranks)",
        "spec.capture.stacks are those of all ranks: leave spec.ranks out",
        field="ranks",
    )
    def _reads_all_ranks(self) -> bool:
        return self.capture is None or self.ranks is None

    @rule(
        "!has(self.capture) || !has(self.collect) || self.collect.size() == 0",
        "spec.capture.stacks record nothing: leave spec.collect out",
        field="collect",
    )
    def _records_or_reads(self) -> bool:
        return self.capture is None or not self.collect

    @rule(
        "!has(self.capture) || !has(self.activities) || self.activities.size() == 0",
        "spec.capture.stacks record nothing: leave spec.activities out",
        field="activities",
    )
    def _records_activities(self) -> bool:
        return self.capture is None or not self.activities

    @rule(
        "!has(self.activities) || self.activities.size() == 0 || !has(self.collect) || "
        f"!self.collect.exists(option, option in {[str(option) for option in HOST_OPTIONS]})",
        f"{', '.join(HOST_OPTIONS)} of spec.collect say something of operators, which spec.activities leaves out",
        field="collect",
    )
    def _collects_what_is_recorded(self) -> bool:
        return not self.activities or not set(self.collect) & set(HOST_OPTIONS)

    @rule(
        "!has(self.window) || !has(self.window.durationMillis) || "
        f"self.window.durationMillis <= {_LONGEST_MILLIS} || has(self.ranks)",
        f"spec.window.durationMillis above {_LONGEST_MILLIS} needs spec.ranks to choose some ranks",
        field="window.durationMillis",
    )
    def _is_short_for_all_ranks(self) -> bool:
        millis = (self.window.duration_millis or 0) if self.window is not None else 0
        return millis <= _LONGEST_MILLIS or self.ranks is not None

    @property
    def options(self) -> list[str]:
        """The names of all that makes a recording larger or smaller."""
        return [*self.collect, *self.activities]

    @property
    def recorded(self) -> Window:
        """The window of a request that is known to record one."""
        assert self.window is not None
        return self.window


class Spec(Recording, _Targeted):
    """The capture that is wanted: its target, ranks, begin and limits."""

    @classmethod
    def cel_rules(cls) -> Sequence[Cel]:
        """The rules in CEL, those of changes first."""
        return [*rules_of_changes(cls, "spec"), *super().cel_rules()]
