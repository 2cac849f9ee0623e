"""Everything that policies do, in one turn after the other: look at jobs, decide, and bring it about.

A turn is level-triggered: it goes by what is there, so that it matters little what the last one left undone.

Guarantees: the loop gets its turn between policies, and of a namespace MOST_OF_A_NAMESPACE take part, so that no
tenant's policies make the hub late; one turn at a time, so decisions never race; a flood of alerts is looked at once
per turn, those about one job and by one name as one, and what has no room is counted; a fault of ours ends a turn, not
the turns.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fleetprof_api.policy import Mode, Suppression

from fleetprof_operator.kubernetes.cluster import Json
from fleetprof_operator.policies.captures import PolicyCaptures
from fleetprof_operator.policies.decision import CaptureOrder, Firing, NoCapture, decide
from fleetprof_operator.policies.exemption import Exemptions
from fleetprof_operator.policies.policy_state import PolicyState
from fleetprof_operator.policies.stored_policies import PolicyWriter
from fleetprof_operator.policies.triggers.alerts import FiringAlert
from fleetprof_operator.policies.triggers.evaluation import JobEvaluation
from fleetprof_operator.policies.triggers.figures import FiguresSource, Job, JobFigures
from fleetprof_operator.policies.triggers.table import WATCHES, answers_with_stacks
from fleetprof_operator.policies.triggers.watch import Detection

log = logging.getLogger(__name__)

TURN_S: Final = 5.0
MOST_ALERTS: Final = 10_000
"""Waiting for the next turn."""
MOST_OF_A_NAMESPACE: Final = 50
"""Policies that take part, the oldest ones."""
_JOBS_AT_A_TIME: Final = 20


class Engine:
    """All policies by uid. `on_firing` is told a trigger's type and `Captured`, `DryRun` or why it made no capture."""

    def __init__(
        self,
        figures: FiguresSource,
        exemptions: Exemptions,
        captures: PolicyCaptures,
        stored: PolicyWriter,
        *,
        on_firing: Callable[[str, str], None],
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._figures = figures
        self._exemptions = exemptions
        self._captures = captures
        self._stored = stored
        self._on_firing = on_firing
        self._clock = clock
        self._alerts: dict[tuple[str, ...], FiringAlert] = {}
        self.policies: dict[str, PolicyState] = {}
        self.alerts_lost = 0

    # ------------------------------------------------------------ what comes from outside

    def note(self, body: Json) -> None:
        """The newest body of a policy."""
        known = self.policies.get(body["metadata"]["uid"])
        if known is None:
            self.policies[body["metadata"]["uid"]] = PolicyState(body, self._clock())
        else:
            known.update(body, self._clock())

    def forget(self, uid: str) -> None:
        """The policy is gone. Its requests go on."""
        self.policies.pop(uid, None)

    def take_alerts(self, alerts: Sequence[FiringAlert]) -> None:
        """For the next turn; what is beyond the bound is lost, and counted."""
        for alert in alerts:
            key = (alert.name, alert.namespace, alert.kind, alert.workload, alert.pod)
            if key in self._alerts or len(self._alerts) < MOST_ALERTS:
                self._alerts[key] = alert
            else:
                self.alerts_lost += 1

    # ------------------------------------------------------------ the turns

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                began_s = time.monotonic()
                try:
                    await self.turn()
                except Exception:
                    log.exception("a turn of the policies failed by a fault of ours; the next one comes")
                await asyncio.sleep(max(0.0, TURN_S - (time.monotonic() - began_s)))
        finally:
            await self._stored.close()
            await self._captures.close()

    async def turn(self) -> None:
        """Looks once at every policy and job, and makes or suppresses captures."""
        now = self._clock()
        await self._exemptions.refresh(self._figures.list_pods().items(), now)
        alerts, self._alerts = list(self._alerts.values()), {}
        of_namespace: dict[str, list[FiringAlert]] = {}
        for alert in alerts:
            of_namespace.setdefault(alert.namespace, []).append(alert)
        for namespace, policies in self._by_namespace().items():
            by_job = self._by_job(of_namespace.get(namespace, []))
            for place, policy in enumerate(policies):
                policy.is_one_too_many = place >= MOST_OF_A_NAMESPACE
                if policy.spec is not None and not policy.is_one_too_many:
                    await self._look(policy, policies, by_job, now)
                await asyncio.sleep(0)  # the hub shares this loop
        await self._captures.follow(list(self.policies.values()))
        for policy in list(self.policies.values()):
            await self._captures.bring_about(policy)
        self._stored.begin_write(list(self.policies.values()))

    def _by_namespace(self) -> dict[str, list[PolicyState]]:
        """The policies of each namespace, the oldest first."""
        found: dict[str, list[PolicyState]] = {}
        for policy in sorted(self.policies.values(), key=lambda policy: policy.age_order):
            found.setdefault(policy.namespace, []).append(policy)
        return found

    def _by_job(self, alerts: Sequence[FiringAlert]) -> dict[Job, list[FiringAlert]]:
        """The alerts of a namespace by the job that each is about."""
        found: dict[Job, list[FiringAlert]] = {}
        for alert in alerts:
            job = self._figures.find_job(alert.namespace, kind=alert.kind, name=alert.workload, pod=alert.pod)
            if job is not None:
                found.setdefault(job, []).append(alert)
        return found

    async def _look(
        self,
        policy: PolicyState,
        of_namespace: Sequence[PolicyState],
        alerts: Mapping[Job, Sequence[FiringAlert]],
        now: int,
    ) -> None:
        assert policy.spec is not None
        jobs = {figures.job: figures for figures in self._figures.list_jobs(policy.namespace, policy.spec.selector)}
        for job in set(policy.evaluations) - set(jobs):
            del policy.evaluations[job]
        texts = {job.text(): job for job in jobs}
        policy.log.forget(now, lambda capture: policy.is_remembered(capture, texts))
        neighbours = [other for other in of_namespace if other is not policy]
        for place, (job, figures) in enumerate(jobs.items()):
            if place % _JOBS_AT_A_TIME == 0:
                await asyncio.sleep(0)
            if job not in policy.evaluations:
                policy.evaluations[job] = JobEvaluation(policy.spec.triggers)
            for detection in policy.evaluations[job].add(figures, now, alerts.get(job, ())):
                await self._fire(policy, neighbours, figures, detection, now)

    async def _fire(
        self,
        policy: PolicyState,
        neighbours: Sequence[PolicyState],
        figures: JobFigures,
        detection: Detection,
        now: int,
    ) -> None:
        assert policy.spec is not None
        firing = Firing(
            trigger=detection.trigger,
            occasion=detection.occasion,
            cause=detection.cause,
            workload=figures.job.text(),
            ranks=figures.ranks,
            began_unix_ns=figures.began_unix_ns,
            reads_stacks=answers_with_stacks(policy.spec, detection.trigger, detection.occasion),
            is_exempt=await self._exemptions.is_exempt(figures.job, figures.pod, now),
        )
        others = [capture for neighbour in neighbours for capture in neighbour.log.captures.values()]
        identity = (policy.name, str(policy.metadata["uid"]))
        decision = decide(policy.spec, identity, policy.log.captures.values(), others, firing, now)
        kind = next(trigger.type for trigger in policy.spec.triggers if trigger.name == detection.trigger)
        match decision:
            case CaptureOrder(capture=capture):
                policy.log.note_capture(capture)
                self._on_firing(kind.value, "Captured" if capture.mode is Mode.CAPTURE else "DryRun")
                log.info("policy %s/%s: %s: %s", policy.namespace, policy.name, firing.workload, firing.cause)
                if capture.mode is Mode.CAPTURE:
                    self._captures.plan(policy, figures.job, decision)
                else:
                    sentence = f"{firing.workload} would have been captured because {firing.cause}"
                    await self._captures.give_notice(policy.metadata, "WouldCapture", sentence, mark=capture.request)
            case NoCapture(reason=Suppression.ALREADY_ANSWERED) if WATCHES[kind].repeats_after_restart:
                pass
            case NoCapture(reason=reason, message=message):
                self._on_firing(kind.value, reason.value)
                if policy.log.note_left(firing.workload, firing.trigger, reason, message, now):
                    sentence = f"{firing.workload}: {firing.cause}; no capture: {message}"
                    mark = f"{firing.workload}/{firing.trigger}"
                    await self._captures.give_notice(policy.metadata, reason.value, sentence, mark=mark)
