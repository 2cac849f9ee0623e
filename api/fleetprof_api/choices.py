"""The choices of a request, for those who obey as well: a sidecar reads no request, and has no pydantic."""

from enum import StrEnum
from typing import Final


class Collect(StrEnum):
    """A thing to record beside operators and kernels; each costs time in the trainer."""

    SHAPES = "Shapes"
    STACKS = "Stacks"
    MODULE_TREE = "ModuleTree"
    DEVICE_METRICS = "DeviceMetrics"


class Activity(StrEnum):
    """A kind of rows to record where not all are wanted."""

    DEVICE = "Device"


HOST_OPTIONS: Final = (Collect.SHAPES, Collect.STACKS, Collect.MODULE_TREE)
"""Options that record something of operators: a recording of the device alone has nothing of it."""


# What earlier versions had, and what to name instead.
_RETIRED: Final = {
    "Modules": "it named modules by class and ordinal; ModuleTree names them as the model does",
    "Memory": "it changed nothing in a trace; ModuleTree tells the memory of modules",
    "Flops": "it changed nothing in a trace; name Shapes, from which operations can be counted",
}


def explain_retired(name: str) -> str:
    """The reason why `collect` has no such choice any more, "" for any other name."""
    why = _RETIRED.get(name)
    return f"{name} is no choice any more: {why}" if why else ""


class Traces(StrEnum):
    """The ranks that upload a whole trace."""

    FULL = "Full"
    SUMMARY = "Summary"
    AUTO = "Auto"
