"""What a request may choose among, for those who obey as well: a sidecar reads no request, and has no pydantic."""

from enum import StrEnum


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
