"""Tells if fleetprof is there and may be used: what `kubectl fleetprof doctor` says of the cluster and the namespace.

Guarantees: pure; what could not be read is said as such and fails nothing.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from fleetprof_api.pods import INJECT_LABEL
from fleetprof_operator.ownership.lease import TROUBLE_ANNOTATION

from fleetprof_cli.doctor.check import Check, Verdict
from fleetprof_cli.kubernetes.doctor.observation import Observation, Unknown

_STALLED_S: Final = 60.0  # two machines' clocks are compared
_INSTALL: Final = "install it with the chart: docs/install.md"
_NOT_SEEN: Final = "ask an administrator, who may read it"


def judge_installation(facts: Observation, now_unix_ns: int) -> Iterable[Check]:
    """Kind, rights, webhook, operator, and what the operator says of itself."""
    yield _judge_kind(facts)
    if facts.has_kind is True:
        yield from _judge_rights(facts.rights)
        yield from _judge_webhook(facts.webhooks)
        yield from _judge_deployments(facts.deployments)
        yield from _judge_leases(facts.leases, now_unix_ns)


def _judge_kind(facts: Observation) -> Check:
    if isinstance(facts.has_kind, Unknown):
        return Check("fleetprof", Verdict.WARN, f"cannot be looked for: {facts.has_kind.why}", _NOT_SEEN)
    if not facts.has_kind:
        return Check("fleetprof", Verdict.FAIL, "this cluster has no ProfileRequests", _INSTALL)
    return Check("fleetprof", Verdict.OK, "this cluster has ProfileRequests")


def _judge_rights(rights: Mapping[str, bool]) -> Iterable[Check]:
    missing = [verb for verb, allowed in rights.items() if not allowed]
    if missing:
        found = f"you may not {', '.join(missing)} profilerequests.fleetprof.io in this namespace"
        role = "fleetprof-viewer" if missing == ["get"] else "fleetprof-editor"
        advice = f"an administrator can bind you the ClusterRole {role} here (docs/rbac-and-s3.md)"
        yield Check("your rights", Verdict.FAIL, found, advice)
    else:
        yield Check("your rights", Verdict.OK, "you may ask for captures in this namespace")


def _judge_webhook(webhooks: Any) -> Iterable[Check]:
    if isinstance(webhooks, Unknown):
        yield Check("webhook", Verdict.OK, f"not checked: {webhooks.why}", _NOT_SEEN)
        return
    hooks = [hook for configuration in webhooks for hook in configuration.get("webhooks") or ()]
    injecting = [hook for hook in hooks if "inject" in str(hook.get("name"))]
    if not injecting:
        advice = "install the chart with webhook.enabled, or use `fleetprof inject -f job.yaml` (docs/injection.md)"
        yield Check("webhook", Verdict.WARN, "there is none: no pod gets its sidecar by itself", advice)
    elif any(not (hook.get("clientConfig") or {}).get("caBundle") for hook in injecting):
        advice = "the operator (or cert-manager) fills it in: look at the operator's log"
        yield Check(
            "webhook", Verdict.FAIL, "its configuration has no CA bundle, so the API server cannot call it", advice
        )
    else:
        yield Check("webhook", Verdict.OK, "is configured")


def _judge_deployments(deployments: Any) -> Iterable[Check]:
    if isinstance(deployments, Unknown):
        yield Check("operator", Verdict.OK, f"not checked: {deployments.why}", _NOT_SEEN)
        return
    for deployment in deployments:
        metadata, status = deployment["metadata"], deployment.get("status") or {}
        name, namespace = metadata["name"], metadata["namespace"]
        component = (metadata.get("labels") or {}).get("app.kubernetes.io/component", name)
        wanted, ready = deployment["spec"].get("replicas", 1), status.get("readyReplicas") or 0
        found = f"{ready} of {wanted} pods of {namespace}/{name} are ready"
        if not wanted:
            advice = f"kubectl scale deployment {name} -n {namespace} --replicas=1"
            yield Check(component, Verdict.FAIL, f"{namespace}/{name} is scaled to zero", advice)
        elif ready >= wanted:
            yield Check(component, Verdict.OK, found)
        elif ready:
            yield Check(component, Verdict.WARN, found, f"kubectl describe deployment {name} -n {namespace}")
        else:
            yield Check(component, Verdict.FAIL, found, f"kubectl describe deployment {name} -n {namespace}")


def _judge_leases(leases: Any, now_unix_ns: int) -> Iterable[Check]:
    """An operator says in its Lease that it lives, and what is wrong with it."""
    if isinstance(leases, Unknown):
        yield Check("serving", Verdict.OK, f"not checked: {leases.why}", _NOT_SEEN)
        return
    for lease in leases:
        metadata, spec = lease["metadata"], lease.get("spec") or {}
        place, holder = f"the Lease {metadata['namespace']}/{metadata['name']}", spec.get("holderIdentity")
        trouble = (metadata.get("annotations") or {}).get(TROUBLE_ANNOTATION)
        renewed = spec.get("renewTime")
        age_s = now_unix_ns / 10**9 - datetime.fromisoformat(renewed).timestamp() if renewed else 0.0
        if not holder:
            advice = "look at the operator's log: it says what it waits for"
            yield Check("serving", Verdict.FAIL, f"nobody holds {place}: no operator serves", advice)
        elif age_s >= _STALLED_S:
            found = f"{holder} has not renewed {place} for {age_s:.0f} s: it stalls, or does not reach the API server"
            yield Check("serving", Verdict.FAIL, found, f"look at the log of {holder}, and at this machine's clock")
        elif trouble:
            yield Check("serving", Verdict.FAIL, f"{holder} says: {trouble}", "docs/alerts.md says what to do")
        else:
            yield Check("serving", Verdict.OK, f"{holder} holds {place}")


def judge_namespace(facts: Observation, name: str) -> Iterable[Check]:
    """Tells whether pods of the namespace get sidecars."""
    if isinstance(facts.namespace, Unknown):
        yield Check("namespace", Verdict.OK, f"not checked: {facts.namespace.why}")
        return
    labels = (facts.namespace.get("metadata") or {}).get("labels") or {}
    if labels.get(INJECT_LABEL) == "true":
        yield Check("namespace", Verdict.OK, f"{name} is labelled {INJECT_LABEL}=true: its new pods get sidecars")
    else:
        yield Check(
            "namespace",
            Verdict.OK,
            f"{name} is not labelled {INJECT_LABEL}=true: only pods that are labelled so get sidecars",
            f"to have all new pods here injected: kubectl label namespace {name} {INJECT_LABEL}=true",
        )
