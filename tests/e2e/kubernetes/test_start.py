"""Training pods start when something of ours is wrong: they start and train all the same."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from scene.api import Api, Object, parse
from scene.installation import Installation
from scene.namespaces import INJECTED
from scene.request import JobRequest
from scene.store import StoreInCluster
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]


class Crashing(Training):
    """The Job with the pod that injection makes, whose sidecar ends at once with an error."""

    def objects(self) -> list[Object]:
        config, service, job = super().objects()
        pod = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(job["spec"]["template"])}
        pod["metadata"] |= {"name": "template", "namespace": self.namespace}
        injected = parse(
            self.api.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", document=yaml.safe_dump(pod))
        )
        (sidecar,) = [each for each in injected["spec"]["initContainers"] if each["name"] == "fleetprof"]
        sidecar["command"] = ["python", "-c", "raise SystemExit('planted')"]
        sidecar["volumeMounts"] = [
            each for each in sidecar["volumeMounts"] if not each["name"].startswith("kube-api-access")
        ]
        template = job["spec"]["template"]
        template["metadata"]["annotations"] = injected["metadata"]["annotations"]
        for part in ("initContainers", "containers", "volumes"):
            template["spec"][part] = injected["spec"][part]
        return [config, service, job]


@dataclass(frozen=True)
class Jobs:
    """Three Jobs that train, and requests for two of them, which end at their deadlines."""

    unseen: Training
    exact: Training
    crashing: Training
    of_unseen: JobRequest
    of_crashing: JobRequest


def sidecars(training: Training) -> list[str]:
    (pod,) = training.list_pods()
    return [each["name"] for each in pod["spec"].get("initContainers") or [] if each["name"] == "fleetprof"]


@pytest.fixture(scope="module")
def jobs(
    api: Api, store: StoreInCluster, installation: Installation, team: str, namespaces: Callable[..., str]
) -> Iterator[Jobs]:
    """All start and wait together: a deadline is half a minute at least."""
    namespace = namespaces("e2e-quota", INJECTED)
    amounts = {"cpu": "500m", "memory": "2Gi"}
    hard = {"requests.cpu": "500m", "requests.memory": "2Gi", "limits.cpu": "500m", "limits.memory": "2Gi", "pods": "1"}
    metadata = {"name": "full", "namespace": namespace}
    api.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}})
    resources: Any = {"requests": amounts, "limits": amounts}
    crashing = Crashing(api, team, "crashing", ranks_per_pod=1)
    exact = Training(api, namespace, "exact", ranks_per_pod=1, resources=resources)
    unseen = Training(api, team, "unseen", ranks_per_pod=1)
    requests = [
        JobRequest(api, store, job.namespace, job.name, job.name, {"activeDeadlineSeconds": 30})
        for job in (unseen, crashing)
    ]
    try:
        for job in (crashing, exact):
            job.start()
        for job in (crashing, exact):
            job.await_steps()
        installation.stop_webhook()
        try:
            unseen.start()
            unseen.await_steps()
        finally:
            installation.start_webhook()
        for request in requests:
            request.apply()
        yield Jobs(unseen, exact, crashing, *requests)
    finally:
        for request in requests:
            api.kubectl("delete", "profreq", request.name, "-n", request.namespace, "--ignore-not-found")
        for job in (unseen, exact, crashing):
            job.remove()


def test_a_resource_quota_is_full_to_the_last_byte(jobs: Jobs) -> None:
    jobs.exact.finish()

    jobs.exact.assert_undisturbed()
    assert sidecars(jobs.exact) == []


def test_the_webhook_is_down_while_pods_start(jobs: Jobs) -> None:
    jobs.of_unseen.await_end()
    jobs.unseen.finish()

    jobs.unseen.assert_undisturbed()
    assert sidecars(jobs.unseen) == []
    assert jobs.of_unseen.outcome() == ("False", "NotInjected"), jobs.of_unseen.describe()


def test_a_sidecar_that_crashes_at_its_start_holds_nobody_up(jobs: Jobs) -> None:
    jobs.of_crashing.await_end()
    jobs.crashing.finish()

    jobs.crashing.assert_undisturbed()
    assert jobs.of_crashing.outcome() == ("False", "SidecarsMissing"), jobs.of_crashing.describe()
