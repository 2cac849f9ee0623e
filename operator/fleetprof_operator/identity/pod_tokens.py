"""The claims that a service account token needs to be taken for a pod's: shared by both ways to check one.

Guarantees: pure; a token that is not bound to a pod is nobody's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fleetprof_operator.hub.access.authentication import Principal

_ACCOUNT_PREFIX: Final = "system:serviceaccount:"
_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
MAX_TOKEN_CHARACTERS: Final = 16 << 10
_LAST_YEAR: Final = 4e9  # in seconds: 2096


def read_review_user(user: Mapping[str, Any]) -> Principal | None:
    """The pod that a TokenReview's `status.user` names; None for everybody who is no pod."""
    extra = user.get("extra") or {}
    username = str(user.get("username") or "")
    parts = username.removeprefix(_ACCOUNT_PREFIX).split(":")
    if not username.startswith(_ACCOUNT_PREFIX) or len(parts) != 2:
        return None
    return _make_principal(parts[0], _only(extra.get(_POD_NAME)), _only(extra.get(_POD_UID)))


def read_claims(claims: Mapping[str, Any]) -> Principal | None:
    """The pod that a verified token's claims name; None when it is bound to none."""
    bound = claims.get("kubernetes.io")
    pod = bound.get("pod") if isinstance(bound, dict) else None
    if not isinstance(bound, dict) or not isinstance(pod, dict):
        return None
    return _make_principal(bound.get("namespace"), pod.get("name"), pod.get("uid"), read_expiry(claims))


def read_expiry(claims: Mapping[str, Any]) -> int:
    """The end of a token (Unix nanoseconds); 0 when it does not say so."""
    expiry = claims.get("exp")
    return int(expiry * 10**9) if isinstance(expiry, int | float) and 0 < expiry < _LAST_YEAR else 0


def _make_principal(namespace: object, pod_name: object, pod_uid: object, expires_unix_ns: int = 0) -> Principal | None:
    if not (isinstance(namespace, str) and isinstance(pod_name, str) and isinstance(pod_uid, str)):
        return None
    if not (namespace and pod_name and pod_uid):
        return None
    return Principal(namespace=namespace, pod_name=pod_name, pod_uid=pod_uid, expires_unix_ns=expires_unix_ns)


def _only(values: Sequence[str] | None) -> str:
    return values[0] if values and len(values) == 1 else ""
