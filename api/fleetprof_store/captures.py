"""Captures as the object store holds them: what can be told and read when no hub runs.

Guarantees: reads `v1/<namespace>/<uid>/` only; a damaged ledger is left out of lists, never an error for the others.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec
from fleetprof_api import keys
from fleetprof_api.errors import FleetprofError
from fleetprof_api.ledger import Ledger

from fleetprof_store.base import NotFound, Store

LATEST: Final = "latest"
_MOST_NAMED: Final = 8
_TIME_OF_CAPTURE: Final = re.compile(r"-\d{4}-\d{6}$")


class NoSuchCapture(FleetprofError, LookupError):
    """No capture, or more than one, is meant; the message says which there are, `next_step` what to give instead."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message)
        self.next_step = next_step


@dataclass(frozen=True, slots=True)
class StoredCapture:
    """One capture's ledger, and whether its report is there."""

    ledger: Ledger
    has_report: bool


def read_captures(store: Store) -> list[StoredCapture]:
    """All captures, the latest first. Raises StoreError."""
    return sorted(_read(store), key=lambda capture: (-capture.ledger.submitted_unix_ns, capture.ledger.uid))


def find_capture(captures: Sequence[StoredCapture], reference: str) -> StoredCapture:
    """The one that is meant: uid, name, a job's latest, the beginning of a uid, or `latest`. Raises NoSuchCapture.

    `captures` are the latest first. The job is that of `fleetprof capture`, which names its captures JOB-MMDD-hhmmss.
    """
    if reference == LATEST and captures:
        return captures[0]
    found = [capture for capture in captures if reference in (capture.ledger.uid, capture.ledger.name)]
    if not found:
        of_job = [capture for capture in captures if _TIME_OF_CAPTURE.sub("", capture.ledger.name) == reference]
        same_namespace = len({capture.ledger.namespace for capture in of_job}) == 1
        found = of_job[:1] if same_namespace else of_job
    if not found:
        found = [capture for capture in captures if capture.ledger.uid.startswith(reference)]
    if len(found) == 1:
        return found[0]
    if not found and not captures:
        problem = "yet" if reference == LATEST else f"{reference}, nor any other"
        raise NoSuchCapture(f"there is no capture {problem}", "take one while a job runs: fleetprof capture")
    if not found:
        raise NoSuchCapture(f"there is no capture {reference}", "see what there is: fleetprof list")
    named = ", ".join(map(_describe, found[:_MOST_NAMED]))
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    raise NoSuchCapture(f"{reference} may be any of {named}{more}", "name one by its whole uid")


def _describe(capture: StoredCapture) -> str:
    """The mark that tells captures of one name apart: uid and when it was asked for."""
    ledger = capture.ledger
    submission_time = ""
    if ledger.submitted_unix_ns > 0:
        submission_time = datetime.fromtimestamp(ledger.submitted_unix_ns / 1e9, UTC).strftime(
            ", %Y-%m-%d %H:%M:%S UTC"
        )
    return f"{ledger.uid} ({ledger.namespace}/{ledger.name}{submission_time})"


def _read(store: Store) -> Iterator[StoredCapture]:
    by_request: dict[tuple[str, str], set[str]] = {}
    for item in store.list(f"{keys.MAJOR}/"):
        try:
            namespace, uid, rest = keys.split_request_prefix(item.key)
        except ValueError:
            continue
        by_request.setdefault((namespace, uid), set()).add(rest)
    for (namespace, uid), names in by_request.items():
        if "ledger.json" not in names:
            continue
        try:
            ledger = msgspec.json.decode(store.get(keys.ledger_key(namespace, uid)), type=Ledger)
        except (NotFound, msgspec.MsgspecError):
            continue
        yield StoredCapture(ledger, "report.json" in names)
