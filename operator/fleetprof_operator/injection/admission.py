"""AdmissionReview in, AdmissionReview out: what the API server asks and how it is answered.

Guarantees: pure; a review that makes no sense is an InvalidReview that names the field. The objects in it stay text
until somebody asks for them: what a tenant wrote costs nothing before its turn. Source: admission.k8s.io/v1.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from fleetprof_api.errors import FleetprofError

API_VERSION: Final = "admission.k8s.io/v1"
MAX_WARNING: Final = 256
"""Kubernetes shows no more of a warning."""
# A namespace becomes part of a path of the API.
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_UID_IN_HEAD: Final = re.compile(rb'"uid"\s*:\s*"([0-9A-Za-z-]{1,64})"')
_NAMESPACE_IN_HEAD: Final = re.compile(rb'"namespace"\s*:\s*"([a-z0-9-]{1,63})"')


class InvalidReview(FleetprofError, ValueError):
    """The body is no AdmissionReview; the message names the field and the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """An object to be admitted. The objects are JSON texts; `old_object_json` is `{}` but for an update."""

    uid: str
    operation: str
    namespace: str
    resource: str
    username: str
    object_json: bytes
    old_object_json: bytes

    def read_object(self) -> dict[str, Any]:
        """The object. Raises InvalidReview."""
        return _decode(self.object_json, "object")

    def read_old_object(self) -> dict[str, Any]:
        """The object before an update. Raises InvalidReview."""
        return _decode(self.old_object_json, "oldObject")


def read_review(body: bytes) -> AdmissionRequest:
    """The request of a review. Raises InvalidReview."""
    review = _split(body, "the body")
    if _text(review, "kind") != "AdmissionReview":
        raise InvalidReview("kind: must be AdmissionReview")
    if _text(review, "apiVersion") != API_VERSION:
        raise InvalidReview(f"apiVersion: must be {API_VERSION}, got {str(_text(review, 'apiVersion'))[:80]!r}")
    request = _split(_raw_object(review, "request"), "request")
    old = request.get("oldObject", b"{}")
    return AdmissionRequest(
        uid=_require_text(request, "uid"),
        operation=_require_text(request, "operation"),
        namespace=_read_namespace(request),
        resource=_require_text(_split(_raw_object(request, "resource"), "resource"), "resource"),
        username=_text(_split(_raw_object(request, "userInfo"), "userInfo"), "username") or "",
        object_json=_raw_object(request, "object"),
        old_object_json=old if old.startswith(b"{") else b"{}",
    )


def read_head(head: bytes) -> tuple[str, str]:
    """(uid, namespace) as the first bytes of a review name them, each "" when they do not.

    The API server writes both before everything that a user can choose. For whom to serve and how to answer when the
    rest is not read; whoever decides by the namespace takes it from `read_review`.
    """
    uid, namespace = _UID_IN_HEAD.search(head), _NAMESPACE_IN_HEAD.search(head)
    return uid[1].decode() if uid else "", namespace[1].decode() if namespace else ""


def allow(uid: str, patch: Sequence[Mapping[str, Any]] = (), warnings: Sequence[str] = ()) -> dict[str, Any]:
    """The review that lets the object pass, changed by `patch`."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(patch)).decode()}
    if warnings:
        response["warnings"] = [_shorten(text) for text in warnings]
    return _make_review(response)


def refuse(uid: str, message: str, *, reason: str = "Invalid", code: int = 422) -> dict[str, Any]:
    """The review that refuses the object with this sentence."""
    status = {"status": "Failure", "reason": reason, "code": code, "message": message}
    return _make_review({"uid": uid, "allowed": False, "status": status})


def _make_review(response: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


def _shorten(text: str) -> str:
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain if len(plain) <= MAX_WARNING else plain[: MAX_WARNING - 1] + "…"


def _split(text: bytes, field: str) -> dict[str, bytes]:
    """The fields of an object, each as its undecoded JSON. Raises InvalidReview; `field` names the object in it."""
    try:
        found = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        if field == "the body":
            raise InvalidReview("kind: must be AdmissionReview") from None
        raise InvalidReview(f"{field}: must be an object") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        raise InvalidReview(f"{field} is not JSON: {problem}") from None
    return {name: bytes(value).strip() for name, value in found.items()}


def _decode(text: bytes, field: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = msgspec.json.decode(text, type=dict)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        raise InvalidReview(f"{field} is not JSON: {problem}") from None
    return found


def _raw_object(document: Mapping[str, bytes], field: str) -> bytes:
    value = document.get(field, b"")
    if not value.startswith(b"{"):
        raise InvalidReview(f"{field}: must be an object")
    return value


def _text(document: Mapping[str, bytes], field: str) -> str | None:
    try:
        return msgspec.json.decode(document.get(field, b"null"), type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _require_text(document: Mapping[str, bytes], field: str) -> str:
    value = _text(document, field)
    if not value:
        raise InvalidReview(f"{field}: must be a text")
    return value


def _read_namespace(request: Mapping[str, bytes]) -> str:
    namespace = _text(request, "namespace") or ""
    if namespace and not _NAMESPACE.fullmatch(namespace):
        raise InvalidReview(f"namespace: must be a DNS label (a-z 0-9 -), got {namespace[:80]!r}")
    return namespace
