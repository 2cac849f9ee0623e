"""The two things that a request takes of a job: a window that is recorded, or the stacks of a moment."""

from typing import Annotated, Final

from pydantic import Field

from fleetprof_api.limits import LONGEST_WINDOW_NS, MOST_ITERATIONS, MOST_WARMUP_ITERATIONS
from fleetprof_api.request.part import Part
from fleetprof_api.request.patterns import Pattern
from fleetprof_api.request.rules import rule


class Window(Part):
    """The length of the capture: whole training iterations, a time, or what ends first."""

    iterations: int | None = Field(
        default=None,
        ge=1,
        le=MOST_ITERATIONS,
        description="How many whole training iterations to record, the same ones on every rank.",
    )
    duration_millis: int | None = Field(
        default=None,
        ge=10,
        le=LONGEST_WINDOW_NS // 10**6,
        description="How long to record; with `iterations`, the time that they may take at most by the job's pace. "
        "Above 10000 only together with `ranks`.",
    )
    warmup_iterations: int | None = Field(
        default=None,
        ge=0,
        le=MOST_WARMUP_ITERATIONS,
        description="Iterations before the window, which are traced and thrown away; needs `iterations`.",
    )

    @rule(
        "has(self.iterations) || has(self.durationMillis)",
        "spec.window.iterations, spec.window.durationMillis or both must be set",
    )
    def _has_a_measure(self) -> bool:
        return self.iterations is not None or self.duration_millis is not None

    @rule(
        "!has(self.warmupIterations) || has(self.iterations)",
        "spec.window.warmupIterations needs spec.window.iterations",
        field="warmupIterations",
    )
    def _warms_up_in_iterations(self) -> bool:
        return self.warmup_iterations is None or self.iterations is not None


RANGE_NAME: Final = Pattern(
    r"^[ -~]+$", "that are printable ASCII, e.g. execute_model", "must be printable ASCII, for example execute_model"
)


class IterationRange(Part):
    """The bounds of an iteration in a job that makes no optimizer steps."""

    range: Annotated[str, RANGE_NAME] = Field(
        min_length=1,
        max_length=200,
        description="The name of a range (`torch.profiler.record_function`, NVTX) that each iteration begins with.",
    )


class Stacks(Part):
    """The stacks of every rank at a moment, also of a job that hangs."""

    samples: int = Field(default=1, ge=1, le=3, description="How often to look, two seconds apart.")


class Reading(Part):
    """A look at every rank instead of a recording."""

    stacks: Stacks = Field(
        description="The Python stacks of all threads, the latest collectives, and the kernel's word on each process. "
        "Nothing is recorded, and the job is not touched. The bounds of the namespace must allow Stacks."
    )
