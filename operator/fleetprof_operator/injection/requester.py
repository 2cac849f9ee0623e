"""Notes at admission who made a request and who wrote a policy, as the API server names the caller.

Guarantees: pure; what a user writes there is replaced; a request's notes stay once they are made, and a policy's goes
with its spec.
"""

from collections.abc import Mapping
from typing import Any

from fleetprof_api.pods import CHANGED_BY_ANNOTATION, POLICY_AUTHOR_ANNOTATION, REQUESTED_BY_ANNOTATION

from fleetprof_operator.injection.admission import AdmissionRequest, allow, refuse
from fleetprof_operator.injection.pods.json_patch import make_patch


def note_caller(request: AdmissionRequest) -> dict[str, Any]:
    """The answer for an object of ours that is being made or changed. Raises InvalidReview."""
    if request.operation not in ("CREATE", "UPDATE"):
        return allow(request.uid)
    if not request.username:
        return refuse(request.uid, "userInfo.username: is empty, so nobody could be noted as the requester")
    return _note_author(request) if request.resource == "profilepolicies" else _note_requester(request)


def _note_requester(request: AdmissionRequest) -> dict[str, Any]:
    document = request.read_object()
    if request.operation == "CREATE":
        return allow(request.uid, _set(document, {REQUESTED_BY_ANNOTATION: request.username}))
    before, wanted = _read(request.read_old_object()), _read(document)
    notes = (REQUESTED_BY_ANNOTATION, POLICY_AUTHOR_ANNOTATION)
    for note in notes:
        if wanted.get(note) not in (None, before.get(note)):
            message = f"metadata.annotations[{note}]: says who made the object, and cannot be changed"
            return refuse(request.uid, message)
    return allow(request.uid, _set(document, {note: before[note] for note in notes if note in before}))


def _note_author(request: AdmissionRequest) -> dict[str, Any]:
    document = request.read_object()
    author: Any = request.username
    if request.operation == "UPDATE":
        before = request.read_old_object()
        if document.get("spec") == before.get("spec"):
            author = _read(before).get(CHANGED_BY_ANNOTATION)
    return allow(request.uid, _set(document, {CHANGED_BY_ANNOTATION: author}))


def _read(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return (document.get("metadata") or {}).get("annotations") or {}


def _set(document: Mapping[str, Any], notes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The patch that makes the object say so; None takes a note away."""
    merged = {**_read(document), **notes}
    annotations = {name: value for name, value in merged.items() if value is not None}
    if annotations == _read(document):
        return []
    return make_patch(
        document, {**document, "metadata": {**(document.get("metadata") or {}), "annotations": annotations}}
    )
