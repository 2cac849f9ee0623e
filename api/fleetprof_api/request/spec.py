"""What to capture, from which ranks, when and within which limits."""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field, model_validator

from fleetprof_api.kernel_class import MOST_KERNEL_CLASSES, MOST_PATTERN_CHARACTERS, PATTERN
from fleetprof_api.limits import (
    LEAST_TRACE_BYTES,
    LONGEST_DEADLINE_NS,
    LONGEST_WINDOW_NS,
    LONGEST_WINDOW_OF_ALL_RANKS_NS,
    MOST_ITERATIONS,
    MOST_LISTED_RANKS,
    MOST_SLOWDOWN_PERCENT,
    MOST_TRACE_BYTES,
    MOST_WARMUP_ITERATIONS,
    SECOND_NS,
)
from fleetprof_api.report.recording import DEFAULT_MAX_TRACE_BYTES
from fleetprof_api.request.part import Part, break_rule, require_exactly_one
from fleetprof_api.request.target import Target

_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_THOUSANDS: Final = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_QUANTITY: Final = r"^([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$"


class Collect(StrEnum):
    """What to record beside operators and kernels; each costs time in the trainer."""

    SHAPES = "Shapes"
    STACKS = "Stacks"
    MODULES = "Modules"
    MEMORY = "Memory"
    FLOPS = "Flops"
    DEVICE_METRICS = "DeviceMetrics"


class Traces(StrEnum):
    """Which ranks upload a whole trace."""

    FULL = "Full"
    SUMMARY = "Summary"
    AUTO = "Auto"


class Canary(StrEnum):
    """Whether one rank records one iteration before the others are asked. Never, not Off: that is YAML's false."""

    AUTO = "Auto"
    ALWAYS = "Always"
    NEVER = "Never"


class ThreadSamples(StrEnum):
    """Whether the agent looks where in its Python code the training thread is."""

    AUTO = "Auto"
    NEVER = "Never"


class Redact(StrEnum):
    """What to remove before anything leaves the pod."""

    SHAPES = "Shapes"
    PATHS = "Paths"
    NAMES = "Names"


