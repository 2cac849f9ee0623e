"""The Kubernetes API as this service uses it: reviews in its own name, all else in the name of a person.

Guarantees: a call carries either the service's own token, or a person's, or the service's with the person's user and
groups to be impersonated, both of them always; a redirect is not followed; no proxy of the environment is used; every
refusal of the API is an ApiRefused with its status and sentence.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

Json = dict[str, Any]
REQUESTS_GROUP: Final = "fleetprof.io"
REQUESTS_PLURAL: Final = "profilerequests"
AUTHENTICATED: Final = "system:authenticated"
"""The group that the API server puts everybody in whom it knows."""
SELF_REVIEW_PATH: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
SELF_REVIEW: Final[Json] = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

_CALL_S: Final = 15.0
_MOST_CONNECTIONS: Final = 64
_MOST_MESSAGE: Final = 1000


class KubernetesApi:
    """One connection pool. `token_file` is read anew for each call, because Kubernetes replaces what is in it."""

    def __init__(self, address: str, *, ca_file: Path | None, token_file: Path) -> None:
        self._token_file = token_file
        self._client = httpx2.AsyncClient(
            base_url=address,
            verify=ssl.create_default_context(cafile=str(ca_file) if ca_file else None),
            timeout=_CALL_S,
            limits=httpx2.Limits(max_connections=_MOST_CONNECTIONS),
            trust_env=False,
            follow_redirects=False,
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def ask(self, path: str, body: Json) -> Json:
        """A review in the service's own name. Raises ApiRefused, ApiUnreachable."""
        return await self._call("POST", path, body, [("Authorization", f"Bearer {self._read_token()}")])

    async def call_as_bearer(
        self, token: str, method: str, path: str, body: Json, query: Mapping[str, str] | None = None
    ) -> Json:
        """A call with a person's own token. Raises ApiRefused, ApiUnreachable."""
        return await self._call(method, path, body, [("Authorization", f"Bearer {token}")], query)

    async def call_as_person(
        self,
        user: str,
        groups: tuple[str, ...],
        method: str,
        path: str,
        body: Json,
        query: Mapping[str, str] | None = None,
    ) -> Json:
        """A call in which the service impersonates a person. Raises ApiRefused, ApiUnreachable."""
        for name in (user, *groups):
            if not name or name.startswith("system:") or not (name.isascii() and name.isprintable()):
                raise ApiRefused(403, "Forbidden", "this service impersonates no such user or group")
        headers = [("Authorization", f"Bearer {self._read_token()}"), ("Impersonate-User", user)]
        headers += [("Impersonate-Group", group) for group in (*groups, AUTHENTICATED)]
        return await self._call(method, path, body, headers, query)

    def _read_token(self) -> str:
        try:
            return self._token_file.read_text().strip()
        except OSError as error:
            raise ApiUnreachable(f"the service's own token cannot be read: {error}") from None

    async def _call(
        self,
        method: str,
        path: str,
        body: Json,
        headers: list[tuple[str, str]],
        query: Mapping[str, str] | None = None,
    ) -> Json:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            response = await self._client.request(
                method,
                path,
                json=body,
                params=query,
                headers=[*headers, ("Content-Type", kind), ("Accept", "application/json")],
            )
            answer = response.json()
        except httpx2.HTTPError as error:
            raise ApiUnreachable(f"{method} {path}: {type(error).__name__}") from None
        except ValueError:
            raise ApiUnreachable(f"{method} {path}: HTTP status {response.status_code} without JSON") from None
        if not isinstance(answer, dict):
            raise ApiUnreachable(f"{method} {path}: an answer that is no object")
        if response.is_success:
            return answer
        message = str(answer.get("message") or f"HTTP status {response.status_code}")
        raise ApiRefused(response.status_code, str(answer.get("reason") or ""), message[:_MOST_MESSAGE])


def requests_path(namespace: str, name: str = "") -> str:
    """The API's path of the ProfileRequests of a namespace, or of one; names are quoted."""
    path = f"/apis/{REQUESTS_GROUP}/v1alpha1/namespaces/{quote(namespace, safe='')}/{REQUESTS_PLURAL}"
    return f"{path}/{quote(name, safe='')}" if name else path
