"""People in a cluster: recognised by a session or by the proxy, with the rights that the API server gives them.

Guarantees: rights are asked for with each request, and again and again while a stream runs; of one namespace `get` is
asked, for lists `list` in every namespace that has captures, telemetry or policies; what cannot be asked is not
permitted.
"""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Collection
from typing import Final, Literal

from fleetprof_api import keys
from fleetprof_api.plain_text import make_printable
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from starlette.requests import Request
from starlette.responses import Response

from fleetprof_webui.access.kubectl import NEXT_STEP, KubectlSignIn
from fleetprof_webui.access.proxy import Proxy, refuse_identity_headers
from fleetprof_webui.access.reviews import Reviews
from fleetprof_webui.access.sessions import Sessions
from fleetprof_webui.access.sign_in import SESSION_COOKIE, START_PATH, ProviderSignIn, forget
from fleetprof_webui.access.subject import Subject
from fleetprof_webui.access.viewer import SeenSubject, Viewer
from fleetprof_webui.kubernetes_api import SELF_REVIEW, SELF_REVIEW_PATH, Json, KubernetesApi

Writes = Literal["none", "token", "impersonate"]
"""In whose name captures are asked for: nobody's, with the person's own token, or as the person by impersonation."""

_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAMESPACE: Final = re.compile(rf"({_LABEL}\.)?{_LABEL}")

audit = logging.getLogger("fleetprof.audit")


