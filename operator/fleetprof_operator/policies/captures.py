"""The captures that come of a decision: the capture is written down, its request is made and followed, its end is told.

    the capture stands in the policy's status → its request is made → its end stands there too → it is told

Guarantees: a request is made only after its capture is written down, by a name that follows from what it is for; an API
server that is away leaves everything to a later turn; the calls of a turn are bounded by the policies that have
something to write and by the captures that run, never by what fires.
Rights: patch the status of profilepolicies; list and create profilerequests; create events.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from fleetprof_api.pods import POLICY_AUTHOR_ANNOTATION, POLICY_LABEL
from fleetprof_api.policy import Mode, PolicyCapture, Suppression, dump_template
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_api.request.fields import longest

from fleetprof_operator.kubernetes.cluster import Cluster, Json
from fleetprof_operator.policies.decision import CaptureOrder
from fleetprof_operator.policies.log import to_time
from fleetprof_operator.policies.notifications.notification import Notifier
from fleetprof_operator.policies.notifications.report_alert import ReportAlerts
from fleetprof_operator.policies.policy_state import PATH, PolicyState
from fleetprof_operator.policies.triggers.figures import FiguresSource, Job
from fleetprof_operator.policies.triggers.table import answers_with_stacks
from fleetprof_operator.profilerequests.notices import build_notice
from fleetprof_operator.profilerequests.records import PLURAL as REQUESTS
from fleetprof_operator.profilerequests.status import find_state, parse_time

log = logging.getLogger(__name__)

_FOLLOW_NS: Final = 10 * 10**9  # between two looks at requests that run
_WRITE_NS: Final = 5 * 10**9  # between two writes of a policy's status that no capture waits for
_GIVE_UP_NS: Final = 600 * 10**9  # a request that could not be made by then is not made any more
_LATER: Final = (429, 500, 503, 504)
_HEADLINE: Final = longest(PolicyCapture, "headline")


class PolicyCaptures:
    """The captures of all policies.

    `find_author(policy)` tells who wrote its spec; `count_bytes(uid)` the bytes that a request's ranks have written,
    None when nobody knows; `on_write` is told the kind of each object that was written.
    """

    def __init__(
        self,
        cluster: Cluster,
        figures: FiguresSource,
        notifier: Notifier,
        report_alerts: ReportAlerts,
        *,
        find_author: Callable[[Json], Awaitable[str]],
        count_bytes: Callable[[str], int | None],
        on_write: Callable[[str], None],
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._cluster = cluster
        self._figures = figures
        self._notifier = notifier
        self._report_alerts = report_alerts
        self._find_author = find_author
        self._count_bytes = count_bytes
        self._on_write = on_write
        self._clock = clock
        self._telling: dict[str, asyncio.Task[None]] = {}
        # Requests still to be made, and the metadata that the policy had with the spec that they follow.
        self._planned: dict[str, tuple[Json, Json]] = {}
        self._followed_unix_ns = 0

    def plan(self, policy: PolicyState, job: Job, order: CaptureOrder) -> None:
        """The request of a capture that was decided; `bring_about` makes it."""
        self._planned[order.capture.request] = _make_request(policy, job, order), policy.metadata

    async def close(self) -> None:
        """Ends what is being told; the next operator tells it."""
        for task in self._telling.values():
            task.cancel()
        await asyncio.gather(*self._telling.values(), return_exceptions=True)

    async def bring_about(self, policy: PolicyState) -> None:
        """Writes the status, then makes what stands in it, then writes that."""
        if not await self._write(policy):
            return
        pending = [c for c in policy.log.captures.values() if c.created_time is None and c.mode is Mode.CAPTURE]
        for capture in pending:
            if any(c["request"] == capture.request for c in policy.known.get("captures", [])):
                await self._make(policy, capture)
        for capture in list(policy.log.captures.values()):
            if capture.completion_time and not capture.notified_time and capture.request not in self._telling:
                task = asyncio.create_task(self._tell(policy, capture))
                self._telling[capture.request] = task
                task.add_done_callback(partial(self._forget_telling, capture.request))
        if pending:
            await self._write(policy)

    def _forget_telling(self, request: str, _: asyncio.Task[None]) -> None:
        self._telling.pop(request, None)

    async def _write(self, policy: PolicyState) -> bool:
        """Tells whether the object has the policy's log. Waits a while with what no capture waits for."""
        now = self._clock()
        status = policy.build_status(now)
        if status == policy.known:
            return True
        is_urgent = status["captures"] != policy.known.get("captures")
        if not is_urgent and now - policy.written_unix_ns < _WRITE_NS:
            return False
        own = {"op": "test", "path": "/metadata/uid", "value": policy.metadata["uid"]}
        try:
            await self._cluster.patch(f"{policy.path}/status", [own, {"op": "add", "path": "/status", "value": status}])
        except (ApiRefused, ApiUnreachable) as error:
            if not (isinstance(error, ApiRefused) and error.status == 404):
                log.warning("the status of policy %s/%s cannot be written: %s", policy.namespace, policy.name, error)
            return False
        self._on_write("status")
        policy.known = status
        policy.written_unix_ns = now
        return True

    async def _make(self, policy: PolicyState, capture: PolicyCapture) -> None:
        now = self._clock()
        document, metadata = self._planned.get(capture.request) or (self._remake(policy, capture), policy.metadata)
        problem = "the job is gone" if document is None else ""
        if document is not None and now - capture.fired_unix_ns > _GIVE_UP_NS:
            problem = f"the request could not be made within {_GIVE_UP_NS // 10**9} s"
        if document is not None and not problem:
            path = f"{PATH}/namespaces/{policy.namespace}/{REQUESTS}"
            author = await self._find_author({"metadata": metadata})
            document["metadata"]["annotations"] = {POLICY_AUTHOR_ANNOTATION: author}
            try:
                made = await self._create(path, document)
                policy.uids[capture.request] = str(made["metadata"]["uid"])
                message = f"{capture.workload} is captured because {capture.cause}"
                await self.give_notice(
                    policy.metadata, "Captured", f"{message}: {capture.request}", mark=capture.request
                )
                message = f"made by policy {policy.name}: {capture.cause}"
                await self.give_notice(
                    made["metadata"], "MadeByPolicy", message, mark=policy.name, about="ProfileRequest"
                )
            except ApiUnreachable as error:
                log.warning("the request %s cannot be made yet: %s", capture.request, error)
                return
            except ApiRefused as refusal:
                if refusal.status in _LATER:
                    log.warning("the request %s cannot be made yet: %s", capture.request, refusal)
                    return
                problem = str(refusal)
        self._planned.pop(capture.request, None)
        if not problem:
            policy.log.change(capture.request, created_time=to_time(now))
            return
        del policy.log.captures[capture.request]
        policy.log.captured -= 1
        policy.log.fired -= 1  # the same firing, which is now one that made no capture
        policy.log.note_left(capture.workload, capture.trigger, Suppression.REFUSED, problem, now)
        message = f"{capture.workload}: {capture.cause}; no capture: {problem}"
        await self.give_notice(policy.metadata, "Refused", message, mark=capture.request)

    async def _create(self, path: str, document: Json) -> Json:
        """The request as the API server has it, also where an operator before a restart has made it."""
        try:
            made = await self._cluster.create(path, document)
        except ApiRefused as refusal:
            if refusal.status != 409:
                raise
            name = document["metadata"]["name"]
            found, _ = await self._cluster.list(path, {"fieldSelector": f"metadata.name={name}"})
            if not found:
                raise
            return found[0]
        self._on_write("request")
        return made

    def _remake(self, policy: PolicyState, capture: PolicyCapture) -> Json | None:
        """The request of a capture that an earlier operator wrote down and did not make."""
        kind, _, name = capture.workload.partition("/")
        job = self._figures.find_job(policy.namespace, kind=kind, name=name)
        if job is None or policy.spec is None:
            return None
        figures = next((f for f in self._figures.list_jobs(policy.namespace, None) if f.job == job), None)
        each = capture.trace_bytes // max(1, figures.ranks if figures else 1)
        limit_bytes = policy.spec.template.spec.limits.max_trace_bytes
        return _make_request(policy, job, CaptureOrder(capture=capture, max_trace_bytes=min(each, limit_bytes)))

    async def follow(self, policies: Sequence[PolicyState]) -> None:
        """Looks at the requests that run, and notes their ends."""
        now = self._clock()
        if now - self._followed_unix_ns < _FOLLOW_NS:
            return
        self._followed_unix_ns = now
        for policy in policies:
            made = [c for c in policy.log.captures.values() if c.created_time is not None]
            running = [c for c in made if c.completion_time is None]
            # After a restart the requests' uids are read again, once.
            if not running and all(c.request in policy.uids for c in made):
                continue
            path = f"{PATH}/namespaces/{policy.namespace}/{REQUESTS}"
            try:
                found, _ = await self._cluster.list(path, {"labelSelector": f"{POLICY_LABEL}={policy.name}"})
            except (ApiRefused, ApiUnreachable) as error:
                log.warning("the requests of policy %s/%s cannot be read: %s", policy.namespace, policy.name, error)
                continue
            bodies = {body["metadata"]["name"]: body for body in found}
            found_uids = {name: str(body["metadata"]["uid"]) for name, body in bodies.items()}
            policy.uids = {c.request: found_uids.get(c.request, policy.uids.get(c.request, "")) for c in made}
            for capture in running:
                if changes := self._find_end(bodies.get(capture.request)):
                    policy.log.change(capture.request, **changes)

    def _find_end(self, body: Json | None) -> dict[str, Any]:
        if body is None:
            return {"completion_time": to_time(self._clock()), "result": "Deleted"}
        status = body.get("status") or {}
        if not status.get("completionTime"):
            return {}
        changes: dict[str, Any] = {
            "completion_time": to_time(parse_time(status["completionTime"])),
            "result": find_state(status) or None,
            "headline": (status.get("headline") or {}).get("topFinding", "")[:_HEADLINE] or None,
            "report_url": status.get("reportURL") or None,
        }
        written = self._count_bytes(body["metadata"]["uid"])
        return changes | ({"trace_bytes": written} if written is not None else {})

    async def _tell(self, policy: PolicyState, capture: PolicyCapture) -> None:
        """Event, notification and alert of a capture's end. The next operator tells again what this one did not."""
        headline, link = capture.headline or "", capture.report_url or ""
        message = f"{capture.workload}: {capture.result or ''}. {headline} {link}".strip()
        await self.give_notice(policy.metadata, "CaptureEnded", message, mark=capture.request)
        values = {
            "namespace": policy.namespace,
            "workload": capture.workload,
            "policy": policy.name,
            "trigger": capture.trigger,
            "cause": capture.cause,
            "result": capture.result or "",
            "headline": headline,
            "link": link,
            "request": capture.request,
        }
        sends = (self._notifier.send(values), self._report_alerts.send(values))
        # A fault in one of them must not have the other tell the same at each turn.
        for fault in await asyncio.gather(*sends, return_exceptions=True):
            if isinstance(fault, Exception):
                log.error("the end of request %s is not told, by a fault of ours", capture.request, exc_info=fault)
        if capture.request in policy.log.captures:
            policy.log.change(capture.request, notified_time=to_time(self._clock()))

    async def give_notice(
        self, metadata: Json, reason: str, message: str, *, mark: str = "", about: str = "ProfilePolicy"
    ) -> None:
        """An Event on a policy, or what `about` says."""
        kind = "Warning" if reason in ("Refused", "BytesPerDay", "PerDay") else "Normal"
        event = build_notice(metadata, kind, reason, message, self._clock(), about=about, mark=mark)
        try:
            await self._cluster.create(f"/api/v1/namespaces/{metadata['namespace']}/events", event)
            self._on_write("event")
        except (ApiRefused, ApiUnreachable) as error:
            if not (isinstance(error, ApiRefused) and error.status == 409):
                log.warning("no Event %s: %s", reason, error)


def _make_request(policy: PolicyState, job: Job, order: CaptureOrder) -> Json:
    assert policy.spec is not None
    spec = dump_template(policy.spec.template)
    if answers_with_stacks(policy.spec, order.capture.trigger, order.capture.occasion):
        kept = ("activeDeadlineSeconds", "ttlSecondsAfterFinished")
        reading = spec.get("capture", {"stacks": {}})
        spec = {"capture": reading, **{name: spec[name] for name in kept if name in spec}}
        order = CaptureOrder(capture=order.capture, max_trace_bytes=None)
    spec["target"] = {"workload": {"apiVersion": job.api_version, "kind": job.kind, "name": job.name}}
    if order.max_trace_bytes is not None:
        spec["limits"] = {**spec.get("limits", {}), "maxTraceBytes": order.max_trace_bytes}
    return {
        "apiVersion": "fleetprof.io/v1alpha1",
        "kind": "ProfileRequest",
        "metadata": {
            "name": order.capture.request,
            "namespace": policy.namespace,
            "labels": {POLICY_LABEL: policy.name},
        },
        "spec": spec,
    }
