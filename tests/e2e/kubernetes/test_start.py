"""How training pods start when something of ours is wrong: they start and train all the same."""

import copy
from collections.abc import Callable

import pytest
import yaml
from scene.api import Api, parse
from scene.installation import Installation
from scene.namespaces import INJECTED
from scene.request import Request
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]


def sidecars(training: Training) -> list[str]:
    (pod,) = training.list_pods()
    return [each["name"] for each in pod["spec"].get("initContainers") or [] if each["name"] == "fleetprof"]


def test_the_webhook_is_down_while_pods_start(
    installation: Installation, team: str, start_training: Callable[..., Training], make_request: Callable[..., Request]
) -> None:
    installation.stop_webhook()
    try:
        training = start_training(team, "unseen", ranks_per_pod=1)
    finally:
        installation.start_webhook()
    request = make_request(training, "unseen", activeDeadlineSeconds=30)
    request.await_end()
    training.finish()

    training.assert_undisturbed()
    assert sidecars(training) == []
    assert request.outcome() == ("False", "NotInjected"), request.describe()


def test_a_resource_quota_is_full_to_the_last_byte(
    api: Api, namespaces: Callable[..., str], installation: Installation, start_training: Callable[..., Training]
) -> None:
    namespace = namespaces("e2e-quota", INJECTED)
    amounts = {"cpu": "500m", "memory": "2Gi"}
    hard = {"requests.cpu": "500m", "requests.memory": "2Gi", "limits.cpu": "500m", "limits.memory": "2Gi", "pods": "1"}
    metadata = {"name": "full", "namespace": namespace}
    api.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}})
    resources = {"requests": amounts, "limits": amounts}

    training = start_training(namespace, "exact", ranks_per_pod=1, resources=resources)
    training.finish()

    training.assert_undisturbed()
    assert sidecars(training) == []


def test_a_sidecar_that_crashes_at_its_start_holds_nobody_up(
    api: Api, team: str, start_training: Callable[..., Training], make_request: Callable[..., Request]
) -> None:
    class Crashing(Training):
        """The Job with the pod that injection makes, whose sidecar ends at once with an error."""

        def objects(self) -> list[dict[str, object]]:
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

    training = Crashing(api, team, "crashing", ranks_per_pod=1)
    try:
        training.start()
        training.await_steps()
        request = make_request(training, "crashing", activeDeadlineSeconds=30)
        request.await_end()
        training.finish()
        training.assert_undisturbed()
    finally:
        training.remove()

    assert request.outcome() == ("False", "SidecarsMissing"), request.describe()
