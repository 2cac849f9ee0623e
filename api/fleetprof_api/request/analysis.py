"""The analysis of a capture: workers, their resources, and classes of kernels."""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from fleetprof_api.kernel_class import MOST_KERNEL_CLASSES, MOST_PATTERN_CHARACTERS
from fleetprof_api.request.part import Part
from fleetprof_api.request.patterns import KERNEL, QUANTITY
from fleetprof_api.request.rules import Rule, rule

_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_THOUSANDS: Final = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def read_quantity(text: str) -> Decimal:
    """The amount that a quantity of Kubernetes means; it fits the pattern."""
    suffix = text.lstrip("0123456789.")
    number = Decimal(text.removesuffix(suffix))
    if suffix.endswith("i"):
        return number * Decimal(1024 ** ("KMGTPE".index(suffix[0]) + 1))
    if len(suffix) > 1:
        return Decimal(text)
    return number.scaleb(3 * _THOUSANDS[suffix])


def _write_number(value: object) -> object:
    # YAML's `cpu: 4` is a number, and means "4".
    return str(value) if type(value) is int else value


_Quantity = Annotated[
    str,
    QUANTITY,
    BeforeValidator(_write_number),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "minimum": 0,
            "pattern": QUANTITY.regex,
        }
    ),
]


def _known_resources(field: str) -> Rule:
    """The rule of the names in one field of Resources."""
    return Rule(
        f"self.all(name, name in {list(_RESOURCES)})",
        f"spec.analysis.resources.{field} may name {', '.join(_RESOURCES[:-1])} and {_RESOURCES[-1]}",
        lambda amounts: set(amounts) <= set(_RESOURCES),
    )


class Resources(Part):
    """Kubernetes' ResourceRequirements, as far as an analyzer pod has a use for them."""

    requests: Annotated[dict[str, _Quantity], Field(max_length=3), _known_resources("requests")] | None = Field(
        default=None, description="What each worker is promised."
    )
    limits: Annotated[dict[str, _Quantity], Field(max_length=3), _known_resources("limits")] | None = Field(
        default=None, description="What each worker may use at most."
    )

    @rule(
        "!has(self.requests) || !has(self.limits) || self.requests.all(name, !(name in self.limits) || "
        "!quantity(string(self.requests[name])).isGreaterThan(quantity(string(self.limits[name]))))",
        "spec.analysis.resources.requests must not be more than spec.analysis.resources.limits",
    )
    def _asks_for_no_more_than_its_limits(self) -> bool:
        requests, most = self.requests or {}, self.limits or {}
        return all(read_quantity(requests[name]) <= read_quantity(most[name]) for name in set(requests) & set(most))


class KernelWork(StrEnum):
    """The purpose of device work."""

    COMPUTE = "Compute"
    COMMUNICATION = "Communication"
    MEMORY = "Memory"


class KernelClass(Part):
    """Kernels that the built-in table of names does not know, or takes for something else."""

    pattern: Annotated[str, KERNEL] = Field(
        min_length=1,
        max_length=MOST_PATTERN_CHARACTERS,
        description="Text that the kernel's name contains, as it is written; * stands for any characters.",
    )
    class_: Annotated[KernelWork, Field(strict=False)] = Field(alias="class", description="What these kernels are.")


class Analysis(Part):
    """The run of the analysis."""

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
