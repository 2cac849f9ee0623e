"""The read parts of a stored request. Made from fleetprof_api.request by crds/generate.py: change that one."""

import msgspec


class Metadata(msgspec.Struct, rename="camel"):
    """The part of Metadata that is read."""

    name: str | None = None


class WorkloadReference(msgspec.Struct, rename="camel"):
    """The part of WorkloadReference that is read."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class LabelRequirement(msgspec.Struct, rename="camel"):
    """The part of LabelRequirement that is read."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class Selector(msgspec.Struct, rename="camel"):
    """The part of Selector that is read."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelRequirement] | None = None


class Target(msgspec.Struct, rename="camel"):
    """The part of Target that is read."""

    workload: WorkloadReference | None = None
    selector: Selector | None = None


class Window(msgspec.Struct, rename="camel"):
    """The part of Window that is read."""

    iterations: int | None = None
    duration_millis: int | None = None
    warmup_iterations: int | None = None


class Stacks(msgspec.Struct, rename="camel"):
    """The part of Stacks that is read."""

    samples: int = 0


class Reading(msgspec.Struct, rename="camel"):
    """The part of Reading that is read."""

    stacks: Stacks = msgspec.field(default_factory=Stacks)


class IterationRange(msgspec.Struct, rename="camel"):
    """The part of IterationRange that is read."""

    range: str = ""


class KernelClass(msgspec.Struct, rename="camel"):
    """The part of KernelClass that is read."""

    pattern: str = ""
    class_: str = msgspec.field(default="", name="class")


class Analysis(msgspec.Struct, rename="camel"):
    """The part of Analysis that is read."""

    kernel_classes: list[KernelClass] = []


class Spec(msgspec.Struct, rename="camel"):
    """The part of Spec that is read."""

    target: Target = msgspec.field(default_factory=Target)
    window: Window | None = None
    capture: Reading | None = None
    iteration: IterationRange | None = None
    collect: list[str] = []
    traces: str = ""
    analysis: Analysis | None = None


class ProfileRequest(msgspec.Struct, rename="camel"):
    """The part of ProfileRequest that is read."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: Spec = msgspec.field(default_factory=Spec)
