"""The base of all slices.

Guarantees: every field is always there, null where it is not known; durations are integers of nanoseconds; absolute
Unix nanoseconds are decimal strings, because JavaScript's numbers lose them beyond 2^53.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

UnixNs = Annotated[str, Meta(description="Unix time in ns, as a decimal string", pattern="^[0-9]{1,20}$")]
Ns = Annotated[int, Meta(description="duration, ns")]


class SlicePart(msgspec.Struct, kw_only=True):
    """One JSON object within a slice."""


class Slice(msgspec.Struct, kw_only=True):
    """One slice, whole."""

    cut: Annotated[int, Meta(description="rows that are left out by the rule of the slice (docs/report.md)", ge=0)] = 0


def unix_ns(value: int) -> str | None:
    """An absolute time as it is sent; 0 is not known."""
    return str(value) if value > 0 else None
