"""The meaning of `job/llama`: kubectl's names of kinds that run training, and `resource.group/name` for any other.

Guarantees: pure, but for `find_kind`; what cannot be understood is refused with what can be written.
"""

import re
from dataclasses import dataclass
from typing import Final

import click
from fleetprof_api.process.kubernetes_errors import ApiRefused

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import Connection
from fleetprof_cli.messages import Failure


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """A kind of workload and where the API has it."""

    api_version: str
    kind: str
    plural: str

    def path(self, namespace: str, name: str = "") -> str:
        """The API's path of its objects."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" + (f"/{name}" if name else "")


_KINDS: Final = {
    WorkloadKind("batch/v1", "Job", "jobs"): ("job",),
    WorkloadKind("v1", "Pod", "pods"): ("pod", "po"),
    WorkloadKind("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets"): ("jobset", "js"),
    WorkloadKind("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjobs"): ("trainjob",),
    WorkloadKind("kubeflow.org/v1", "PyTorchJob", "pytorchjobs"): ("pytorchjob",),
    WorkloadKind("kubeflow.org/v2beta1", "MPIJob", "mpijobs"): ("mpijob", "mj"),
    WorkloadKind("ray.io/v1", "RayJob", "rayjobs"): ("rayjob",),
    WorkloadKind("ray.io/v1", "RayCluster", "rayclusters"): ("raycluster",),
    WorkloadKind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets"): ("leaderworkerset", "lws"),
    WorkloadKind("batch.volcano.sh/v1alpha1", "Job", "jobs"): ("vcjob", "vj"),
    WorkloadKind("apps/v1", "StatefulSet", "statefulsets"): ("statefulset", "sts"),
    WorkloadKind("apps/v1", "Deployment", "deployments"): ("deployment", "deploy"),
    WorkloadKind("apps/v1", "ReplicaSet", "replicasets"): ("replicaset", "rs"),
    WorkloadKind("apps/v1", "DaemonSet", "daemonsets"): ("daemonset", "ds"),
}
WORDS: Final = {word: kind for kind, words in _KINDS.items() for word in words}
# The plural and the name with the group are words as well; a plural belongs to the first kind that has it.
_ALL: Final = {
    **{f"{word}.{kind.api_version.partition('/')[0]}": kind for word, kind in WORDS.items() if "/" in kind.api_version},
    **{f"{k.plural}.{k.api_version.partition('/')[0]}": k for k in _KINDS if "/" in k.api_version},
    **{kind.plural: kind for kind in reversed(_KINDS)},
    **WORDS,
}


def split_target(text: str) -> tuple[str, str]:
    """(word, name) of KIND/NAME. Raises UsageError."""
    word, slash, name = text.partition("/")
    if not slash or not word or not name or "/" in name:
        raise click.UsageError(f"{text!r} must be KIND/NAME, for example job/llama; kinds: {', '.join(WORDS)}")
    return word.lower(), name


def known_kind(word: str) -> WorkloadKind | None:
    """The kind that a word of kubectl means, when it is one of those that usually train."""
    return _ALL.get(word)


async def find_kind(connection: Connection, word: str) -> WorkloadKind:
    """The kind that a word means; `resource.group` is looked up in the cluster. Raises Failure."""
    if known := known_kind(word):
        return known
    resource, dot, group = word.partition(".")
    if not dot:
        raise Failure(
            f"kind {word!r} is not one of {', '.join(WORDS)}",
            next_step="write any other as RESOURCE.GROUP/NAME, for example tfjobs.kubeflow.org/llama",
            code=ExitCode.INVALID,
        )
    try:
        versions = await connection.cluster.get(f"/apis/{group}")
        version = versions["preferredVersion"]["groupVersion"]
        for item in (await connection.cluster.get(f"/apis/{version}"))["resources"]:
            if resource in (item["name"], item.get("singularName"), *(item.get("shortNames") or ())):
                return WorkloadKind(version, item["kind"], item["name"])
    except ApiRefused as error:
        if error.status != 404:
            raise
        raise Failure(f"this cluster has no API group {group}", code=ExitCode.INVALID) from None
    raise Failure(f"API group {version} has no resource {resource}", code=ExitCode.INVALID)


def parse_selector(text: str) -> dict[str, object]:
    """`-l` as the selector of a request: `a=b`, `a!=b`, `a in (b, c)`, `a`, `!a`. Raises UsageError."""
    labels: dict[str, str] = {}
    expressions: list[dict[str, object]] = []
    name = r"[A-Za-z0-9./_-]+"
    rest = text.strip()
    while rest:
        if found := re.match(rf"({name})\s+(in|notin)\s*\(([^)]*)\)", rest):
            values = [value.strip() for value in found[3].split(",")]
            operator = "In" if found[2] == "in" else "NotIn"
            expressions.append({"key": found[1], "operator": operator, "values": values})
        elif found := re.match(rf"({name})\s*(==?|!=)\s*([A-Za-z0-9._-]*)", rest):
            if found[2] == "!=":
                expressions.append({"key": found[1], "operator": "NotIn", "values": [found[3]]})
            else:
                labels[found[1]] = found[3]
        elif found := re.match(rf"(!?)\s*({name})", rest):
            expressions.append({"key": found[2], "operator": "DoesNotExist" if found[1] else "Exists"})
        else:
            raise click.UsageError(f"{text!r} is no label selector: {rest!r} is not understood")
        rest = rest[found.end() :].lstrip()
        if rest and not rest.startswith(","):
            raise click.UsageError(f"{text!r} is no label selector: a comma is missing before {rest!r}")
        rest = rest[1:].lstrip()
    if not labels and not expressions:
        raise click.UsageError("-l must name at least one label; an empty selector would match every pod")
    selector: dict[str, object] = {}
    if labels:
        selector["matchLabels"] = labels
    if expressions:
        selector["matchExpressions"] = expressions
    return selector
