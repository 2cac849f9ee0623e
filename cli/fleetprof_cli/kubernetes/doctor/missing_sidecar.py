"""The reason why a pod has no sidecar: the first rule that left it alone, as far as pod, namespace and webhook tell.

Guarantees: pure; the same rules as the injection's own (the operator's `injection` room is asked, not repeated).
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from fleetprof_api.pods import INJECT_LABEL
from fleetprof_operator.injection.pods.change import change_pod
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits
from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings

from fleetprof_cli.kubernetes.doctor.observation import Observation, Unknown

_ANY_AUTHORITY: Final = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"
# Whether a pod is left alone does not depend on image, hub and certificates.
_ANY_SETTINGS: Final = InjectionSettings(image="any", hub="any:1", ca=_ANY_AUTHORITY)
_ADVICE: Final = {
    "OptedOut": "take the label away",
    "NoTrainer": "correct the annotation",
    "OwnKineto": "take the variable out",
    "NoRoom": "make room in the namespace's quota",
}
NEW_PODS: Final = "only new pods are injected: start the job again"


def explain_missing(pod: Mapping[str, Any], around: Observation) -> tuple[str, str]:
    """The finding, with what to do."""
    for found, advice in _find_reasons(pod, around):
        return found, advice
    found = (
        "though it should have one: made before the label was set, with the webhook away (pods then start without it), "
        "or left alone for a ResourceQuota that was full then"
    )
    advice = f"{NEW_PODS}; if that does not help, kubectl's warning at the creation and the webhook's log say why"
    return found, advice


def _find_reasons(pod: Mapping[str, Any], around: Observation) -> Iterator[tuple[str, str]]:
    own = (pod["metadata"].get("labels") or {}).get(INJECT_LABEL)
    if own not in ("true", "false") and isinstance(around.namespace, Mapping):
        namespace = around.namespace["metadata"]
        if (namespace.get("labels") or {}).get(INJECT_LABEL) != "true":
            advice = f"kubectl label namespace {namespace['name']} {INJECT_LABEL}=true, or label the pod template; "
            yield f"neither it nor its namespace is labelled {INJECT_LABEL}=true", advice + NEW_PODS
    limits = around.limits if isinstance(around.limits, NamespaceLimits) else NamespaceLimits()
    left_alone = change_pod(pod, limits, _ANY_SETTINGS)
    if left_alone.why_not:
        advice = _ADVICE.get(left_alone.reason, "docs/injection.md says which pods are left alone")
        yield left_alone.why_not, f"{advice}, then start the job again"
    if isinstance(around.webhooks, Unknown):
        return
    if not around.webhooks:
        yield "there is no webhook to add it", "`fleetprof inject -f job.yaml` adds it (docs/injection.md)"
    elif _moment(pod) < min(_moment(webhook) for webhook in around.webhooks):
        yield "it is older than fleetprof's webhook", NEW_PODS


def _moment(thing: Mapping[str, Any]) -> datetime:
    """The time at which an object was made."""
    return datetime.fromisoformat(str(thing["metadata"]["creationTimestamp"]))