class Ranks(Part):
    """Which ranks to capture; all when absent."""

    list_: list[Annotated[int, Field(ge=0, le=1_000_000)]] | None = Field(
        default=None, alias="list", min_length=1, max_length=MOST_LISTED_RANKS, description="Exactly these ranks."
    )
    sample: int | None = Field(
        default=None, ge=1, le=100_000, description="So many ranks, spread evenly over the nodes."
    )
    every: int | None = Field(default=None, ge=2, le=100_000, description="Every Nth rank, beginning with 0.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        require_exactly_one(self, "list_", "sample", "every")
        if self.list_ is not None and len(set(self.list_)) != len(self.list_):
            raise break_rule("list must not name a rank twice")
        return self


class Window(Part):
    """How much to capture: whole training iterations, or a length of time."""

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
        description="How long to record instead; above 10000 only together with `ranks`.",
    )
    warmup_iterations: int | None = Field(
        default=None,
        ge=0,
        le=MOST_WARMUP_ITERATIONS,
        description="Iterations that are traced and thrown away before; needs `iterations`.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        require_exactly_one(self, "iterations", "duration_millis")
        if self.warmup_iterations is not None and self.iterations is None:
            raise break_rule("warmupIterations needs iterations")
        return self


class Limits(Part):
    """The capture is aborted on a rank that passes a limit."""

    max_trace_bytes: int = Field(
        default=DEFAULT_MAX_TRACE_BYTES,
        ge=LEAST_TRACE_BYTES,
        le=MOST_TRACE_BYTES,
        description="A rank whose trace is larger gives it up.",
    )
    max_slowdown_percent: int = Field(
        default=200,
        ge=0,
        le=MOST_SLOWDOWN_PERCENT,
        description="A rank whose iterations become slower by more stops recording; 0 lets it go on. Needs the agent.",
    )


class Storage(Part):
    """Where the result goes, below what the administrator configured."""

    profile: str | None = Field(
        default=None, min_length=1, max_length=63, description="Name of an administrator's storage profile."
    )


def _write_number(value: object) -> object:
    # YAML's `cpu: 4` is a number, and means "4".
    return str(value) if type(value) is int else value


_Quantity = Annotated[str, Field(pattern=_QUANTITY), BeforeValidator(_write_number)]


def read_quantity(text: str) -> Decimal:
    """The amount that a quantity of Kubernetes means; it fits the pattern."""
    suffix = text.lstrip("0123456789.")
    number = Decimal(text.removesuffix(suffix))
    if suffix.endswith("i"):
        return number * Decimal(1024 ** ("KMGTPE".index(suffix[0]) + 1))
    if len(suffix) > 1:
        return Decimal(text)
    return number.scaleb(3 * _THOUSANDS[suffix])


class Resources(Part):
    """Kubernetes' ResourceRequirements, as far as an analyzer pod has a use for them."""

    requests: dict[str, _Quantity] | None = Field(
        default=None, max_length=3, description="What each worker is promised."
    )
    limits: dict[str, _Quantity] | None = Field(
        default=None, max_length=3, description="What each worker may use at most."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, given in (("requests", self.requests), ("limits", self.limits)):
            if not set(given or {}) <= set(_RESOURCES):
                raise break_rule(f"{name} may name {', '.join(_RESOURCES[:-1])} and {_RESOURCES[-1]}")
        asked, most = self.requests or {}, self.limits or {}
        if any(read_quantity(asked[name]) > read_quantity(most[name]) for name in set(asked) & set(most)):
            raise break_rule("requests must not be more than limits")
        return self


class WorkClass(StrEnum):
    """What device work is for."""

    COMPUTE = "Compute"
    COMMUNICATION = "Communication"
    MEMORY = "Memory"


class KernelClass(Part):
    """Kernels that the built-in table of names does not know, or takes for something else."""

    pattern: str = Field(
        min_length=1,
        max_length=MOST_PATTERN_CHARACTERS,
        pattern=PATTERN,
        description="Text that the kernel's name contains, as it is written; * stands for any characters.",
    )
    class_: Annotated[WorkClass, Field(strict=False)] = Field(alias="class", description="What these kernels are.")


class Analysis(Part):
    """How the analysis is run."""

    parallelism: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="How many workers the analysis may use; chosen from the number of ranks when absent.",
    )
    resources: Resources | None = Field(default=None, description="Kubernetes resources of each worker.")
    kernel_classes: list[KernelClass] = Field(
        default=[],
        max_length=MOST_KERNEL_CLASSES,
        description="Classes of kernels by their names, before the built-in table; the first that fits counts.",
    )


class Spec(Part):
    """What to capture, from which ranks, when and within which limits."""

    target: Target = Field(
        description="The running job to profile, in the request's namespace; exactly one of its fields."
    )
    ranks: Ranks | None = Field(
        default=None, description="Which ranks, exactly one of its fields; all ranks when absent."
    )
    window: Window = Field(description="How much to record; exactly one of `iterations` and `durationMillis`.")
    collect: list[Annotated[Collect, Field(strict=False)]] = Field(
        default=[], max_length=6, description="What to record beside operators and kernels; each costs time in the job."
    )
    thread_samples: Annotated[ThreadSamples, Field(strict=False)] = Field(
        default=ThreadSamples.AUTO,
        description="Whether the agent notes, some hundred times within the window, where in its Python code the "
        "training thread is: unless `collect` has Stacks, or those are not allowed (Auto), or Never.",
    )
    traces: Annotated[Traces, Field(strict=False)] = Field(
        default=Traces.FULL,
        description="Which ranks upload a whole trace: all (Full), none, but each a summary (Summary), or the suspects "
        "and one rank to compare them with (Auto).",
    )
    redact: list[Annotated[Redact, Field(strict=False)]] = Field(
        default=[], max_length=3, description="What to remove before anything leaves the pod."
    )
    canary: Annotated[Canary, Field(strict=False)] = Field(
        default=Canary.AUTO,
        description="Whether one rank records one iteration first, and the others follow only if it is unharmed: where "
        "no earlier capture tells what one costs (Auto), Always or Never.",
    )
    limits: Limits = Field(default_factory=Limits, description="When to give a rank up.")
    active_deadline_seconds: int = Field(
        default=900,
        ge=30,
        le=LONGEST_DEADLINE_NS // SECOND_NS,
        description="The request ends after so long, with what is stored by then; suspended time does not count.",
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=31_536_000,
        description="The request is deleted so long after its end; never when absent. Traces and report stay in the "
        "store. May be changed at any time.",
    )
    suspend: bool = Field(default=False, description="Do not begin yet; set it to false to begin.")
    storage: Storage | None = Field(
        default=None, description="Where the result goes, below what the administrator configured."
    )
    analysis: Analysis | None = Field(default=None, description="How the analysis is run.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        longest = LONGEST_WINDOW_OF_ALL_RANKS_NS // 10**6
        if self.window.duration_millis is not None and self.window.duration_millis > longest and self.ranks is None:
            raise break_rule(f"window.durationMillis above {longest} needs ranks to choose some ranks")
        for name, items in (("collect", self.collect), ("redact", self.redact)):
            if len(set(items)) != len(items):
                raise break_rule(f"{name} must not name a value twice")
        return self
