"""Captures asked for in the cluster, in the person's own name, so that the API server decides and notes who asked.

Guarantees: never with the service's own rights: a call carries the person's token, or their user and groups; before
anything is made, the API server has tried it (`dryRun=All`); a cancel reaches the request with that uid and no other.
"""

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, Literal

from fastapi import Request
from fleetprof_api.plain_text import make_printable
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable

from fleetprof_webui.access.cluster import ClusterAccess
from fleetprof_webui.access.reviews import Reviews
from fleetprof_webui.access.subject import Subject
from fleetprof_webui.access.viewer import Viewer
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.kubernetes_api import Json, KubernetesApi, requests_path
from fleetprof_webui.models.requests import CaptureAnswer, CaptureCheck
from fleetprof_webui.service import CaptureCallRefused, CaptureRequests
from fleetprof_webui.wanted import read_capture

CANCEL_ANNOTATION: Final = "fleetprof.io/cancel"
_BY_HAND: Final = "save the YAML and run: kubectl create -f REQUEST.yaml"


class ClusterCaptures:
    """Doors for people. `writes`: whether their token is passed on, or they are impersonated."""

    def __init__(
        self,
        api: KubernetesApi,
        reviews: Reviews,
        access: ClusterAccess,
        catalog: Catalog,
        writes: Literal["token", "impersonate"],
    ) -> None:
        self._api = api
        self._reviews = reviews
        self._access = access
        self._catalog = catalog
        self._writes = writes

    def open_door(self, request: Request, viewer: Viewer) -> CaptureRequests | None:
        """For the person who sent this request; None where their token is not here any more."""
        namespace = str(request.path_params.get("namespace", ""))
        # Who came with a Kubernetes token needs nobody to stand in for them.
        if self._writes == "impersonate" and viewer.mode != "kubectl":
            return _Door(self._api, self._reviews, self._catalog, viewer, None, namespace)
        token = self._access.find_token(request)
        return _Door(self._api, self._reviews, self._catalog, viewer, token, namespace) if token else None


def _read_document(yaml: str, namespace: str) -> tuple[str, dict[str, Any]]:
    """The namespace, "" where none is named, and the document. Raises CaptureCallRefused."""
    request = read_capture(yaml)
    return namespace or request.metadata.namespace or "", json.loads(request.to_json())


class _Door:
    """`namespace`: that of the request's address."""

    def __init__(
        self,
        api: KubernetesApi,
        reviews: Reviews,
        catalog: Catalog,
        viewer: Viewer,
        token: str | None,
        namespace: str,
    ) -> None:
        self._api = api
        self._reviews = reviews
        self._catalog = catalog
        self._viewer = viewer
        self._token = token
        self._namespace = namespace

    async def check(self, yaml: str, namespace: str) -> CaptureCheck:
        """The API server's dry run. Raises CaptureCallRefused."""
        place, _ = await self._try(yaml, namespace)
        return CaptureCheck(
            namespace=place, checked_by="API server", message=f"the API server would create it in {place}"
        )

    async def submit(self, yaml: str, namespace: str) -> CaptureAnswer:
        """Creates the ProfileRequest. Raises CaptureCallRefused."""
        place, document = await self._try(yaml, namespace)
        made = await self._call("POST", requests_path(place), document)
        metadata = made["metadata"]
        name = make_printable(str(metadata["name"]))
        return CaptureAnswer(namespace=place, uid=str(metadata["uid"]), state="New", message=f"{name} is created")

    async def cancel(self, uid: str) -> CaptureAnswer:
        """Asks the operator to take it back, as `kubectl fleetprof cancel` does. Raises CaptureCallRefused."""
        entry = await asyncio.to_thread(self._catalog.request, self._namespace, uid)
        if entry is None:
            raise CaptureCallRefused("this request is not known yet", "try again in a few seconds")
        change = {"metadata": {"uid": uid, "annotations": {CANCEL_ANNOTATION: "true"}}}
        await self._call("PATCH", requests_path(self._namespace, entry.request.name), change)
        return CaptureAnswer(
            namespace=self._namespace, uid=uid, state=entry.request.state, message="it is being cancelled"
        )

    async def _try(self, yaml: str, namespace: str) -> tuple[str, Json]:
        """The namespace and the document of a request that passed the dry run."""
        # Who may ask for nothing there has nothing read; where the call names no namespace, the text has to.
        person = Subject(self._viewer.name, self._viewer.groups)
        if namespace and not await self._reviews.find_permitted(person, "create", [namespace]):
            raise CaptureCallRefused(
                f"you may not create a ProfileRequest in {make_printable(namespace[:63])}", _BY_HAND
            )
        place, document = await asyncio.to_thread(_read_document, yaml, namespace)
        if not place:
            raise CaptureCallRefused("the request names no namespace", "set metadata.namespace")
        document["metadata"]["namespace"] = place
        await self._call("POST", requests_path(place), document, {"dryRun": "All"})
        return place, document

    async def _call(self, method: str, path: str, body: Json, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        try:
            if self._token is not None:
                return await self._api.call_as_bearer(self._token, method, path, body, query)
            return await self._api.call_as_person(self._viewer.name, self._viewer.groups, method, path, body, query)
        except ApiUnreachable:
            raise CaptureCallRefused("the Kubernetes API server does not answer", _BY_HAND) from None
        except ApiRefused as error:
            if error.status == HTTPStatus.UNAUTHORIZED:
                raise CaptureCallRefused(
                    "the API server does not accept your token", f"see /whoami, or {_BY_HAND}"
                ) from None
            raise CaptureCallRefused(f"the API server refuses: {make_printable(str(error))}", _BY_HAND) from None
