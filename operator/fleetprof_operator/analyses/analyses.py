"""Has reports made by analyzer Jobs in the operator's own namespace, and follows them: the hub's `analyze`.

Guarantees: a Job that is there is followed, not made anew, so a restart goes on where it was; one that failed raises
with its sentence; summaries of some ranks that could not be made cost those ranks only; an API server that is away is
waited for. Jobs go by their own time to live, when newer ones have ended, or with the request (`remove`); an owner
reference cannot cross namespaces. Rights, in the operator's namespace: create, delete, list and watch jobs; list pods.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from fleetprof_api.errors import FleetprofError
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_api.request import Analysis

from fleetprof_operator.analyses.analyzer_job import (
    HISTORY,
    RELEASE_LABEL,
    UID_LABEL,
    Shards,
    build_job,
    find_cuts,
    job_name,
    plan_shards,
    select_jobs,
)
from fleetprof_operator.analyses.outcome import JobOutcome, find_sentence, read_end, read_outcome
from fleetprof_operator.analyses.rights import AnalysedCapture
from fleetprof_operator.hub.capture.environment import AnalysisOrder
from fleetprof_operator.kubernetes.cluster import Cluster, Json, wait_to_try_again
from fleetprof_operator.kubernetes.pod_trouble import explain

log = logging.getLogger(__name__)

_LOOK_S: Final = 10.0  # between two looks at the pods of a Job that goes on
_PAUSE_S: Final = 0.1  # between two watches, should a server end them at once


class AnalyzerJobFailed(FleetprofError):
    """The analysis ended without a report; the message is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisBounds:
    """An administrator's bounds: seconds and pods at a time of one Job, and the amount of each resource for a request.

    `history`: so many finished Jobs are kept at the most, for their logs.
    """

    deadline_s: int
    history: int = HISTORY
    max_parallelism: int
    max_resources: Mapping[str, str]
    at_a_time_per_namespace: int


