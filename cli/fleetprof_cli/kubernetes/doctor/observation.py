"""The objects that `kubectl fleetprof doctor` reads: the installation, the namespace, pods and their sidecars' logs.

Guarantees: reads only, and takes what it may not read for unknown; nothing is started in a pod unless it is asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fleetprof_api.pods import INJECTED_ANNOTATION, SIDECAR_CONTAINER
from fleetprof_api.process.import_path import FORGET_THE_FOLDER
from fleetprof_api.process.kubernetes_errors import ApiRefused
from fleetprof_api.request import Target
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits
from fleetprof_operator.injection.pods.trainer_container import choose_trainer
from fleetprof_operator.ownership.lease import LEASE

from fleetprof_cli.kubernetes.connection import GROUP, PLURAL, Connection
from fleetprof_cli.kubernetes.request_state import RequestState
from fleetprof_cli.kubernetes.requests import Requests
from fleetprof_cli.kubernetes.target_pods import Pod, list_pods
from fleetprof_cli.messages import Failure

_LOG_LINES: Final = 10_000  # 2 MB; each rank of a capture writes 5 lines, and the link to the hub is logged once
_LOOKED_INTO: Final = 8  # pods whose logs are read
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_LEASES: Final = "/apis/coordination.k8s.io/v1/leases"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
# Asks for the version without importing PyTorch, which would take a gigabyte beside the training.
_VERSION: Final = (
    f"{FORGET_THE_FOLDER}import importlib.metadata as m\n"
    "try: print('torch', m.version('torch'))\n"
    "except m.PackageNotFoundError: print('none', sys.executable)\n"
)
_PROBE: Final = (
    "sh",
    "-c",
    'for p in python python3; do command -v $p >/dev/null && exec $p -c "$0"; done; echo none python',
    _VERSION,
)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that could not be read, and why."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodObservation:
    """One pod, and what its sidecar and its trainer say of themselves; None where nobody was asked."""

    pod: Pod
    sidecar_log: str | Unknown | None = None
    torch: str | Unknown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything that was looked at. A list that is empty was read and is empty."""

    namespace: Mapping[str, Any] | Unknown
    limits: NamespaceLimits | Unknown = field(default_factory=NamespaceLimits)
    has_kind: bool | Unknown
    rights: Mapping[str, bool] = field(default_factory=dict)
    webhooks: Sequence[Mapping[str, Any]] | Unknown
    deployments: Sequence[Mapping[str, Any]] | Unknown
    leases: Sequence[Mapping[str, Any]] | Unknown = ()
    pods: Sequence[PodObservation] | Unknown
    latest: RequestState | None = None


async def observe(connection: Connection, target: Target, *, ask_torch: bool) -> Observation:
    """Looks at everything. Raises ApiUnreachable when nobody answers."""
    cluster, namespace = connection.cluster, connection.namespace
    webhooks = await _read_list(connection, _WEBHOOKS, {"labelSelector": "app.kubernetes.io/part-of=fleetprof"})
    has_kind = await _has_kind(connection)
    return Observation(
        namespace=await _read(cluster.get(f"/api/v1/namespaces/{namespace}")),
        limits=await _read_limits(connection),
        has_kind=has_kind,
        rights={verb: await _may(connection, verb) for verb in ("create", "get", "delete")},
        webhooks=webhooks,
        deployments=await _read_deployments(connection, webhooks),
        leases=await _read_list(connection, _LEASES, {"fieldSelector": f"metadata.name={LEASE}"}),
        pods=await _read_pods(connection, target, ask_torch=ask_torch),
        latest=await _find_latest(connection, target) if has_kind is True else None,
    )


async def _read(call: Any) -> Any:
    try:
        return await call
    except ApiRefused as error:
        return Unknown(str(error))


async def _read_list(
    connection: Connection, path: str, query: Mapping[str, str]
) -> Sequence[Mapping[str, Any]] | Unknown:
    try:
        items, _ = await connection.cluster.list(path, query)
    except ApiRefused as error:
        return Unknown(str(error))
    return items


async def _read_limits(connection: Connection) -> NamespaceLimits | Unknown:
    path = f"/api/v1/namespaces/{connection.namespace}"
    quotas = await _read_list(connection, f"{path}/resourcequotas", {})
    ranges = await _read_list(connection, f"{path}/limitranges", {})
    if isinstance(quotas, Unknown):
        return quotas
    return ranges if isinstance(ranges, Unknown) else NamespaceLimits(quotas=quotas, limit_ranges=ranges)


