"""The pods of a target as the operator finds them: by the same labels and the same owner references.

Guarantees: reads only; what the user may not read is said, never guessed.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from fleetprof_api.pods import INJECTED_ANNOTATION, WITHOUT_SIDECAR_ANNOTATION
from fleetprof_api.process.kubernetes_errors import ApiRefused
from fleetprof_api.request import Target
from fleetprof_operator.kubernetes.owners import CannotFollow, Owners
from fleetprof_operator.kubernetes.workloads import find_query

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import Connection
from fleetprof_cli.kubernetes.kinds import WorkloadKind
from fleetprof_cli.messages import Failure

Pod = dict[str, Any]
_OVER: Final = ("Succeeded", "Failed")


async def list_pods(connection: Connection, target: Target) -> list[Pod]:
    """The target's pods, whatever their state, by name. Raises ApiRefused, ApiUnreachable, Failure."""
    query = find_query(target)
    selectors = {"labelSelector": query.label_selector, "fieldSelector": query.field_selector}
    path = f"/api/v1/namespaces/{connection.namespace}/pods"
    pods, _ = await connection.cluster.list(path, {k: v for k, v in selectors.items() if v})
    if query.owner is not None:
        owners = Owners(connection.cluster, connection.namespace)
        try:
            pods = [
                pod for pod in pods if await owners.lead_to(pod["metadata"].get("ownerReferences") or [], query.owner)
            ]
        except CannotFollow as error:
            raise Failure(f"cannot tell which pods belong to {target.text()}: {error}", code=ExitCode.REFUSED) from None
    return sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))


async def require_workload(connection: Connection, kind: WorkloadKind, name: str) -> None:
    """Raises Failure when there is no such workload. Somebody who may not read it is not held up."""
    try:
        await connection.cluster.get(kind.path(connection.namespace, name), metadata_only=True)
    except ApiRefused as error:
        if error.status == 404:
            missing = f"there is no {kind.kind} {name} in namespace {connection.namespace}"
            if not error.reason:
                missing = f"this cluster has no kind {kind.kind} in {kind.api_version}"
            step = f"see what there is: kubectl get {kind.plural} -n {connection.namespace}"
            raise Failure(missing, next_step=step, code=ExitCode.REFUSED) from None
        if error.status != 403:
            raise


async def require_injected(connection: Connection, target: Target, description: str) -> None:
    """Raises Failure when none of the target's pods can answer. Somebody who may not list pods is not held up.

    A pod that is over answers no more: where all are, the target has ended.
    """
    try:
        pods = await list_pods(connection, target)
    except ApiRefused as error:
        if error.status == 403:
            return
        raise
    if not pods:
        raise Failure(
            f"{target.text()} has no pod in namespace {connection.namespace}",
            next_step="a request that is applied (kubectl apply) waits for its pods",
            code=ExitCode.REFUSED,
        )
    ended = [pod for pod in pods if (pod.get("status") or {}).get("phase") in _OVER]
    if len(ended) == len(pods):
        raise Failure(
            f"{target.text()} has ended: {_say_ended(ended)}",
            next_step="start it again, and capture it while it trains; its earlier captures: kubectl fleetprof list",
            code=ExitCode.REFUSED,
        )
    pods = [pod for pod in pods if pod not in ended]
    if not _injected(pods):
        raise Failure(
            f"none of the {len(pods)} pods of {target.text()} has the fleetprof sidecar",
            next_step=f"see why: kubectl fleetprof doctor {description} -n {connection.namespace}",
            code=ExitCode.REFUSED,
        )


def _say_ended(pods: Sequence[Pod]) -> str:
    phases = Counter(pod["status"]["phase"] for pod in pods)
    counts = ", ".join(f"{number} {phase}" for phase, number in sorted(phases.items()))
    return f"all of its pods are over ({counts})"


def _injected(pods: Sequence[Pod]) -> bool:
    notes = [pod["metadata"].get("annotations") or {} for pod in pods]
    return any(INJECTED_ANNOTATION in note and WITHOUT_SIDECAR_ANNOTATION not in note for note in notes)
