"""The Kubernetes API as this operator uses it: JSON in, JSON out, over the official client's connections.

The typed models are left aside: pods are read as metadata only (a tenth of the memory), and custom resources have none.

Guarantees: every refusal of the API is an `ApiRefused` with its status and sentence; what did not arrive at all is an
`ApiUnreachable`; lists are read in pages; a watch ends when the server ends it and is for the caller to begin again.
"""

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Self

import aiohttp
from fleetprof_api.process.backoff import draw_delay_s
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_api.process.version import VERSION
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

Json = dict[str, Any]

_PAGE: Final = 500
_CALL_S: Final = 30
_WATCH_S: Final = 290
_METADATA: Final = "application/json;as=PartialObjectMetadata{kind};g=meta.k8s.io;v=v1"


def make_client(configuration: Configuration, program: str) -> ApiClient:
    """Connections under a program's name, which audit logs and `managedFields` show."""
    client = ApiClient(configuration)
    client.user_agent = f"{program}/{VERSION}"
    return client


class Cluster:
    """All paths are those of the API, e.g. `/api/v1/namespaces/team/pods`.

    Calls share a pool of connections, in which each waits for 30 s at most. A watch, which lasts for minutes, has a
    connection of its own, so that no number of watches keeps a call waiting.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._watching: ApiClient | None = None

    @classmethod
    async def connect(cls) -> Self:
        """With the pod's service account, else with KUBECONFIG. Raises ConfigException when there is neither."""
        configuration = Configuration()
        try:
            config.load_incluster_config(configuration)
        except config.ConfigException:
            await config.load_kube_config(client_configuration=configuration)
        return cls(make_client(configuration, "fleetprof-operator"))

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()
        if self._watching is not None:
            await self._watching.close()

    def apart(self) -> "Cluster":
        """The same API with the same credentials over connections of its own, which is to be closed too."""
        return Cluster(_copy_client(self._client, pool=1))

    async def get(self, path: str, *, metadata_only: bool = False, headers: Mapping[str, str] | None = None) -> Json:
        """One object. `headers`: for who answers behind the API server's proxy. Raises ApiRefused, ApiUnreachable."""
        accept = _METADATA.format(kind="") if metadata_only else ""
        return await self._call("GET", path, accept=accept, more=headers)

    async def create(self, path: str, body: Json) -> Json:
        """A new object. Raises ApiRefused (409 when it is there), ApiUnreachable."""
        return await self._call("POST", path, body=body)

    async def merge(self, path: str, body: Json) -> Json:
        """A merge patch. Raises ApiRefused, ApiUnreachable."""
        return await self._call("PATCH", path, body=body, content="application/merge-patch+json")

    async def patch(self, path: str, operations: Sequence[Json]) -> Json:
        """A JSON patch (RFC 6902). Raises ApiRefused (422 when a `test` of it fails), ApiUnreachable."""
        return await self._call("PATCH", path, body=list(operations), content="application/json-patch+json")

    async def delete(self, path: str, options: Json | None = None) -> None:
        """Deletes an object, or those of a collection's path. Raises ApiRefused, ApiUnreachable."""
        await self._call("DELETE", path, body=options or {"propagationPolicy": "Background"})

    async def list(
        self, path: str, query: Mapping[str, str] | None = None, *, metadata_only: bool = False
    ) -> tuple[list[Json], str]:
        """All objects and the resource version that a watch goes on from. Raises ApiRefused, ApiUnreachable."""
        found: list[Json] = []
        version = ""
        async for items, version in self.pages(path, query, metadata_only=metadata_only):  # noqa: B007
            found += items
        return found, version

    async def pages(
        self, path: str, query: Mapping[str, str] | None = None, *, metadata_only: bool = False
    ) -> AsyncIterator[tuple[Sequence[Json], str]]:
        """The same a page at a time, for lists that are not to be held whole. Raises ApiRefused, ApiUnreachable."""
        accept = _METADATA.format(kind="List") if metadata_only else ""
        more = ""
        while True:
            parameters = {**(query or {}), "limit": str(_PAGE)} | ({"continue": more} if more else {})
            page = await self._call("GET", path, query=parameters, accept=accept)
            yield page.get("items") or [], page["metadata"]["resourceVersion"]
            more = page["metadata"].get("continue", "")
            if not more:
                return

    async def watch(
        self, path: str, query: Mapping[str, str], version: str, *, metadata_only: bool = False
    ) -> AsyncIterator[tuple[str, Json]]:
        """(ADDED, MODIFIED, DELETED or BOOKMARK; object) until the server ends it.

        Raises ApiRefused, ApiUnreachable.
        """
        parameters = {
            **query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(_WATCH_S),
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CALL_S, sock_read=_WATCH_S + _CALL_S)
        accept = _METADATA.format(kind="") if metadata_only else ""
        if self._watching is None:
            self._watching = _copy_client(self._client, pool=0)  # aiohttp: no limit
        response = await self._send("GET", path, query=parameters, accept=accept, bounds=timeout, client=self._watching)
        try:
            while line := await response.content.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise _refusal(event["object"].get("code", 500), event["object"])
                yield event["type"], event["object"]
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise ApiUnreachable(f"the watch of {path} broke: {_say(error)}") from None
        finally:
            response.close()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | Sequence[Json] | None = None,
        content: str = "application/json",
        accept: str = "",
        more: Mapping[str, str] | None = None,
    ) -> Json:
        response = await self._send(method, path, query=query, body=body, content=content, accept=accept, more=more)
        try:
            answer: Json = await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise ApiUnreachable(f"{method} {path} broke: {_say(error)}") from None
        return answer

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | Sequence[Json] | None = None,
        content: str = "application/json",
        accept: str = "",
        more: Mapping[str, str] | None = None,
        bounds: aiohttp.ClientTimeout | None = None,
        client: ApiClient | None = None,
    ) -> aiohttp.ClientResponse:
        """The response, whose status is good and whose body is not read yet."""
        # The keys of the issuer come as a type of their own.
        headers = {"Content-Type": content, "Accept": accept or "application/json, */*;q=0.5", **(more or {})}
        parameters = list((query or {}).items())
        client = client or self._client
        method, url, headers, sent, _ = await client.param_serialize(
            method, path, query_params=parameters, header_params=headers, body=body, auth_settings=["BearerToken"]
        )
        try:
            answer = await client.rest_client.request(
                method,
                url,
                headers=headers,
                body=sent,
                _request_timeout=bounds or aiohttp.ClientTimeout(total=_CALL_S),
            )
            response: aiohttp.ClientResponse = answer.response
            if response.status >= 400:
                raise _refusal(response.status, await _read_error(response))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnreachable(f"{method} {path}: {_say(error)}") from None
        return response


async def wait_to_try_again(tries: int) -> None:
    """Waits longer with every failed try: 0.5 s at most, doubling, to 30 s."""
    await asyncio.sleep(draw_delay_s(tries, 0.5, 30.0))


def _copy_client(client: ApiClient, *, pool: int) -> ApiClient:
    """Another client of the same configuration, whose token goes on being read anew; `pool`: its most connections."""
    configuration = copy.copy(client.configuration)
    configuration.connection_pool_maxsize = pool
    made = ApiClient(configuration)
    made.default_headers = dict(client.default_headers)  # the program's name, and in whose name it asks
    return made


async def _read_error(response: aiohttp.ClientResponse) -> Json:
    text = await response.text(errors="replace")
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    return document if isinstance(document, dict) else {"message": text[:500]}


def _refusal(status: int, document: Json) -> ApiRefused:
    return ApiRefused(
        int(status), str(document.get("reason") or ""), str(document.get("message") or f"HTTP status {status}")[:1000]
    )


def _say(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
