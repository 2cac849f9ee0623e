"""The webhook over HTTPS: two questions of the API server.

    POST /pods      a pod is about to be created: add the sidecar
    POST /requests  an object of ours is made or changed: note who asked

Guarantees: a pod is answered within ANSWER_S of its arrival, and passes unchanged when that is not enough or anything
of ours fails; a tenant's review is read within limits (`review_bodies`), counted before it is built (`outline`) and
worked on in threads in that tenant's turn (`fair_queue`), so that a hostile one takes no sidecar from others; a body
that is no AdmissionReview gets status 400 and a sentence.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Histogram

from fleetprof_operator.injection.admission import AdmissionRequest, InvalidReview, allow, read_review, refuse
from fleetprof_operator.injection.fair_queue import Busy, FairQueue
from fleetprof_operator.injection.namespace_limits import NamespaceLimitsReader, UnknownLimits
from fleetprof_operator.injection.outline import find_excess
from fleetprof_operator.injection.pods.change import change_pod
from fleetprof_operator.injection.pods.nodes import Node
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits
from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings
from fleetprof_operator.injection.requester import note_caller
from fleetprof_operator.injection.review_bodies import NotTaken, ReviewBodies

ANSWER_S: Final = 1.0
RESULTS: Final = (
    "Injected", "OptedOut", "AlreadyInjected", "StaticPod", "NoTrainer", "OwnKineto", "NameTaken", "PathTaken",
    "NoRoom", "UnknownLimits", "TooLarge", "Busy", "NoNativeSidecars", "NotLinux", "NoImage", "UnknownNodes",
    "NotReady", "TooSlow", "Internal",
)  # fmt: skip
"""What becomes of pods; each is counted from 0, so that the first is an increase."""
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

log = logging.getLogger(__name__)


class Webhook:
    """`settings()` gives what a sidecar is made from now, None while that is not known.

    `nodes()` gives the cluster's nodes, where the sidecar's image must be on all that a pod may go to; None while they
    are not known.
    """

    def __init__(
        self,
        settings: Callable[[], InjectionSettings | None],
        limits: NamespaceLimitsReader,
        nodes: Callable[[], Iterable[Node] | None] | None = None,
    ) -> None:
        self._settings = settings
        self._nodes = nodes
        self._limits = limits
        self._bodies = ReviewBodies()
        self._queue = FairQueue()
        self.is_leaving = False
        self.registry = CollectorRegistry()
        self._pods = Counter(
            "fleetprof_webhook_pods",
            "Pods seen, by what became of them: injected, or the reason why they were left alone.",
            ["result"],
            registry=self.registry,
        )
        for result in RESULTS:
            self._pods.labels(result)
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
        """The application that the API server speaks to."""
        app = web.Application()
        app.router.add_post("/pods", self._answer_pod)
        app.router.add_post("/requests", self._answer_request)
        return app

    def find_obstacle(self) -> str:
        """The reason why it is not ready; empty when it is."""
        if self.is_leaving:
            return "leaving"
        return "no certificate yet" if self._settings() is None else ""

    def close(self) -> None:
        """Ends its threads; no question comes any more."""
        self._queue.close()

    async def _answer_pod(self, request: web.Request) -> web.Response:
        try:
            async with self._bodies.take(request) as body:
                answer, result = await self._admit_pod(read_review(body))
        except InvalidReview as problem:
            return web.json_response({"error": str(problem)}, status=400)
        except NotTaken as problem:
            if not problem.uid:
                return web.json_response({"error": str(problem)}, status=413)
            message = f"fleetprof: this pod cannot be captured: {problem}"
            answer, result = _encode(allow(problem.uid, warnings=[message])), problem.reason
        self._pods.labels(result).inc()
        return web.Response(body=answer, content_type="application/json")

    async def _answer_request(self, request: web.Request) -> web.Response:
        try:
            async with self._bodies.take(request) as body:
                answer = await self._admit_request(read_review(body))
        except InvalidReview as problem:
            return web.json_response({"error": str(problem)}, status=400)
        except NotTaken as problem:
            if not problem.uid:
                return web.json_response({"error": str(problem)}, status=413)
            # Nobody would know who asked.
            message = f"fleetprof: the request is refused: {problem}"
            if problem.reason == "TooLarge":
                answer = refuse(problem.uid, message)
            else:
                answer = refuse(problem.uid, message, reason="TooManyRequests", code=429)
        self._requests.labels("allowed" if answer["response"]["allowed"] else "refused").inc()
        return web.Response(body=_encode(answer), content_type="application/json")

    async def _admit_pod(self, request: AdmissionRequest) -> tuple[bytes, str]:
        with self._duration.time():
            try:
                async with asyncio.timeout(ANSWER_S):
                    return await self._inject(request)
            except TimeoutError:
                return _encode(allow(request.uid)), "TooSlow"
            except Busy as problem:
                message = f"fleetprof: this pod cannot be captured: {problem}"
                return _encode(allow(request.uid, warnings=[message])), "Busy"
            except Exception:
                log.exception("a pod in %s passes unchanged by a fault of ours", request.namespace)
                return _encode(allow(request.uid)), "Internal"

    async def _inject(self, request: AdmissionRequest) -> tuple[bytes, str]:
        if request.operation != "CREATE" or request.resource != "pods":
            return _encode(allow(request.uid)), "NotAPod"
        settings = self._settings()
        if settings is None:
            message = "fleetprof: the webhook is not set up yet; no sidecar"
            return _encode(allow(request.uid, warnings=[message])), "NotReady"
        try:
            limits = await self._limits.read(request.namespace)
        except UnknownLimits as problem:
            log.warning("a pod passes unchanged: %s", problem)
            message = f"fleetprof: this pod cannot be captured: {problem}"
            return _encode(allow(request.uid, warnings=[message])), "UnknownLimits"
        nodes = None
        if self._nodes is not None and (nodes := self._nodes()) is None:
            message = "fleetprof: this pod cannot be captured: it is not known yet which nodes have the sidecar's image"
            return _encode(allow(request.uid, warnings=[message])), "UnknownNodes"
        return await self._queue.run(request.namespace, lambda: _change(request, limits, settings, nodes))

    async def _admit_request(self, request: AdmissionRequest) -> dict[str, Any]:
        try:
            return await self._queue.run(request.namespace, lambda: note_caller(request))
        except Busy as problem:
            return refuse(request.uid, f"fleetprof: {problem}; try again", reason="TooManyRequests", code=429)


def _change(
    request: AdmissionRequest, limits: NamespaceLimits, settings: InjectionSettings, nodes: Iterable[Node] | None
) -> tuple[bytes, str]:
    """The answer about a pod and its result for the metrics; in a thread, all the work that a pod's size makes."""
    if excess := find_excess(request.object_json):
        log.info("a pod in %s is left alone: %s", request.namespace, excess)
        message = f"fleetprof: this pod cannot be captured: {excess}"
        return _encode(allow(request.uid, warnings=[message])), "TooLarge"
    change = change_pod(request.read_object(), limits, settings, nodes=nodes)
    if change.why_not:
        log.info("a pod in %s is left alone: %s", request.namespace, change.why_not)
    return _encode(allow(request.uid, change.patch, change.warnings)), change.reason or "Injected"


def _encode(review: dict[str, Any]) -> bytes:
    return msgspec.json.encode(review)
