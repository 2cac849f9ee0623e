"""The policies of a namespace as they stand, in the object store: what the operator writes and the web UI shows.

The web UI has no right of its own at the API server, so it reads policies where it reads reports. Guarantees: a
document is at most MOST_BYTES long; one that is larger, or not ours, is refused before it is believed.
"""

from typing import Any, Final

import msgspec

from fleetprof_api.errors import FleetprofError
from fleetprof_api.policy.stored_status import PolicyStatus

MOST_BYTES: Final = 16 << 20
_VERSION: Final = 1


class InvalidPolicies(FleetprofError, ValueError):
    """No document of policies that this fleetprof reads; the message says why."""


class StoredPolicy(msgspec.Struct, frozen=True):
    """One policy: its name, its spec as it was applied, its status."""

    name: str
    spec: dict[str, Any]
    status: PolicyStatus = msgspec.field(default_factory=PolicyStatus)


class NamespacePolicies(msgspec.Struct, frozen=True):
    """The policies of one namespace, by name."""

    policies: list[StoredPolicy]
    version: int = _VERSION


def write_policies(policies: NamespacePolicies) -> bytes:
    """As it lies in the store: JSON."""
    return msgspec.json.encode(policies)


def read_policies(data: bytes) -> NamespacePolicies:
    """Raises InvalidPolicies."""
    if len(data) > MOST_BYTES:
        raise InvalidPolicies(f"the policies have more than {MOST_BYTES} bytes")
    try:
        read = msgspec.json.decode(data, type=NamespacePolicies)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidPolicies(f"the policies cannot be read: {error}") from None
    if read.version != _VERSION:
        raise InvalidPolicies(f"the policies have version {read.version}; this fleetprof reads {_VERSION}")
    return read
