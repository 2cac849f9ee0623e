"""The ProfileRequests that are there, as last seen: what the watch tells and everybody else reads.

Guarantees: one record per uid; whoever waits for a change of a record sees the newest.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fleetprof_api.ledger import Canceller
from fleetprof_api.pods import REQUESTED_BY_ANNOTATION
from fleetprof_api.request import ProfileRequest, parse_request

from fleetprof_operator.hub.waiting_line import Turn
from fleetprof_operator.kubernetes.cluster import Json
from fleetprof_operator.profilerequests.status import find_state, is_finished

PATH: Final = "/apis/fleetprof.io/v1alpha1"
PLURAL: Final = "profilerequests"
CANCEL_ANNOTATION: Final = "fleetprof.io/cancel"
"""Takes the capture back without deleting the request: what `fleetprof-operator release` sets before an uninstall."""
UNINSTALLED: Final = "Uninstalled"
"""The annotation's value then; any other is a user's."""
# The ledger says who asked, where somebody vouches for it; the note alone may be forged.
_NOT_KEPT: Final = ("kubectl.kubernetes.io/last-applied-configuration", REQUESTED_BY_ANNOTATION)


def request_path(namespace: str, name: str) -> str:
    """The path of one ProfileRequest."""
    return f"{PATH}/namespaces/{namespace}/{PLURAL}/{name}"


def find_turn(metadata: Mapping[str, Any]) -> Turn:
    """By which requests of a namespace come one after the other."""
    return str(metadata["creationTimestamp"]), str(metadata["name"])


def to_request(body: Mapping[str, Any]) -> ProfileRequest:
    """The typed request of an object, without what only Kubernetes needs of it. Raises InvalidRequest."""
    metadata = body["metadata"]
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in _NOT_KEPT}
    kept = {"name": metadata["name"], "namespace": metadata["namespace"], "annotations": annotations}
    return parse_request(
        {
            "apiVersion": body["apiVersion"],
            "kind": body["kind"],
            "metadata": kept | {"labels": dict(metadata.get("labels") or {})},
            "spec": body["spec"],
        }
    )


@dataclass(slots=True)
class Record:
    """One ProfileRequest; `changed` is set with each new `body`."""

    body: Json
    seen_since_s: float = field(default_factory=time.monotonic)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def metadata(self) -> Json:
        """The object's metadata."""
        metadata: Json = self.body["metadata"]
        return metadata

    @property
    def is_suspended(self) -> bool:
        """Tells whether it is held back."""
        return bool(self.body["spec"].get("suspend"))

    @property
    def is_withdrawn(self) -> bool:
        """Tells whether it is being deleted, or its capture is to be cancelled."""
        return "deletionTimestamp" in self.metadata or CANCEL_ANNOTATION in (self.metadata.get("annotations") or {})

    @property
    def canceller(self) -> Canceller:
        """The one who takes it back, where somebody does."""
        value = (self.metadata.get("annotations") or {}).get(CANCEL_ANNOTATION)
        return Canceller.UNINSTALL if value == UNINSTALLED else Canceller.USER

    async def wait(self) -> None:
        """Returns when there is a newer body than at the call."""
        self.changed.clear()
        await self.changed.wait()


class Records:
    """The records of every ProfileRequest, by uid."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def note(self, body: Json) -> Record:
        """Takes the newest body of a request."""
        record = self._records.setdefault(body["metadata"]["uid"], Record(body))
        record.body = body
        record.changed.set()
        return record

    def forget(self, uid: str) -> None:
        """The request is gone."""
        self._records.pop(uid, None)

    def find(self, uid: str) -> Record | None:
        """The record of a request."""
        return self._records.get(uid)

    def count_age_s(self) -> float:
        """For how long the request has been known that waits longest for its state; 0: each has one."""
        without = [r.seen_since_s for r in self._records.values() if not find_state(r.body.get("status"))]
        return time.monotonic() - min(without) if without else 0.0

    def count_states(self) -> Counter[str]:
        """The number of requests by state: the reason of Succeeded, of those that have not ended."""
        running = (r.body.get("status") for r in self._records.values() if not is_finished(r.body.get("status")))
        return Counter(find_state(status) or "New" for status in running)