class ClusterAccess:
    """Recognises people by `recognizer`, and by `kubectl` where that is there; one of them is.

    `shared`: other clusters' captures are in the store, of which rights on this cluster's namespaces show none.
    `list_namespaces` blocks; it gives those that have captures, telemetry or policies.
    """

    def __init__(
        self,
        recognizer: Sessions | Proxy | None,
        api: KubernetesApi,
        reviews: Reviews,
        list_namespaces: Callable[[], Collection[str]],
        *,
        writes: Writes,
        sign_in: ProviderSignIn | None = None,
        kubectl: KubectlSignIn | None = None,
        shared: bool = False,
    ) -> None:
        self._recognizer = recognizer
        self._sign_in = sign_in
        self._kubectl = kubectl
        self._shared = shared
        self._api = api
        self._reviews = reviews
        self._list_namespaces = list_namespaces
        self._writes = writes
        if recognizer is None:
            self._mode, self.next_step = "kubectl", NEXT_STEP
        elif isinstance(recognizer, Sessions):
            self._mode, self.next_step = "oidc", f"sign in: {START_PATH}"
        else:
            self._mode, self.next_step = "proxy", "come through the proxy that signs you in"

    async def identify(self, request: Request) -> Viewer | None:
        """The sender of this request, and the namespaces that they may read. Raises RequestRefused (400, 503)."""
        subject = await self._recognise(request)
        if subject is None:
            return None
        named = _find_named(request)
        if named is None:
            permitted = await self._find_permitted(subject, "list", None)
        else:
            permitted = await self._find_permitted(subject, "get", named)
        mode = "kubectl" if self.came_by_kubectl(request) else self._mode
        return Viewer(subject.name, subject.groups, mode, permitted, self._writes != "none")

    def name_caller(self, request: Request) -> str:
        """The person who sent the request, as far as that is known without asking anybody, else the address."""
        subject = self._kubectl.find(request) if self._kubectl is not None else None
        if subject is None and isinstance(self._recognizer, Proxy):
            subject = self._recognizer.recall(request)
        elif subject is None and isinstance(self._recognizer, Sessions):
            subject = self._recognizer.find(request.cookies.get(SESSION_COOKIE, ""))
        return f"person {subject.name}" if subject else f"address {request.client.host if request.client else ''}"

    def find_token(self, request: Request) -> str | None:
        """The token of a person who was recognised."""
        if self._kubectl is not None and (token := self._kubectl.read_token(request)):
            return token
        if self._recognizer is None:
            return None
        if isinstance(self._recognizer, Proxy):
            return self._recognizer.read_token(request)
        return self._recognizer.read_token(request.cookies.get(SESSION_COOKIE, ""))

    def came_by_kubectl(self, request: Request) -> bool:
        """Tells whether the person's token is the API server's own."""
        return self._kubectl is not None and self._kubectl.find(request) is not None

    async def see_subject(self, request: Request, viewer: Viewer) -> SeenSubject:
        """As the API server sees them: by their token, or impersonated. Where it knows neither, as we map them."""
        try:
            user_info = (await self._review_self(request, viewer))["status"]["userInfo"]
        except (ApiRefused, ApiUnreachable, KeyError) as error:
            message = make_printable(str(error))
            # Without writes the API server need not know the provider.
            problem = (
                "" if self._writes == "none" else f"the API server does not know you ({message}): it takes no capture"
            )
            return SeenSubject(viewer.name, viewer.groups, "this service's mapping", problem)
        name = str(user_info.get("username", ""))
        problem = "" if name == viewer.name else f"this service calls you {viewer.name}: its claim settings are wrong"
        return SeenSubject(name, tuple(user_info.get("groups") or ()), "API server", problem)

    def exchange(self, token: str, request: Request, response: Response) -> bool:
        """Opens a session for a one-time token of `kubectl fleetprof ui`; False where the token is worth nothing."""
        return self._kubectl is not None and self._kubectl.open(token, request, response)

    def end(self, request: Request, response: Response) -> None:
        """Ends the session of this request; a proxy's sessions are its own."""
        if self._kubectl is not None and self._kubectl.end(request, response):
            return
        if isinstance(self._recognizer, Sessions):
            subject = self._recognizer.end(request.cookies.get(SESSION_COOKIE, ""))
            if subject is not None:
                audit.info("%s", json.dumps({"signed_out": subject.name}))
            forget(response, SESSION_COOKIE)

    async def _review_self(self, request: Request, viewer: Viewer) -> Json:
        if self._writes == "impersonate" and viewer.mode != "kubectl":
            return await self._api.call_as_person(viewer.name, viewer.groups, "POST", SELF_REVIEW_PATH, SELF_REVIEW)
        return await self._api.call_as_bearer(self.find_token(request) or "", "POST", SELF_REVIEW_PATH, SELF_REVIEW)

    async def find_way_out(self) -> str:
        """The provider's, where it says that it has one."""
        return await self._sign_in.find_way_out() if self._sign_in else ""

    async def _recognise(self, request: Request) -> Subject | None:
        if self._kubectl is not None and (subject := self._kubectl.find(request)) is not None:
            return subject
        if isinstance(self._recognizer, Proxy):
            return await self._recognizer.recognise(request)
        refuse_identity_headers(request)
        if self._recognizer is None:
            return None
        return self._recognizer.find(request.cookies.get(SESSION_COOKIE, ""))

    async def _find_permitted(
        self, subject: Subject, verb: str, named: Collection[str] | None
    ) -> frozenset[str] | None:
        everywhere = await self._reviews.may_everywhere(subject, verb)
        if everywhere and not self._shared:
            return None
        among = frozenset(await asyncio.to_thread(self._list_namespaces) if named is None else named)
        # Everywhere is every namespace of this cluster.
        own = frozenset(each for each in among if not keys.split_qualified(each)[0]) if everywhere else frozenset()
        return own | await self._reviews.find_permitted(subject, verb, among - own)


def _find_named(request: Request) -> frozenset[str] | None:
    """The namespaces that the address names; None for a list. What can be no namespace is in none."""
    names = [request.path_params["namespace"]] if "namespace" in request.path_params else []
    if request.url.path == "/diff":
        names = [request.query_params.get(each, "").partition("/")[0] for each in ("base", "new")]
    return frozenset(name for name in names if _NAMESPACE.fullmatch(name)) if names else None
