"""Classes of kernels from a file of their own, by the rules of a request's `spec.analysis.kernelClasses`.

    - {pattern: my_all_reduce, class: Communication}
    - {pattern: "copy_*_tiles", class: Memory}

Guarantees: YAML or JSON; `load_kernel_classes` returns what holds every rule, or raises InvalidRequest naming each
entry that does not.
"""

from collections.abc import Sequence

import yaml
from pydantic import Field, ValidationError

from fleetprof_api import kernel_class
from fleetprof_api.request.analysis import KernelClass
from fleetprof_api.request.document import load_plain_yaml
from fleetprof_api.request.part import Part
from fleetprof_api.request.refusal import InvalidRequest, say_problem


class _File(Part):
    classes: list[KernelClass] = Field(max_length=kernel_class.MOST_KERNEL_CLASSES)


def load_kernel_classes(text: str) -> tuple[kernel_class.KernelClass, ...]:
    """The entries of a file in their order."""
    try:
        document = next(iter(load_plain_yaml(text)), None)
    except yaml.YAMLError as error:
        raise InvalidRequest([f"classes: is not YAML: {' '.join(str(error).split())}"]) from None
    try:
        found = _File.model_validate({"classes": document})
    except ValidationError as error:
        problems = [say_problem(_File, detail) for detail in error.errors(include_url=False)]
        raise InvalidRequest(problems) from None
    return plain_classes(found.classes)


def plain_classes(classes: Sequence[KernelClass]) -> tuple[kernel_class.KernelClass, ...]:
    """As they go to the sidecars and to the analyzer."""
    return tuple(
        kernel_class.KernelClass(pattern=entry.pattern, work_class=entry.class_.value.lower())  # type: ignore[arg-type]
        for entry in classes
    )
