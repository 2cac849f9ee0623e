"""All parts of the service in a cluster, put together: who asks, what they may, the application, the probes."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from fastapi import FastAPI
from fleetprof_store.base import Store
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from fleetprof_webui.access.cluster import ClusterAccess
from fleetprof_webui.access.guard import is_forwarded
from fleetprof_webui.access.kubectl import KubectlSignIn
from fleetprof_webui.access.proxy import Proxy
from fleetprof_webui.access.reviews import Reviews
from fleetprof_webui.access.sessions import Sessions
from fleetprof_webui.access.sign_in import ProviderSignIn
from fleetprof_webui.app import create_application
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.cluster.captures import ClusterCaptures
from fleetprof_webui.cluster.settings import Settings
from fleetprof_webui.kubernetes_api import KubernetesApi
from fleetprof_webui.reports.whole_reports import WholeReports
from fleetprof_webui.routes import health, kubectl, sign_in
from fleetprof_webui.service import Service

_PORTS: Final = {"https": 443, "http": 80}
_LOOK_EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class ClusterSite:
    """`pages` is for browsers, `probes` for the kubelet, `metrics` for Prometheus."""

    pages: ASGIApp
    probes: ASGIApp
    metrics: ASGIApp
    sessions: Sessions


def make_site(settings: Settings, store: Store, catalog: Catalog, api: KubernetesApi) -> ClusterSite:
    """Nothing listens yet."""
    sessions = Sessions()
    recognizer: Sessions | Proxy | None = Proxy(settings.proxy, settings.names) if settings.proxy is not None else None
    signing_in = None
    by_kubectl = KubectlSignIn(api) if settings.kubectl_sign_in else None
    if settings.provider is not None:
        recognizer = sessions
        signing_in = ProviderSignIn(settings.provider, settings.names, sessions, settings.public_url)
    reviews = Reviews(api)
    access = ClusterAccess(
        recognizer,
        api,
        reviews,
        catalog.namespaces,
        writes=settings.writes,
        sign_in=signing_in,
        kubectl=by_kubectl,
        shared=bool(settings.cluster),
    )
    personal = None if settings.writes == "none" else ClusterCaptures(api, reviews, access, catalog, settings.writes)
    service = Service(
        store=store,
        catalog=catalog,
        access=access,
        reports=WholeReports(store),
        captures=None,
        personal=personal,
        signs_traces=settings.signs_traces,
    )
    app = create_application(
        service,
        hosts=_list_hosts(settings.public_url),
        look_every_s=_LOOK_EVERY_S,
        metrics=False,
        forwarded=by_kubectl is not None,
        name_caller=access.name_caller,
    )
    if signing_in is not None:
        app.state.sign_in = signing_in
        app.include_router(sign_in.router)
    if by_kubectl is not None:
        app.state.kubectl = by_kubectl
        app.include_router(kubectl.router)
    probes, metrics = (FastAPI(docs_url=None, redoc_url=None, openapi_url=None) for _ in range(2))
    for other, router in ((probes, health.router), (metrics, health.metrics_router)):
        other.state.service, other.state.metrics = service, app.state.metrics
        other.include_router(router)
    pages = _PublicScheme(app, urlsplit(settings.public_url).scheme, forwarded=by_kubectl is not None)
    return ClusterSite(pages, probes, metrics, sessions)


class _PublicScheme:
    """TLS ends before us: requests have the scheme by which browsers know us, whatever a header says.

    A port that somebody forwards has none.
    """

    def __init__(self, app: ASGIApp, scheme: str, *, forwarded: bool) -> None:
        self._app = app
        self._forwarded = forwarded
        self._scheme = scheme

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on to the application."""
        if scope["type"] == "http":
            forwarded = self._forwarded and is_forwarded(Headers(scope=scope).get("host", ""))
            scope = {**scope, "scheme": "http" if forwarded else self._scheme}
        await self._app(scope, receive, send)


def _list_hosts(public_url: str) -> Collection[str]:
    """The values of Host that are ours: browsers leave the usual port out."""
    if not public_url:
        return []
    parts = urlsplit(public_url)
    usual = _PORTS[parts.scheme]
    if parts.port in (None, usual):
        name = parts.netloc.removesuffix(f":{usual}")
        return [name, f"{name}:{usual}"]
    return [parts.netloc]
