"""Why a pod has no sidecar: the first rule that left it alone, as far as pod, namespace and webhook tell.

Guarantees: pure; the same rules as the injection's own (the operator's `injection` room is asked, not repeated).
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from fleetprof_api.pods import INJECT_LABEL
from fleetprof_operator.injection.trainer_container import choose_trainer
from fleetprof_operator.injection.trainer_environment import plan_environment

from fleetprof_cli.cluster.observation import Facts, Unknown

NEW_PODS: Final = "only new pods are injected: start the job again"


def explain_missing(pod: Mapping[str, Any], around: Facts) -> tuple[str, str]:
    """What was found, and what to do."""
    for found, advice in _find_reasons(pod, around):
        return found, advice
    found = (
        "though it should have one: made before the label was set, with the webhook away (pods then start without it), "
        "or left alone, for example for a full ResourceQuota"
    )
    advice = f"{NEW_PODS}; if that does not help, kubectl's warning at the creation and the webhook's log say why"
    return found, advice


def _find_reasons(pod: Mapping[str, Any], around: Facts) -> Iterator[tuple[str, str]]:
    own = (pod["metadata"].get("labels") or {}).get(INJECT_LABEL)
    if own == "false":
        yield f"its label {INJECT_LABEL} is false", "take the label away, then start the job again"
    if own != "true" and isinstance(around.namespace, Mapping):
        namespace = around.namespace["metadata"]
        if (namespace.get("labels") or {}).get(INJECT_LABEL) != "true":
            advice = f"kubectl label namespace {namespace['name']} {INJECT_LABEL}=true, or label the pod template; "
            yield f"neither it nor its namespace is labelled {INJECT_LABEL}=true", advice + NEW_PODS
    choice = choose_trainer(pod)
    if choice.why_not:
        yield choice.why_not, "correct the annotation, then start the job again"
    else:
        trainer = pod["spec"]["containers"][choice.index]
        if why_not := plan_environment(trainer, with_agent=True).why_not:
            yield why_not, "take the variable out, then start the job again"
    if isinstance(around.webhooks, Unknown):
        return
    if not around.webhooks:
        yield "there is no webhook to add it", "`fleetprof inject -f job.yaml` adds it (docs/injection.md)"
    elif moment_of(pod) < min(moment_of(webhook) for webhook in around.webhooks):
        yield "it is older than fleetprof's webhook", NEW_PODS


def moment_of(thing: Mapping[str, Any]) -> datetime:
    """When an object was made."""
    return datetime.fromisoformat(str(thing["metadata"]["creationTimestamp"]))
