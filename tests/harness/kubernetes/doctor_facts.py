"""Facts for the tests of `kubectl fleetprof doctor`: pods as the real injection leaves them, and how to edit them."""

import copy
import json
from collections.abc import Callable
from typing import Any

from fleetprof_api.pods import SIDECAR_CONTAINER
from fleetprof_cli.doctor.check import Check
from fleetprof_cli.kubernetes.doctor.observation import Observation, PodObservation
from fleetprof_operator.injection.pods.change import change_pod
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits
from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings

Json = dict[str, Any]
SETTINGS = InjectionSettings(
    image="registry.example/sidecar:1",
    hub="fleetprof-hub.fleetprof-system.svc:8443",
    ca="-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
)
PLAIN: Json = {
    "metadata": {"name": "train-0", "namespace": "team", "creationTimestamp": "2026-11-21T10:00:00Z"},
    "spec": {"containers": [{"name": "train", "image": "train:1"}]},
    "status": {"phase": "Running"},
}
NAMESPACE: Json = {"metadata": {"name": "team", "labels": {"fleetprof.io/inject": "true"}}}
WEBHOOK: Json = {
    "metadata": {"name": "fleetprof", "creationTimestamp": "2026-11-21T09:00:00Z"},
    "webhooks": [{"name": "pods.inject.fleetprof.io", "clientConfig": {"caBundle": "QQ=="}}],
}
CONNECTED = json.dumps({"message": "connected to the hub at fleetprof-hub:8443"})
RUNS: Json = {"state": {"running": {}}, "restartCount": 0}


def inject(pod: Json) -> Json:
    """The pod as the webhook leaves it, its sidecar running."""
    changed = copy.deepcopy(dict(change_pod(pod, NamespaceLimits(), SETTINGS).pod))
    changed["status"] = {"phase": "Running", "initContainerStatuses": [{"name": SIDECAR_CONTAINER, **RUNS}]}
    return changed


def make_facts(pod: Json | None = None, log: Any = CONNECTED, torch: Any = None, **changes: Any) -> Observation:
    pods = [PodObservation(pod=pod, sidecar_log=log, torch=torch)] if pod else []
    facts: dict[str, Any] = {
        "namespace": NAMESPACE,
        "has_kind": True,
        "rights": {"create": True, "get": True, "delete": True},
        "webhooks": [WEBHOOK],
        "deployments": [],
        "pods": pods,
    }
    return Observation(**(facts | changes))


def say(checks: list[Check]) -> str:
    return "\n".join(f"{check.verdict} {check.name}: {check.found} -> {check.advice}" for check in checks)


def edit(pod: Json, **edits: Callable[[Json], Any]) -> Json:
    changed = copy.deepcopy(pod)
    for change in edits.values():
        change(changed)
    return changed


def with_status(**status: Any) -> Json:
    """An injected pod whose sidecar has this status."""
    pod = inject(PLAIN)
    pod["status"] = {"phase": "Pending", "initContainerStatuses": [{"name": SIDECAR_CONTAINER, **status}]}
    return pod


def trainer(pod: Json) -> Json:
    found: Json = pod["spec"]["containers"][0]
    return found


NO_LABEL: Json = {"metadata": {"name": "team", "labels": {}}}
