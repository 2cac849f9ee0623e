"""The meaning of words on the command line: kinds, selectors, the request that they make."""

from typing import Any

import click
import pytest
from fleetprof_api.request import Selector
from fleetprof_cli.kubernetes.kinds import WorkloadKind, known_kind, parse_selector, split_target


@pytest.mark.parametrize(
    ("words", "api_version", "kind"),
    [
        (["job", "jobs", "job.batch", "jobs.batch"], "batch/v1", "Job"),
        (["pod", "po", "pods"], "v1", "Pod"),
        (["jobset", "jobsets.jobset.x-k8s.io"], "jobset.x-k8s.io/v1alpha2", "JobSet"),
        (["trainjob", "trainjobs"], "trainer.kubeflow.org/v1alpha1", "TrainJob"),
        (["pytorchjob", "pytorchjobs"], "kubeflow.org/v1", "PyTorchJob"),
        (["mpijob"], "kubeflow.org/v2beta1", "MPIJob"),
        (["rayjob"], "ray.io/v1", "RayJob"),
        (["raycluster"], "ray.io/v1", "RayCluster"),
        (["lws", "leaderworkerset"], "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
        (["vcjob", "jobs.batch.volcano.sh"], "batch.volcano.sh/v1alpha1", "Job"),
        (["sts", "statefulset", "statefulsets.apps"], "apps/v1", "StatefulSet"),
        (["deploy", "deployment"], "apps/v1", "Deployment"),
        (["rs"], "apps/v1", "ReplicaSet"),
        (["ds"], "apps/v1", "DaemonSet"),
    ],
)
def test_a_kind_has_kubectls_names(words: list[str], api_version: str, kind: str) -> None:
    for word in words:
        found = known_kind(word)
        assert found is not None, word
        assert (found.api_version, found.kind) == (api_version, kind)


def test_a_kind_knows_its_place_in_the_api() -> None:
    assert WorkloadKind("batch/v1", "Job", "jobs").path("team", "llama") == "/apis/batch/v1/namespaces/team/jobs/llama"
    assert WorkloadKind("v1", "Pod", "pods").path("team") == "/api/v1/namespaces/team/pods"


@pytest.mark.parametrize("text", ["llama", "job/", "/llama", "job/a/b", ""])
def test_a_target_is_kind_and_name(text: str) -> None:
    with pytest.raises(click.UsageError, match="must be KIND/NAME, for example job/llama"):
        split_target(text)


def test_kinds_are_written_in_any_case() -> None:
    assert split_target("Job/llama") == ("job", "llama")


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("app=llama", {"matchLabels": {"app": "llama"}}),
        ("app==llama, tier=a", {"matchLabels": {"app": "llama", "tier": "a"}}),
        ("app!=x", {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}),
        ("a in (b, c)", {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c"]}]}),
        ("a notin (b)", {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}),
        ("app.kubernetes.io/name", {"matchExpressions": [{"key": "app.kubernetes.io/name", "operator": "Exists"}]}),
        ("!a", {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}),
        (
            "a in (b),c=d,e",
            {
                "matchLabels": {"c": "d"},
                "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["b"]},
                    {"key": "e", "operator": "Exists"},
                ],
            },
        ),
    ],
)
def test_a_selector_is_written_as_for_kubectl(text: str, selector: dict[str, Any]) -> None:
    assert parse_selector(text) == selector
    Selector.model_validate(selector)


@pytest.mark.parametrize("text", ["", "  ", "=", "a=b c=d", "a in", "a in (b", "(b)"])
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError):
        parse_selector(text)
