"""The pods that the webhook is asked about, and what happens when it does not answer."""

import re
from typing import Any

import pytest
from fleetprof_api import pods
from harness.kubernetes.chart import NAMESPACE, S3, SHARD, VALUE_SETS, matches, render

pytestmark = pytest.mark.helm


EVERYTHING: dict[str, Any] = {"matchExpressions": []}
ON, OFF = {"fleetprof.io/inject": "true"}, {"fleetprof.io/inject": "false"}


@pytest.mark.parametrize(
    ("namespace", "labels", "pod", "calls"),
    [
        ("team-a", {}, {}, 0),
        ("team-a", {}, ON, 1),
        ("team-a", ON, {}, 1),
        ("team-a", ON, ON, 1),
        ("team-a", ON, OFF, 0),
        ("team-a", OFF, ON, 1),
        ("kube-system", ON, ON, 0),
        (NAMESPACE, ON, ON, 0),
    ],
)
def test_the_webhook_is_asked_once_about_a_labelled_pod_and_never_about_others(
    namespace: str, labels: dict[str, str], pod: dict[str, str], calls: int
) -> None:
    webhooks = render().one("MutatingWebhookConfiguration", "fleetprof")["webhooks"]
    names = [
        webhook["name"]
        for webhook in webhooks
        if webhook["rules"][0]["resources"] == ["pods"]
        and matches(webhook["namespaceSelector"], labels | {"kubernetes.io/metadata.name": namespace})
        and matches(webhook["objectSelector"], pod)
    ]
    assert len(names) == calls


@pytest.mark.parametrize(
    ("namespace", "of"),
    [("team-c", ["cluster"]), ("team-a", ["shard"]), ("team-b", ["shard"]), ("kube-system", [])],
)
def test_a_shard_s_webhook_is_asked_about_its_own_namespaces(namespace: str, of: list[str]) -> None:
    """Beside a release for the whole cluster, which leaves namespaces with the label of another alone."""
    releases = {"cluster": S3, "shard": SHARD}
    labels = ON | ({"fleetprof.io/release": "shard"} if of == ["shard"] else {})
    calls = [
        (name, webhook["rules"][0]["resources"][0])
        for name, values in releases.items()
        for webhook in render(values).one("MutatingWebhookConfiguration", "fleetprof")["webhooks"]
        if matches(webhook.get("namespaceSelector", EVERYTHING), labels | {"kubernetes.io/metadata.name": namespace})
        and matches(webhook.get("objectSelector", EVERYTHING), {})
    ]
    assert [name for name, resource in calls if resource == "pods"] == of
    # Who asks is noted by both, in the same words.
    noted = [name for name, resource in calls if resource == "profilerequests"]
    assert noted == (["cluster", "shard"] if of == ["shard"] else ["cluster"])


def test_a_shard_s_webhook_reads_quotas_of_its_own_namespaces_alone() -> None:
    objects = render(SHARD)
    roles = {key for kind in ("Role", "ClusterRole") for key in objects.of_kind(kind) if key.endswith("-webhook")}
    assert roles == {"team-a/fleetprof-webhook", "team-b/fleetprof-webhook"}


def test_the_requester_is_asked_about_by_the_name_that_the_webhook_writes() -> None:
    (webhook,) = (
        webhook
        for webhook in render().one("MutatingWebhookConfiguration", "fleetprof")["webhooks"]
        if webhook["rules"][0]["resources"] == ["profilerequests"]
    )
    (condition,) = webhook["matchConditions"]
    notes = set(re.findall("'(fleetprof.io/[^']+)'", condition["expression"]))
    assert notes == {pods.REQUESTED_BY_ANNOTATION, pods.POLICY_AUTHOR_ANNOTATION}


def test_no_pod_fails_or_waits_because_of_us_and_no_request_goes_unsigned() -> None:
    webhooks = render().one("MutatingWebhookConfiguration", "fleetprof")["webhooks"]
    behaviour = {
        webhook["rules"][0]["resources"][0]: (
            webhook["failurePolicy"],
            webhook["timeoutSeconds"],
            webhook["sideEffects"],
        )
        for webhook in webhooks
    }
    assert behaviour == {
        "pods": ("Ignore", 2, "None"),
        "profilerequests": ("Fail", 5, "None"),
        "profilepolicies": ("Fail", 5, "None"),
    }
    assert all("caBundle" not in webhook["clientConfig"] for webhook in webhooks)
    assert len({webhook["name"] for webhook in webhooks}) == len(webhooks)


def test_policies_and_excluded_namespaces_are_the_sites_to_choose() -> None:
    webhooks = render(VALUE_SETS["a site's own"]).one("MutatingWebhookConfiguration", "fleetprof")["webhooks"]
    behaviour = {webhook["rules"][0]["resources"][0]: webhook["failurePolicy"] for webhook in webhooks}
    assert behaviour == {"pods": "Fail", "profilerequests": "Fail", "profilepolicies": "Fail"}
    for webhook in webhooks[:2]:
        by_name, *_ = webhook["namespaceSelector"]["matchExpressions"]
        assert by_name["values"] == ["kube-system", NAMESPACE, "team-x"]
