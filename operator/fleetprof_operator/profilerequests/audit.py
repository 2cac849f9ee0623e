"""The audit log: who had what captured, when, and with what outcome; one line when a request is taken, one at its end.

The lines are among the operator's, with `"logger": "fleetprof.audit"`, whatever the log's level.
Guarantees: one JSON object per line; no field holds more than the request's own bounds allow.
"""

import logging
from typing import Any, Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.request import ProfileRequest

from fleetprof_operator.kubernetes.cluster import Json
from fleetprof_operator.log import AUDIT
from fleetprof_operator.profilerequests.status import Fact, count_ranks

_log: Final = logging.getLogger(AUDIT)
_MOST: Final = 500


def audit_taken(metadata: Json, requester: str, request: ProfileRequest) -> None:
    """The hub has the request now, and so has the store."""
    taken = request.spec.model_dump(mode="json", by_alias=True, exclude_none=True, include={"window", "capture"})
    collect = [str(each) for each in request.spec.collect]
    _tell("taken", metadata, requester, target=request.target_text(), collect=collect, **taken)


def audit_ended(metadata: Json, requester: str, target: str, end: Fact, capture: pb.CaptureStatus | None) -> None:
    """The request has ended; `capture` None: nothing was begun."""
    ranks = count_ranks(capture.ranks) if capture is not None else {}
    message = end.message[:_MOST]
    _tell("ended", metadata, requester, target=target, outcome=end.reason, message=message, ranks=ranks)


def _tell(what: str, metadata: Json, requester: str, **more: Any) -> None:
    about = {"requester": requester, "namespace": metadata["namespace"], "name": metadata["name"]}
    fields = {"audit": what, **about, "capture": metadata["uid"], "created": metadata.get("creationTimestamp"), **more}
    _log.info("capture %s", what, extra={"fields": fields})
