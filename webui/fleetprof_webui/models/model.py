"""The base of all answers.

Guarantees: every field is always there, null where it is not known; durations are integers of nanoseconds; absolute
Unix nanoseconds are decimal strings, because JavaScript's numbers lose them beyond 2^53.
"""

import msgspec
from fleetprof_api.slices.slice import Ns, UnixNs, unix_ns

__all__ = ["Model", "Ns", "UnixNs", "unix_ns"]


class Model(msgspec.Struct, kw_only=True):
    """One JSON object of an answer."""
