"""The names that injection, sidecar and operator share in a pod: names of labels, annotations, volumes and paths.

Guarantees: pure names; the socket directory's path fits beside Kineto's names into a socket address, and goes through
no symbolic link (`/var/run` is one in most images, and libkineto compares paths as strings).
"""

from collections.abc import Mapping
from typing import Final

INJECT_LABEL: Final = "fleetprof.io/inject"
"""On a namespace or a pod: "true" opts in; "false" on a pod opts out."""

CONTAINER_ANNOTATION: Final = "fleetprof.io/container"
"""By the user: the name of the container that trains."""

AGENT_ANNOTATION: Final = "fleetprof.io/agent"
"""By the user: "false" leaves the agent, and so PYTHONPATH, out of the pod."""

INJECTED_ANNOTATION: Final = "fleetprof.io/injected"
"""By the injection: the version that made the change."""

WITHOUT_SIDECAR_ANNOTATION: Final = "fleetprof.io/without-sidecar"
"""By the operator, on a pod that it let go on without its sidecar: why that had not started."""

HUB_CA_ANNOTATION: Final = "fleetprof.io/hub-ca"

REQUESTED_BY_ANNOTATION: Final = "fleetprof.io/requested-by"
"""On our own kinds, by admission: who created the object."""

CHANGED_BY_ANNOTATION: Final = "fleetprof.io/changed-by"
"""On a ProfilePolicy, by admission: who wrote its spec as it is."""

POLICY_AUTHOR_ANNOTATION: Final = "fleetprof.io/policy-author"
"""On a ProfileRequest, by the operator that made it for a policy: who wrote the policy's spec."""

RANK_METRICS_LABEL: Final = "fleetprof.io/rank-metrics"
"""By the user, a label, because the sidecar sees labels: "true" asks for metrics of each rank."""

SAMPLES_LABEL: Final = "fleetprof.io/samples-per-iteration"
"""By the user, a label: the training samples of one iteration over all ranks."""


def read_samples_per_iteration(labels: Mapping[str, str]) -> int | None:
    """The number of SAMPLES_LABEL; None where it says no number from 1 on."""
    text = labels.get(SAMPLES_LABEL, "")
    return (int(text) or None) if text.isascii() and text.isdecimal() and len(text) < 12 else None


ALERTS_ANNOTATION: Final = "fleetprof.io/alerts"
ALERTS_OFF: Final = "off"
"""By the user: the job is left alone by our alerts and by policies."""

POLICY_LABEL: Final = "fleetprof.io/policy"
"""On a ProfileRequest: the name of the ProfilePolicy that made it."""

SIDECAR_CONTAINER: Final = "fleetprof"
SHARED_VOLUME: Final = "fleetprof"
SPOOL_VOLUME: Final = "fleetprof-spool"
IDENTITY_VOLUME: Final = "fleetprof-identity"
NO_ACCOUNT_VOLUME: Final = "fleetprof-no-api-token"

AUDIENCE: Final = "fleetprof.io"
ANALYSIS_AUDIENCE: Final = "analyses.fleetprof.io"
"""Of an analyzer Job's pod: its token is no sidecar's, and a sidecar's is not its."""

SOCKET_DIRECTORY: Final = "/run/fleetprof"
SPOOL_DIRECTORY: Final = "/var/spool/fleetprof"
IDENTITY_DIRECTORY: Final = "/var/run/secrets/fleetprof.io"
SERVICE_ACCOUNT_DIRECTORY: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where Kubernetes puts the API's token; the sidecar has something of ours there instead."""

KINETO_CONFIG_FILE: Final = "libkineto.conf"
AGENT_FOLDER: Final = "agent"
"""Within the socket directory: what PYTHONPATH names. The sidecar writes it before anything else."""

POLL_INTERVAL_S: Final = 1
KINETO_BASE_CONFIG: Final = f"ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS={POLL_INTERVAL_S}\n"
"""Kineto asks for orders every second instead of every five."""


def kineto_variables(socket_directory: str, config_file: str) -> Mapping[str, str]:
    """The environment that makes PyTorch ask in `sockets.directory` for orders, and fences its traces there."""
    return {
        "KINETO_USE_DAEMON": "1",
        "KINETO_IPC_SOCKET_DIR": socket_directory,
        "KINETO_ONDEMAND_TRACE_DIR": f"{socket_directory}/traces",
        "KINETO_CONFIG": config_file,
    }
