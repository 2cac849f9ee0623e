"""Who asked for a capture: noted on our own kinds by admission, from what the API server says of the caller.

Guarantees: pure; what a user writes there is replaced; once noted it stays.
"""

from collections.abc import Mapping
from typing import Any

from fleetprof_api.pods import REQUESTED_BY_ANNOTATION

from fleetprof_operator.injection.admission import AdmissionRequest, allow, refuse
from fleetprof_operator.injection.pods.json_patch import make_patch


def note_requester(request: AdmissionRequest) -> dict[str, Any]:
    """The answer for an object of ours that is being made or changed. Raises InvalidReview."""
    if request.operation == "CREATE":
        if not request.username:
            return refuse(request.uid, "userInfo.username: is empty, so nobody could be noted as the requester")
        return allow(request.uid, _set(request.read_object(), request.username))
    if request.operation != "UPDATE":
        return allow(request.uid)
    document = request.read_object()
    noted, wanted = _read(request.read_old_object()), _read(document)
    if wanted is not None and wanted != noted:
        return refuse(
            request.uid,
            f"metadata.annotations[{REQUESTED_BY_ANNOTATION}]: says who made the object, and cannot be changed",
        )
    return allow(request.uid, _set(document, noted) if noted is not None else [])


def _read(document: Mapping[str, Any]) -> Any:
    return ((document.get("metadata") or {}).get("annotations") or {}).get(REQUESTED_BY_ANNOTATION)


def _set(document: Mapping[str, Any], username: str) -> list[dict[str, Any]]:
    metadata = document.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), REQUESTED_BY_ANNOTATION: username}
    return make_patch(document, {**document, "metadata": {**metadata, "annotations": annotations}})