async def _has_kind(connection: Connection) -> bool | Unknown:
    try:
        resources = (await connection.cluster.get(f"/apis/{GROUP}/v1alpha1"))["resources"]
    except ApiRefused as error:
        return False if error.status == 404 else Unknown(str(error))
    return any(item["name"] == PLURAL for item in resources)


async def _may(connection: Connection, verb: str) -> bool:
    """Tells whether the user has this verb on ProfileRequests here; everybody may ask."""
    attributes = {"namespace": connection.namespace, "verb": verb, "group": GROUP, "resource": PLURAL}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await _read(connection.cluster.create(_REVIEWS, review))
    return isinstance(answer, Unknown) or bool(answer.get("status", {}).get("allowed"))


async def _read_deployments(
    connection: Connection, webhooks: Sequence[Mapping[str, Any]] | Unknown
) -> Sequence[Mapping[str, Any]] | Unknown:
    """The Deployments of the installation, in the namespace that the webhook's configuration names."""
    if isinstance(webhooks, Unknown) or not webhooks:
        return Unknown(
            "the configuration of fleetprof's webhook, which says where fleetprof is installed, cannot be read"
        )
    places = {
        hook["clientConfig"]["service"]["namespace"]
        for configuration in webhooks
        for hook in configuration.get("webhooks") or ()
        if (hook.get("clientConfig") or {}).get("service")
    }
    found: list[Mapping[str, Any]] = []
    for place in sorted(places):
        path = f"/apis/apps/v1/namespaces/{place}/deployments"
        some = await _read_list(connection, path, {"labelSelector": "app.kubernetes.io/part-of=fleetprof"})
        if isinstance(some, Unknown):
            return some
        found += some
    return found


async def _read_pods(connection: Connection, target: Target, *, ask_torch: bool) -> Sequence[PodObservation] | Unknown:
    try:
        pods = await list_pods(connection, target)
    except (ApiRefused, Failure) as error:
        return Unknown(str(error))
    # Those that are in trouble or alive first: a finished pod has nothing to say.
    pods.sort(key=lambda pod: (pod.get("status", {}).get("phase") in ("Succeeded", "Failed"), pod["metadata"]["name"]))
    facts = []
    for number, pod in enumerate(pods):
        looked_into = number < _LOOKED_INTO
        injected = INJECTED_ANNOTATION in (pod["metadata"].get("annotations") or {})
        running = pod.get("status", {}).get("phase") == "Running"
        facts.append(
            PodObservation(
                pod=pod,
                sidecar_log=await _read_log(connection, pod) if looked_into and injected else None,
                torch=await _ask_torch(connection, pod) if ask_torch and looked_into and running else None,
            )
        )
    return facts


async def _read_log(connection: Connection, pod: Pod) -> str | Unknown:
    from kubernetes.aio.client import ApiException, CoreV1Api

    try:
        text: str = await CoreV1Api(connection.client).read_namespaced_pod_log(
            pod["metadata"]["name"], connection.namespace, container=SIDECAR_CONTAINER, tail_lines=_LOG_LINES
        )
    except ApiException as error:
        return Unknown(f"the log of container {SIDECAR_CONTAINER} cannot be read: {error.reason}")
    return text


async def _ask_torch(connection: Connection, pod: Pod) -> str | Unknown:
    """`torch VERSION` or `none PYTHON`, from the trainer's own container."""
    from kubernetes.aio.client import ApiException, CoreV1Api
    from kubernetes.aio.stream import WsApiClient

    container = pod["spec"]["containers"][max(0, choose_trainer(pod).index)]["name"]
    try:
        async with WsApiClient(connection.client.configuration) as client:
            output: str = await CoreV1Api(client).connect_get_namespaced_pod_exec(
                pod["metadata"]["name"],
                connection.namespace,
                container=container,
                command=list(_PROBE),
                stdout=True,
                stderr=False,
                stdin=False,
                tty=False,
            )
    except (ApiException, OSError) as error:
        return Unknown(f"container {container} could not be asked: {error}")
    return output.strip()


async def _find_latest(connection: Connection, target: Target) -> RequestState | None:
    """The last request about the same target that ended, or waits."""
    try:
        states = await Requests(connection).list()
    except Failure:
        return None
    wanted = target.model_dump(by_alias=True, exclude_none=True, mode="json")
    return next((s for s in states if (s.document.get("spec") or {}).get("target") == wanted), None)
