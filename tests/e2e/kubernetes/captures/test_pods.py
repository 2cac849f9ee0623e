"""Pods as they occur: other uids and umasks, several containers, Guaranteed, the node's network, without the agent."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from scene.api import Object
from scene.installation import Installation
from scene.namespaces import INJECTED
from scene.request import JobRequest
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]

EQUAL = {"cpu": "600m", "memory": "3Gi"}
LITTLE = {"cpu": "20m", "memory": "64Mi"}


@dataclass
class OddTraining(Training):
    """A training Job whose pods differ: `prefix` stands before its command, `neighbour` is a second container."""

    prefix: str = ""
    neighbour: bool = False
    spec: Object = field(default_factory=dict)

    def _pod_spec(self) -> Object:
        spec = super()._pod_spec()
        (trainer,) = spec["containers"]
        if self.prefix:
            trainer["command"] = ["sh", "-c", f'{self.prefix}; exec "$0" "$@"', *trainer["command"]]
        if self.neighbour:
            waits = ["sh", "-c", "until test -e /scratch/stop; do sleep 0.2; done"]
            little = {"requests": LITTLE, "limits": LITTLE}
            spec["containers"] = [{**trainer, "name": "log", "command": waits, "resources": little}, trainer]
        return {**spec, **self.spec}


@pytest.fixture
def capture(make_request: Callable[..., JobRequest]) -> Iterator[Callable[..., tuple[OddTraining, JobRequest]]]:
    """Trains, captures five iterations, lets the training end."""
    started: list[OddTraining] = []

    def run(training: OddTraining, **spec: Any) -> tuple[OddTraining, JobRequest]:
        started.append(training)
        training.start()
        training.await_steps()
        request = make_request(training, f"of-{training.name}", **spec)
        request.await_end()
        training.finish()
        training.assert_undisturbed()
        return training, request

    yield run
    for training in started:
        training.remove()


def test_another_uid_a_strict_umask_a_second_container_and_no_spare_resources(
    team: str, api: Any, capture: Callable[..., tuple[OddTraining, JobRequest]]
) -> None:
    """As OpenShift runs pods: a uid that nobody knows, in the root group; files that only their owner may read."""
    training, request = capture(
        OddTraining(
            api,
            team,
            "odd",
            ranks_per_pod=2,
            prefix="umask 077",
            neighbour=True,
            pod_annotations={"fleetprof.io/container": "trainer"},
            resources={"requests": EQUAL, "limits": EQUAL},
            spec={
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 1_000_650_000,
                    "runAsGroup": 0,
                    "fsGroup": 1_000_650_000,
                    "seccompProfile": {"type": "RuntimeDefault"},
                }
            },
        )
    )

    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.ledger().start_mode == "step"
    (pod,) = training.list_pods()
    assert pod["status"]["qosClass"] == "Guaranteed"
    neighbour, trainer = pod["spec"]["containers"]
    assert "KINETO_USE_DAEMON" not in {entry["name"] for entry in neighbour["env"]}
    assert "KINETO_USE_DAEMON" in {entry["name"] for entry in trainer["env"]}


def test_without_the_agent_ranks_below_a_launcher_start_at_one_time(
    team: str, api: Any, capture: Callable[..., tuple[OddTraining, JobRequest]]
) -> None:
    """Containers of a pod do not see each other's processes: the launcher is known by the container's command."""
    training, request = capture(
        OddTraining(
            api, team, "plain", ranks_per_pod=2, neighbour=False, pod_annotations={"fleetprof.io/agent": "false"}
        )
    )

    assert request.outcome() == ("True", "Complete"), request.describe()
    ledger = request.ledger()
    assert ledger.start_mode == "time"
    assert [entry.rank_source for entry in ledger.entries] == ["RANK_ASSIGNED"] * 2
    (pod,) = training.list_pods()
    assert "PYTHONPATH" not in {entry["name"] for entry in pod["spec"]["containers"][0]["env"]}


def test_on_the_nodes_own_network(
    installation: Installation,
    namespaces: Callable[..., str],
    api: Any,
    capture: Callable[..., tuple[OddTraining, JobRequest]],
) -> None:
    """As with RDMA: no name of the cluster can be resolved there, so the sidecar has the addresses of hub and store."""
    team = namespaces("test-host-network", INJECTED | {"pod-security.kubernetes.io/enforce": "privileged"})

    _, request = capture(OddTraining(api, team, "host", ranks_per_pod=2, spec={"hostNetwork": True}))

    assert request.outcome() == ("True", "Complete"), request.describe()
    assert request.ledger().start_mode == "step"
