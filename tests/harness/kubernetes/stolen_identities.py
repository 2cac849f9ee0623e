"""A release on an API server where nothing of it runs: calls in the name of each of its identities."""

import copy
from typing import Any

import yaml
from fleetprof_api.pods import REQUESTED_BY_ANNOTATION

from harness.kubernetes import chart
from harness.kubernetes.api_server import ApiServer

SYSTEM = chart.NAMESPACE
CERTIFICATES, OPERATOR, WEBHOOK, ANALYZER = (
    f"{SYSTEM}:fleetprof-{name}" for name in ("certificates", "operator", "webhook", "analyzer")
)
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
SECRETS = f"/api/v1/namespaces/{SYSTEM}/secrets"
JOBS = f"/apis/batch/v1/namespaces/{SYSTEM}/jobs"
TEAM = "/api/v1/namespaces/team-a"
REQUESTS = "/apis/fleetprof.io/v1alpha1/namespaces/team-a/profilerequests"
DENIED = (403, 422)  # by RBAC, or by a policy
Json = dict[str, Any]
EVERYTHING = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"], "scope": "*"}]


def must(server: ApiServer, method: str, path: str, document: object = None) -> Json:
    status, answer = server.call(method, path, document)
    assert status < 300, answer
    return answer


def widen(server: ApiServer, **changes: Any) -> list[Json]:
    """The webhooks with the first one changed; None takes a field away."""
    webhooks: list[Json] = copy.deepcopy(must(server, "GET", f"{HOOKS}/fleetprof")["webhooks"])
    webhooks[0] = {name: value for name, value in (webhooks[0] | changes).items() if value is not None}
    return webhooks


def job(server: ApiServer, **spec: Any) -> Json:
    """A Job as the operator makes them, with fields of the pod's spec changed."""
    config = must(server, "GET", f"/api/v1/namespaces/{SYSTEM}/configmaps/fleetprof-analyzer")
    pod = yaml.safe_load(config["data"]["pod.yaml"])
    pod["spec"] |= spec
    return {"metadata": {"name": "fleetprof-analyze-x"}, "spec": {"template": pod}}


def profile_request(name: str, by: str | None = None) -> Json:
    annotations = {REQUESTED_BY_ANNOTATION: by} if by is not None else {}
    spec = {"target": {"selector": {"matchLabels": {"a": "b"}}}, "window": {"iterations": 1}}
    return {
        "apiVersion": "fleetprof.io/v1alpha1",
        "kind": "ProfileRequest",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }
