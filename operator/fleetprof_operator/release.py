"""`fleetprof-operator release`: what the chart runs before an uninstall, while the operator is still there.

It asks the operator to cancel what runs, so that no rank stays armed, waits for that, frees what is left of our
finalizer, and removes the analyzer Jobs, since nobody would do it afterwards.

Guarantees: touches only requests of this release (`status.owner`, or its finalizer where that is not written yet);
deletes no request and nothing in the store; ends within PATIENCE_S and a few calls; a request that did not
end in that time is named in the log and freed all the same; may be run again. Exit codes: 0 released; 1 the API server
refused or did not answer; 2 wrong settings. Rights: list and patch profilerequests; in the own namespace list and
delete jobs.
"""

import asyncio
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_api.process.settings import read_table

from fleetprof_operator.analyses.analyzer_job import select_jobs
from fleetprof_operator.kubernetes.cluster import Cluster, Json
from fleetprof_operator.log import set_up_logging
from fleetprof_operator.ownership.request_ownership import choose_finalizer
from fleetprof_operator.profilerequests.records import CANCEL_ANNOTATION, PATH, PLURAL, UNINSTALLED, request_path
from fleetprof_operator.profilerequests.status import is_finished
from fleetprof_operator.settings import EXIT_CODES, Namespace, Namespaces, OwnerName, name_owner

log = logging.getLogger(__name__)

PATIENCE_S: Final = 120.0
"""Longer than the hub waits for sidecars to confirm a cancel."""
_LOOK_S: Final = 1.0
_TRIES: Final = 5
_GONE: Final = 404
_CONFLICT: Final = 409


@dataclass(frozen=True, slots=True)
class Release:
    """The release `owner` (NAMESPACE/NAME), which serves `namespaces`, or all, and makes its Jobs in `namespace`."""

    owner: str
    namespaces: Sequence[str]
    namespace: str

    @property
    def finalizer(self) -> str:
        """The finalizer of its requests."""
        return choose_finalizer(namespaced=bool(self.namespaces))

    @property
    def jobs(self) -> str:
        """The selector of its analyzer Jobs: another release may make its own beside them."""
        return select_jobs(self.owner.partition("/")[2])

    def owns(self, body: Json) -> bool:
        """Tells whether it has begun this request."""
        owner = (body.get("status") or {}).get("owner")
        return bool(owner == self.owner if owner else self.finalizer in (body["metadata"].get("finalizers") or ()))


async def release(cluster: Cluster, ours: Release, *, patience_s: float = PATIENCE_S) -> None:
    """Cancels and frees the requests of a release. Raises ApiRefused, ApiUnreachable."""
    until = time.monotonic() + patience_s
    while unfinished := [body for body in await _list(cluster, ours) if not is_finished(body.get("status"))]:
        for body in unfinished:
            # Those that came meanwhile, too.
            if CANCEL_ANNOTATION not in (body["metadata"].get("annotations") or {}):
                await _merge(cluster, body, {"annotations": {CANCEL_ANNOTATION: UNINSTALLED}})
                log.info("asked to cancel %s", _name(body))
        if time.monotonic() >= until:
            log.warning("did not end within %g s: %s", patience_s, ", ".join(map(_name, unfinished)))
            break
        await asyncio.sleep(_LOOK_S)
    for _ in range(_TRIES):
        freed = [await _free(cluster, body, ours.finalizer) for body in await _list(cluster, ours)]
        if all(freed):
            break
    else:
        log.warning("some requests keep our finalizer: somebody else changes them all the time")
    await _remove_jobs(cluster, f"/apis/batch/v1/namespaces/{ours.namespace}/jobs", ours.jobs)


async def _remove_jobs(cluster: Cluster, path: str, selector: str) -> None:
    """Removes the Jobs that make reports of ended requests; the others would stay until their time is over."""
    for job in (await cluster.list(path, {"labelSelector": selector}, metadata_only=True))[0]:
        try:
            await cluster.delete(f"{path}/{job['metadata']['name']}")
        except ApiRefused as refusal:
            if refusal.status != _GONE:
                raise


async def _free(cluster: Cluster, body: Json, ours: str) -> bool:
    """Takes our finalizer from a request, and nobody else's. False when somebody was faster."""
    finalizers = body["metadata"].get("finalizers") or []
    if ours not in finalizers:
        return True
    rest = [finalizer for finalizer in finalizers if finalizer != ours]
    version = body["metadata"]["resourceVersion"]
    freed = await _merge(cluster, body, {"finalizers": rest or None, "resourceVersion": version})
    if freed:
        log.info("freed %s", _name(body))
    return freed


async def _merge(cluster: Cluster, body: Json, metadata: Json) -> bool:
    """False when somebody was faster; a request that is gone needs nothing more."""
    try:
        await cluster.merge(_path(body), {"metadata": metadata})
    except ApiRefused as refusal:
        if refusal.status not in (_GONE, _CONFLICT):
            raise
        return refusal.status == _GONE
    return True


async def _list(cluster: Cluster, ours: Release) -> list[Json]:
    """The requests that are this release's."""
    found: list[Json] = []
    for root in [f"{PATH}/namespaces/{namespace}" for namespace in ours.namespaces] or [PATH]:
        try:
            found += (await cluster.list(f"{root}/{PLURAL}"))[0]
        except ApiRefused as refusal:
            if refusal.status != _GONE:  # the kind is gone already, and all requests with it
                raise
    return [body for body in found if ours.owns(body)]


def _path(body: Json) -> str:
    return request_path(body["metadata"]["namespace"], body["metadata"]["name"])


def _name(body: Json) -> str:
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


async def _run(ours: Release) -> int:
    cluster = await Cluster.connect()
    try:
        await release(cluster, ours)
    except (ApiRefused, ApiUnreachable) as error:
        log.error("the requests cannot be released: %s; `helm uninstall --no-hooks` goes on without", error)
        return 1
    finally:
        await cluster.close()
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSettings:
    """Everything that the hook is told from outside."""

    namespaces: Namespaces = ()
    namespace: Namespace
    owner_name: OwnerName = ""


def main(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    """Releases, and returns the exit code."""
    settings = read_table(
        ReleaseSettings,
        arguments,
        environment,
        program="fleetprof-operator release",
        description="Cancels and frees all requests.",
        exit_codes=EXIT_CODES,
    )
    set_up_logging("info")
    owner = name_owner(settings.owner_name, settings.namespace)
    return asyncio.run(_run(Release(owner, settings.namespaces, settings.namespace)))
