"""The conditions of a request, beyond its form, for this hub to take it; and the name and id that it gets.

Guarantees: pure but for the random id; what this version cannot do is refused by name, never ignored: a user who asks
for redaction must not find unredacted traces in the store.
"""

import re
import secrets
import uuid
from collections.abc import Mapping
from typing import Final

from fleetprof_api import keys
from fleetprof_api.errors import FleetprofError
from fleetprof_api.request import InvalidRequest, ProfileRequest

from fleetprof_operator.hub.bounds import BEYOND, find_beyond
from fleetprof_operator.hub.planning.places import find_crowd
from fleetprof_operator.hub.settings import HubSettings

TOO_MANY: Final = "TooManyCaptures"
ALREADY: Final = "AlreadyCapturing"
QUEUED: Final = "Queued"
"""The reason why the target is not resolved while a request waits for its turn."""
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class CaptureRefused(FleetprofError):
    """The hub does not begin this capture; `reason` is that of a Succeeded condition, the message says what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class UnknownCapture(FleetprofError, LookupError):
    """No capture has this uid or name, or several have the name."""


def choose_namespace(request: ProfileRequest, namespace: str) -> str:
    """The namespace to capture in. Raises InvalidRequest when the request names another one or it is unusable."""
    named = request.metadata.namespace
    if named and namespace and named != namespace:
        raise InvalidRequest(
            [f"metadata.namespace: is {named!r}, but the request was sent for namespace {namespace!r}; make them agree"]
        )
    chosen = named or namespace or "default"
    if not _NAMESPACE.fullmatch(chosen):
        raise InvalidRequest([f"metadata.namespace: must be a DNS label (a-z 0-9 -), got {chosen[:80]!r}"])
    keys.request_prefix(chosen, "uid")
    return chosen


def find_unsupported(request: ProfileRequest) -> list[str]:
    """One sentence per field that asks for what this version does not do."""
    spec = request.spec
    problems = []
    if spec.redact:
        problems.append("spec.redact: this version cannot redact; leave it out, or do not capture what must not leave")
    if spec.storage is not None and spec.storage.profile is not None:
        problems.append("spec.storage.profile: this version has its own store only; leave it out")
    return problems


def check_crowd(waiting: Mapping[str, int], namespace: str, settings: HubSettings) -> None:
    """One more request in `namespace`, where so many wait in each. Raises CaptureRefused."""
    if problem := find_crowd(waiting, namespace, settings.max_waiting, settings.max_waiting_per_namespace):
        raise CaptureRefused(TOO_MANY, f"{problem}; cancel some, or wait for their end")


def check_bounds(request: ProfileRequest, namespace: str, settings: HubSettings) -> None:
    """Raises CaptureRefused for a request that asks for more than the administrator allows."""
    if problems := find_beyond(request.spec, settings.bounds.of(namespace), settings.bounds.contact):
        raise CaptureRefused(BEYOND, "; ".join(problems))


def find_suspension(request: ProfileRequest) -> list[str]:
    """The sentence about a suspended request where nothing could resume it."""
    problem = "spec.suspend: must be false here: nothing can resume a suspended request outside Kubernetes"
    return [problem] if request.spec.suspend else []


def find_stacks(request: ProfileRequest) -> list[str]:
    """The sentence about a request for stacks where people ask the hub itself."""
    problem = "spec.capture.stacks: a request in a cluster asks for them; here it is `fleetprof stacks JOB`"
    return [problem] if request.spec.capture is not None else []


def name_capture(request: ProfileRequest) -> str:
    """The request's name, made from generateName where there is none."""
    metadata = request.metadata
    return metadata.name or f"{metadata.generate_name or 'capture-'}{secrets.token_hex(3)}"


def make_uid() -> str:
    """A new id: as Kubernetes makes them, and usable as capture id, trace id and part of a key."""
    return str(uuid.uuid4())
