"""AdmissionReview in, AdmissionReview out: what the API server asks and how it is answered.

Guarantees: pure; a review that makes no sense is an InvalidReview that names the field. Source: admission.k8s.io/v1.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

API_VERSION: Final = "admission.k8s.io/v1"
MAX_WARNING: Final = 256
"""Kubernetes shows no more of a warning."""


class InvalidReview(ValueError):
    """The body is no AdmissionReview; the message names the field and the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """What is to be admitted. `old_object` is {} but for an update."""

    uid: str
    operation: str
    namespace: str
    resource: str
    username: str
    object: Mapping[str, Any]
    old_object: Mapping[str, Any]


def read_review(body: bytes) -> AdmissionRequest:
    """The request of a review. Raises InvalidReview."""
    try:
        review = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise InvalidReview(f"the body is not JSON: {problem}") from None
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        raise InvalidReview("kind: must be AdmissionReview")
    if review.get("apiVersion") != API_VERSION:
        raise InvalidReview(f"apiVersion: must be {API_VERSION}, got {str(review.get('apiVersion'))[:80]!r}")
    request = _read_object(review, "request")
    return AdmissionRequest(
        uid=_read_text(request, "uid"),
        operation=_read_text(request, "operation"),
        namespace=str(request.get("namespace") or ""),
        resource=_read_text(_read_object(request, "resource"), "resource"),
        username=str(_read_object(request, "userInfo").get("username") or ""),
        object=_read_object(request, "object"),
        old_object=request["oldObject"] if isinstance(request.get("oldObject"), dict) else {},
    )


def allow(uid: str, patch: Sequence[Mapping[str, Any]] = (), warnings: Sequence[str] = ()) -> dict[str, Any]:
    """The review that lets the object pass, changed by `patch`."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(patch)).decode()}
    if warnings:
        response["warnings"] = [_shorten(text) for text in warnings]
    return _make_review(response)


def refuse(uid: str, message: str) -> dict[str, Any]:
    """The review that refuses the object with this sentence."""
    status = {"status": "Failure", "reason": "Invalid", "code": 422, "message": message}
    return _make_review({"uid": uid, "allowed": False, "status": status})


def _make_review(response: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


def _shorten(text: str) -> str:
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain if len(plain) <= MAX_WARNING else plain[: MAX_WARNING - 1] + "…"


def _read_object(document: Mapping[str, Any], field: str) -> dict[str, Any]:
    value = document.get(field)
    if not isinstance(value, dict):
        raise InvalidReview(f"{field}: must be an object")
    return value


def _read_text(document: Mapping[str, Any], field: str) -> str:
    value = document.get(field)
    if not isinstance(value, str) or not value:
        raise InvalidReview(f"{field}: must be a text")
    return value
