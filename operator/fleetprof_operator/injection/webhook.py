"""The webhook over HTTP: two questions of the API server, and what is asked of any process in a cluster.

    https  POST /pods      a pod is about to be created: add the sidecar
           POST /requests  an object of ours is made or changed: note who asked
    http   GET  /healthz, /readyz, /metrics

Guarantees: a pod is answered within ANSWER_S, and passes unchanged when that is not enough or anything of ours fails;
bodies are bounded; a body that is no AdmissionReview gets status 400 and a sentence.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from fleetprof_operator.injection.admission import AdmissionRequest, InvalidReview, allow, read_review
from fleetprof_operator.injection.change import change_pod
from fleetprof_operator.injection.namespace_limits import NamespaceLimitsReader, UnknownLimits
from fleetprof_operator.injection.requester import note_requester
from fleetprof_operator.injection.settings import InjectionSettings

MAX_BODY_BYTES: Final = 8 << 20
"""An object of the largest size that etcd takes, old and new, as JSON."""
ANSWER_S: Final = 1.0
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

log = logging.getLogger(__name__)


class Webhook:
    """`settings()` gives what a sidecar is made from now, None while that is not known."""

    def __init__(self, settings: Callable[[], InjectionSettings | None], limits: NamespaceLimitsReader) -> None:
        self._settings = settings
        self._limits = limits
        self.is_leaving = False
        self.registry = CollectorRegistry()
        self._pods = Counter(
            "fleetprof_webhook_pods",
            "Pods seen, by what became of them: injected, or the reason why they were left alone.",
            ["result"],
            registry=self.registry,
        )
        self._requests = Counter(
            "fleetprof_webhook_requests",
            "Objects of our own kinds seen, by whether they were allowed.",
            ["result"],
            registry=self.registry,
        )
        self._duration = Histogram(
            "fleetprof_webhook_pod_duration_seconds",
            "How long the API server waited for the answer about a pod.",
            buckets=_SECONDS,
            registry=self.registry,
        )

    def make_admission(self) -> web.Application:
        """What the API server speaks to."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/pods", self._answer_pod)
        app.router.add_post("/requests", self._answer_request)
        return app

    def make_health(self) -> web.Application:
        """What kubelet and Prometheus speak to."""
        app = web.Application()
        app.router.add_get("/healthz", self._say_healthy)
        app.router.add_get("/readyz", self._say_ready)
        app.router.add_get("/metrics", self._show_metrics)
        return app

    async def _answer_pod(self, request: web.Request) -> web.Response:
        return await _answer(request, self._admit_pod)

    async def _answer_request(self, request: web.Request) -> web.Response:
        return await _answer(request, self._admit_request)

    async def _admit_pod(self, asked: AdmissionRequest) -> dict[str, Any]:
        with self._duration.time():
            try:
                async with asyncio.timeout(ANSWER_S):
                    answer, result = await self._inject(asked)
            except TimeoutError:
                answer, result = allow(asked.uid), "TooSlow"
            except Exception:
                log.exception("a pod in %s passes unchanged by a fault of ours", asked.namespace)
                answer, result = allow(asked.uid), "Internal"
        self._pods.labels(result).inc()
        return answer

    async def _inject(self, asked: AdmissionRequest) -> tuple[dict[str, Any], str]:
        if asked.operation != "CREATE" or asked.resource != "pods":
            return allow(asked.uid), "NotAPod"
        settings = self._settings()
        if settings is None:
            return allow(asked.uid, warnings=["fleetprof: the webhook is not set up yet; no sidecar"]), "NotReady"
        try:
            limits = await self._limits.read(asked.namespace)
        except UnknownLimits as problem:
            log.warning("a pod passes unchanged: %s", problem)
            return allow(asked.uid, warnings=[f"fleetprof: this pod cannot be captured: {problem}"]), "UnknownLimits"
        change = change_pod(asked.object, limits, settings)
        if change.why_not:
            log.info("a pod in %s is left alone: %s", asked.namespace, change.why_not)
        return allow(asked.uid, change.patch, change.warnings), change.reason or "Injected"

    async def _admit_request(self, asked: AdmissionRequest) -> dict[str, Any]:
        answer = note_requester(asked)
        self._requests.labels("allowed" if answer["response"]["allowed"] else "refused").inc()
        return answer

    async def _say_healthy(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _say_ready(self, _: web.Request) -> web.Response:
        if self.is_leaving or self._settings() is None:
            return web.Response(status=503, text="leaving\n" if self.is_leaving else "no certificate yet\n")
        return web.Response(text="ok\n")

    async def _show_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self.registry), headers={"Content-Type": "text/plain; version=0.0.4"})


async def _answer(request: web.Request, admit: Callable[[AdmissionRequest], Awaitable[dict[str, Any]]]) -> web.Response:
    try:
        asked = read_review(await request.read())
    except InvalidReview as problem:
        return web.json_response({"error": str(problem)}, status=400)
    return web.json_response(await admit(asked))
