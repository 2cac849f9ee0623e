"""The base of all answers.

Guarantees: every field is always there, null where it is not known; durations are integers of nanoseconds; absolute
Unix nanoseconds are decimal strings, because JavaScript's numbers lose them beyond 2^53.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

UnixNs = Annotated[str, Meta(description="Unix time in ns, as a decimal string", pattern="^[0-9]{1,20}$")]
Ns = Annotated[int, Meta(description="duration, ns")]
Permille = Annotated[int, Meta(description="thousandths")]


class Model(msgspec.Struct, kw_only=True):
    """One JSON object of an answer."""


def unix_ns(value: int) -> str | None:
    """An absolute time as it is sent; 0 is not known."""
    return str(value) if value > 0 else None
