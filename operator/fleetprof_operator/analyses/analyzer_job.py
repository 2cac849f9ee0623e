"""The analyzer's Jobs as objects: one pod for few ranks; for many, an Indexed Job of summaries and a Job that merges.

The pod is the administrator's template (`analyzer-pod`), with name, arguments and the request's own resources put in.

Guarantees: pure; a Job's name follows from the request's uid, so that there is one of each; retried are a disruption, a
fault and a store that is away, and never what another try cannot change (the exit codes of `fleetprof-analyzer`) or
memory that is too small; every pod has a memory limit.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fleetprof_api.request import Analysis, read_quantity

from fleetprof_operator.kubernetes.cluster import Json

UID_LABEL: Final = "fleetprof.io/request-uid"
RELEASE_LABEL: Final = "fleetprof.io/release"
"""The release that a Job belongs to: the chart puts it into the template."""
RANKS_PER_POD: Final = 32
PODS_AT_A_TIME: Final = 8  # unless the request says
MOST_SHARDS: Final = 1000
_TTL_S: Final = 600  # for its log
HISTORY: Final = 5  # likewise
_OUT_OF_MEMORY: Final = 137  # SIGKILL by the kernel; a disruption has its own condition, which is looked at first
_CANNOT_HELP: Final = (2, 3, 4)  # wrong settings, nothing stored, the store refuses
_DEFAULT_MEMORY_LIMIT: Final = "4Gi"
_NO_BOUNDS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Shards:
    """The cut of the work: into `count` pods, `parallel` at a time. One: no map and reduce."""

    count: int
    parallel: int


def plan_shards(ranks: int, parallelism: int | None, most: int = MOST_SHARDS) -> Shards:
    """`parallelism` is that of the request; without it, as the number of ranks asks for. `most` pods run at a time."""
    parallelism = None if parallelism is None else min(parallelism, most)
    wanted = -(-ranks // RANKS_PER_POD)
    count = max(1, min(max(wanted, parallelism or 1), ranks, MOST_SHARDS))
    return Shards(count, max(1, min(parallelism or PODS_AT_A_TIME, count, most)))


def job_name(command: str, uid: str) -> str:
    """The name of the Job that runs `fleetprof-analyzer COMMAND` for a request."""
    return f"fleetprof-{command}-{uid}"


def build_job(
    template: Json,
    command: str,
    *,
    namespace: str,
    uid: str,
    name: str,
    analysis: Analysis | None,
    deadline_s: int,
    shards: Shards | None = None,
    max_resources: Mapping[str, str] = _NO_BOUNDS,
) -> Json:
    """The Job that runs `fleetprof-analyzer COMMAND NAMESPACE UID`, an Indexed one with `shards`.

    `name` is the request's. What it asks of a resource is cut to `max_resources`, where that names it.
    """
    pod = copy.deepcopy(template)
    labels = {UID_LABEL: uid, "fleetprof.io/request-namespace": namespace, "fleetprof.io/request-name": name}
    pod_metadata = pod.setdefault("metadata", {})
    pod_metadata["labels"] = {**(pod_metadata.get("labels") or {}), **labels}
    pod["spec"]["restartPolicy"] = "Never"
    # By this the chart's ResourceQuota (scope Terminating) knows an analysis from operator and webhook.
    pod["spec"]["activeDeadlineSeconds"] = deadline_s
    container = pod["spec"]["containers"][0]
    container["args"] = [command, namespace, uid, *(["--of", str(shards.count)] if shards else [])]
    container["resources"] = _merge_resources(container.get("resources") or {}, analysis, max_resources)
    container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    spec: Json = {
        "activeDeadlineSeconds": deadline_s,
        "ttlSecondsAfterFinished": _TTL_S,
        "podFailurePolicy": {"rules": _failure_rules(container["name"], indexed=shards is not None)},
        "template": pod,
    }
    if shards is None:
        spec["backoffLimit"] = 3
    else:
        spec |= {
            "completionMode": "Indexed",
            "completions": shards.count,
            "parallelism": shards.parallel,
            "backoffLimitPerIndex": 2,
        }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(command, uid), "labels": dict(pod_metadata["labels"])},
        "spec": spec,
    }


def select_jobs(release: str) -> str:
    """The selector of all Jobs of the release of this name; of a template without a name, of all."""
    return f"{UID_LABEL},{RELEASE_LABEL}={release}" if release else UID_LABEL


def find_cuts(analysis: Analysis | None, most_pods: int, max_resources: Mapping[str, str]) -> list[str]:
    """The part of its analysis that a request asks for and does not get: "parallelism 1000 to 32"."""
    if analysis is None:
        return []
    cuts = []
    if analysis.parallelism is not None and analysis.parallelism > most_pods:
        cuts.append(f"parallelism {analysis.parallelism} to {most_pods}")
    resources = analysis.resources
    for half, amounts in (
        (("requests", resources.requests), ("limits", resources.limits)) if resources is not None else ()
    ):
        given = _cut(amounts or {}, max_resources)
        cuts += [
            f"{half}.{name} {amount} to {given[name]}"
            for name, amount in (amounts or {}).items()
            if given[name] != amount
        ]
    return cuts


def _cut(amounts: Mapping[str, str], most: Mapping[str, str]) -> dict[str, str]:
    return {
        name: most[name] if name in most and read_quantity(value) > read_quantity(most[name]) else value
        for name, value in amounts.items()
    }


def _failure_rules(container: str, *, indexed: bool) -> list[Json]:
    def on_exit(action: str, codes: list[int]) -> Json:
        return {"action": action, "onExitCodes": {"containerName": container, "operator": "In", "values": codes}}

    return [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        on_exit("FailJob", list(_CANNOT_HELP)),
        # One rank's trace that is too large must not cost the others theirs.
        on_exit("FailIndex" if indexed else "FailJob", [_OUT_OF_MEMORY]),
    ]


def _merge_resources(default: Json, analysis: Analysis | None, most: Mapping[str, str]) -> Json:
    """The template's resources with the request's own over them; of each resource the request may say half."""
    resources = analysis.resources if analysis is not None else None
    asked_requests, asked_limits = (
        (resources.requests or {}, resources.limits or {}) if resources is not None else ({}, {})
    )
    asked_requests, asked_limits = _cut(asked_requests, most), _cut(asked_limits, most)
    requests = {**(default.get("requests") or {}), **asked_requests}
    limits = {**(default.get("limits") or {}), **asked_limits}
    # The other half follows, where the template's would make the pod invalid.
    requests |= {name: asked_limits[name] for name in set(requests) & set(asked_limits) - set(asked_requests)}
    limits |= {name: asked_requests[name] for name in set(limits) & set(asked_requests) - set(asked_limits)}
    limits.setdefault("memory", requests.get("memory", _DEFAULT_MEMORY_LIMIT))
    return {"requests": requests, "limits": limits}
