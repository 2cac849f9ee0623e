"""The user's cluster: kubeconfig, context and namespace as kubectl takes them, and the API's refusals as sentences.

Guarantees: no call waits for ever; a refusal names verb, resource and namespace (the API server says them) and what to
do next; the kubeconfig file is never written.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_operator.kubernetes.cluster import Cluster, make_client

from fleetprof_cli.capture.seam import Away
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure

if TYPE_CHECKING:
    from kubernetes.aio.client import ApiClient, Configuration

GROUP: Final = "fleetprof.io"
PLURAL: Final = "profilerequests"
_INSTALL: Final = "install it: helm install fleetprof (docs/install.md), or name another cluster: --context"
_OTHER: Final = "name another: --kubeconfig, --context or KUBECONFIG"
_OWN_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlace:
    """The cluster, the namespace and the user of kubectl's options; None is kubectl's own default."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    as_user: str | None = None
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """An open cluster, and the namespace that is meant. `client` is for what is not JSON: logs, exec."""

    cluster: Cluster
    namespace: str
    client: "ApiClient"

    def requests_path(self, name: str = "") -> str:
        """The API's path of all requests of the namespace, or of one."""
        return requests_path(self.namespace, name)


def requests_path(namespace: str, name: str = "") -> str:
    """The API's path of ProfileRequests; of all namespaces when `namespace` is empty."""
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{GROUP}/v1alpha1{within}/{PLURAL}" + (f"/{name}" if name else "")


@asynccontextmanager
async def connect(place: ClusterPlace) -> AsyncIterator[Connection]:
    """Opens what the kubeconfig names; inside a pod without one, the pod's own account. Raises Failure."""
    require_kubeconfig(place)
    configuration, namespace = await _read_config(place)
    # Somebody waits for the answer: better said soon than tried for long.
    configuration.retries = 1
    if place.token:
        # Beside a certificate the API server would not look at it.
        configuration.cert_file = configuration.key_file = configuration.refresh_api_key_hook = None
        configuration.api_key["BearerToken"] = f"Bearer {place.token}"
    client = make_client(configuration, "kubectl-fleetprof")
    if place.as_user:
        client.set_default_header("Impersonate-User", place.as_user)
    cluster = Cluster(client)
    try:
        with explain_refusals(place.namespace or namespace):
            yield Connection(cluster, place.namespace or namespace, client)
    finally:
        await cluster.close()


def require_kubeconfig(place: ClusterPlace) -> None:
    """Raises Failure where there is none and this is no pod either."""
    named = place.kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    if not any(Path(name).is_file() for name in named.split(os.pathsep) if name) and not _OWN_NAMESPACE.is_file():
        raise Failure(f"there is no kubeconfig {named}", next_step=_OTHER, code=ExitCode.NO_HUB)


async def _read_config(place: ClusterPlace) -> "tuple[Configuration, str]":
    from kubernetes.aio import config
    from kubernetes.aio.client import Configuration

    configuration = Configuration()
    try:
        try:
            await config.load_kube_config(place.kubeconfig, place.context, configuration)
        except config.ConfigException:
            if place.kubeconfig or place.context or not _OWN_NAMESPACE.is_file():
                raise
            config.load_incluster_config(configuration)
            return configuration, _OWN_NAMESPACE.read_text().strip()
        contexts, active = config.list_kube_config_contexts(place.kubeconfig)
    except config.ConfigException as error:
        raise Failure(f"cannot use the kubeconfig: {error}", next_step=_OTHER, code=ExitCode.NO_HUB) from None
    except OSError as error:
        raise Failure(f"cannot read the kubeconfig: {error}", next_step=_OTHER, code=ExitCode.NO_HUB) from None
    except Exception as error:  # a credential plug-in or a file that is no kubeconfig: many kinds of errors
        text = f"{type(error).__name__}: {error}"
        raise Failure(f"the kubeconfig gives no access: {text}", next_step=_OTHER, code=ExitCode.NO_HUB) from None
    chosen = next((c for c in contexts if c["name"] == place.context), active)
    return configuration, (chosen.get("context") or {}).get("namespace") or "default"


@contextmanager
def explain_refusals(namespace: str) -> Iterator[None]:
    """Turns what the API says within the block into a Failure; `namespace` is the one that next steps name."""
    try:
        yield
    except ApiRefused as error:
        raise explain_refusal(error, namespace) from None
    except ApiUnreachable as error:
        raise Away(
            f"the API server does not answer: {error}", "is this the right cluster? kubectl cluster-info"
        ) from None


def explain_refusal(error: ApiRefused, namespace: str) -> Failure:
    """The sentence and next step for a refusal."""
    text = str(error)
    if error.status == 401:
        return Failure(
            f"the API server does not accept your credentials: {text}",
            next_step="log in to the cluster again, or name another context: --context",
            code=ExitCode.NO_HUB,
        )
    if "denied the request" in text:
        return Failure(
            text, next_step="ask an administrator about the cluster's admission rules", code=ExitCode.REFUSED
        )
    if error.status == 403:
        return Failure(text, next_step=_whom_to_ask(text), code=ExitCode.REFUSED)
    if error.status == 404 and not error.reason:
        return Failure("this cluster has no ProfileRequests", next_step=_INSTALL, code=ExitCode.REFUSED)
    if error.status == 404:
        step = f"see what there is: kubectl fleetprof list -n {namespace}"
        return Failure(text, next_step=step, code=ExitCode.REFUSED)
    if error.status == 409:
        return Failure(text, next_step="choose another metadata.name", code=ExitCode.REFUSED)
    if error.status in (400, 422):
        return Failure(text, next_step="kubectl explain profreq.spec describes every field", code=ExitCode.INVALID)
    return Failure(f"the API server refused: {text}", code=ExitCode.FAILED)


def _whom_to_ask(text: str) -> str:
    if PLURAL in text:
        reading = any(f"cannot {verb} " in text for verb in ("get", "list", "watch"))
        role = "fleetprof-viewer" if reading else "fleetprof-editor"
        return f"an administrator can bind you the ClusterRole {role} in the namespace (docs/rbac-and-s3.md)"
    return "an administrator can grant you this verb on this resource"
