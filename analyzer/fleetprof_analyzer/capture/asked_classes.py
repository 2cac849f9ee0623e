"""The classes of kernels that a request asks for (`spec.analysis.kernelClasses`), from request.json.

Guarantees: never raises; entries that break the rules are left out; works without pydantic.
"""

import msgspec
from fleetprof_api.kernel_class import KernelClass, read_kernel_classes


class _Entry(msgspec.Struct):
    pattern: str = ""
    work_class: str = msgspec.field(default="", name="class")


class _Analysis(msgspec.Struct, rename="camel"):
    kernel_classes: list[_Entry] = []


class _Spec(msgspec.Struct):
    analysis: _Analysis | None = None


class _Request(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def asked_kernel_classes(document: bytes | None) -> list[KernelClass]:
    """The entries in their order; none where there is no request, or none that can be read."""
    try:
        request = msgspec.json.decode(document or b"{}", type=_Request)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    entries = [] if request.spec.analysis is None else request.spec.analysis.kernel_classes
    return read_kernel_classes((entry.pattern, entry.work_class.lower()) for entry in entries)