class AnalyzerJobs:
    """Makes and follows analyzer Jobs in `namespace`."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        template: Json,
        bounds: AnalysisBounds,
        *,
        on_write: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._template = template
        labels = (template.get("metadata") or {}).get("labels") or {}
        self._ours = select_jobs(labels.get(RELEASE_LABEL, ""))
        self._bounds = bounds
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(bounds.at_a_time_per_namespace)
        )
        self._on_write = on_write
        self._under_way: dict[str, AnalysedCapture] = {}

    def find_capture(self, job: str) -> AnalysedCapture | None:
        """The capture that the Job of this name works on; None when it is none of ours, or has ended."""
        return self._under_way.get(job)

    def describe_cuts(self, analysis: Analysis | None) -> str:
        """The part of it that is beyond the bounds, and so not given, as a sentence; empty when nothing is."""
        cuts = find_cuts(analysis, self._bounds.max_parallelism, self._bounds.max_resources)
        return f"the analysis is cut to what the installation allows: {', '.join(cuts)}" if cuts else ""

    async def analyze(self, order: AnalysisOrder) -> None:
        """Makes report.json and report.html of one capture. Raises AnalyzerJobFailed.

        Of one namespace so many go on at a time; the others wait in order. One that began before a restart goes on.
        """
        try:
            if await self._has_begun(order.uid):
                await self._analyze(order)
                return
            async with self._turns[order.namespace]:
                await self._analyze(order)
        finally:
            await self._remove_oldest()

    async def _analyze(self, order: AnalysisOrder) -> None:
        parallelism = order.analysis.parallelism if order.analysis is not None else None
        shards = plan_shards(order.ranks, parallelism, self._bounds.max_parallelism)
        if shards.count == 1:
            await self._run("report", order, None)
            return
        outcome = await self._run("summarise", order, shards)
        log.info("request %s: %d of %d shards summarised", order.uid, outcome.succeeded, shards.count)
        await self._run("merge", order, None)

    async def _has_begun(self, uid: str) -> bool:
        try:
            jobs, _ = await self._cluster.list(self._jobs, {"labelSelector": f"{UID_LABEL}={uid}"}, metadata_only=True)
        except (ApiRefused, ApiUnreachable):
            return False
        return bool(jobs)

    async def remove(self, uid: str) -> None:
        """Deletes the Jobs of a request that is deleted. What cannot be deleted now goes by its time to live."""
        try:
            jobs, _ = await self._cluster.list(self._jobs, {"labelSelector": f"{UID_LABEL}={uid}"}, metadata_only=True)
            for job in jobs:
                await self._cluster.delete(f"{self._jobs}/{job['metadata']['name']}")
                self._on_write()
        except (ApiRefused, ApiUnreachable) as error:
            log.warning("the analyzer Jobs of request %s are left to their time to live: %s", uid, error)

    async def _remove_oldest(self) -> None:
        """Deletes finished Jobs beyond those that are kept; never one of a request that is still being analysed."""
        try:
            jobs, _ = await self._cluster.list(self._jobs, {"labelSelector": self._ours})
            going = {_uid(job) for job in jobs if read_outcome(job).state == "going"}
            going |= {capture.uid for capture in self._under_way.values()}
            ended = sorted((job for job in jobs if _uid(job) not in going), key=read_end)
            for job in ended[: max(0, len(ended) - self._bounds.history)]:
                await self._cluster.delete(f"{self._jobs}/{job['metadata']['name']}")
                self._on_write()
        except (ApiRefused, ApiUnreachable) as error:
            log.warning("finished analyzer Jobs are left to their time to live: %s", error)

    async def _run(self, command: str, order: AnalysisOrder, shards: Shards | None) -> JobOutcome:
        """One Job to its end. Raises AnalyzerJobFailed; not for an Indexed one of which some indexes succeeded."""
        job = build_job(
            self._template,
            command,
            namespace=order.namespace,
            uid=order.uid,
            name=order.name,
            analysis=order.analysis,
            deadline_s=self._bounds.deadline_s,
            max_resources=self._bounds.max_resources,
            shards=shards,
        )
        name = job_name(command, order.uid)
        self._under_way[name] = AnalysedCapture(order.namespace, order.uid, command)
        try:
            await self._create(job)
            outcome, trouble = await self._follow(name)
            if outcome.state == "failed" and not (shards is not None and outcome.succeeded):
                # Still under way: another's end must not delete the Job with the pods that say why.
                raise AnalyzerJobFailed(find_sentence(outcome, await self._list_pods(name), trouble))
            return outcome
        finally:
            del self._under_way[name]

    async def _create(self, job: Json) -> None:
        tries = 0
        while True:
            try:
                await self._cluster.create(self._jobs, job)
                self._on_write()
                return
            except ApiRefused as refusal:
                if refusal.status == 409:
                    return  # made before a restart
                if refusal.status < 500 and refusal.status != 429:
                    raise AnalyzerJobFailed(f"the analyzer Job was refused: {refusal}") from None
                log.warning("the analyzer Job cannot be made yet: %s", refusal)
            except ApiUnreachable as error:
                log.warning("the analyzer Job cannot be made yet: %s", error)
            await wait_to_try_again(tries)
            tries += 1

    async def _follow(self, name: str) -> tuple[JobOutcome, str]:
        """The end of the Job, and the last trouble of its pods. Raises AnalyzerJobFailed when it is deleted."""
        trouble = ""
        async with aclosing(self._states(name)) as states:
            while True:
                state = asyncio.ensure_future(anext(states))
                while not (await asyncio.wait({state}, timeout=_LOOK_S))[0]:
                    trouble = await self._find_trouble(name) or trouble
                if (outcome := state.result()).state != "going":
                    return outcome, trouble

    async def _states(self, name: str) -> AsyncGenerator[JobOutcome]:
        """The states of the Job, now and after each change."""
        query = {"fieldSelector": f"metadata.name={name}"}
        tries = 0
        while True:
            try:
                jobs, version = await self._cluster.list(self._jobs, query)
                if not jobs:
                    raise AnalyzerJobFailed(f"the analyzer Job {name} was deleted before it had ended")
                yield read_outcome(jobs[0])
                tries = 0
                async for kind, job in self._cluster.watch(self._jobs, query, version):
                    if kind == "DELETED":
                        break
                    if kind != "BOOKMARK":
                        yield read_outcome(job)
                await asyncio.sleep(_PAUSE_S)
            except (ApiRefused, ApiUnreachable) as error:
                log.warning("the analyzer Job %s cannot be followed: %s", name, error)
                await wait_to_try_again(tries)
                tries += 1

    async def _find_trouble(self, name: str) -> str:
        return next((t for pod in await self._list_pods(name) if (t := explain(pod.get("status") or {}))), "")

    async def _list_pods(self, name: str) -> list[Json]:
        try:
            pods, _ = await self._cluster.list(self._pods, {"labelSelector": f"batch.kubernetes.io/job-name={name}"})
        except (ApiRefused, ApiUnreachable):
            return []
        return pods


def _uid(job: Json) -> str:
    return str(job["metadata"]["labels"][UID_LABEL])
