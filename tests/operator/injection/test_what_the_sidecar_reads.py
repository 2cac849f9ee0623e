"""The two ends of an injected pod meet: what injection writes is what sidecar and agent read."""

import re
from pathlib import Path
from typing import Any

from fleetprof_sidecar.hub.address import HubAddress
from fleetprof_sidecar.settings import read_settings
from fleetprof_sidecar.sockets.directory import check_path, trainer_environment
from harness.kubernetes.documents.pods_to_inject import Inject

FIELDS = {
    "metadata.namespace": "team-a",
    "metadata.name": "llama-0",
    "metadata.uid": "2f1c-uid",
    "spec.nodeName": "node-7",
    "status.hostIP": "10.0.0.7",
}


def environment(container: dict[str, Any]) -> dict[str, str]:
    """As the kubelet makes it."""
    made: dict[str, str] = {}
    for entry in container["env"]:
        value = entry.get("value") or FIELDS[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        made[entry["name"]] = re.sub(r"\$\((\w+)\)", lambda found: made.get(found[1], found[0]), value)
    return made


def test_the_sidecar_starts_from_its_containers_environment_alone(inject: Inject) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "llama", "controller": True}
    change = inject(metadata={"ownerReferences": [owner]}, hostNetwork=True)
    (sidecar,) = change.pod["spec"]["initContainers"]
    settings = read_settings([], environment(sidecar))
    assert (settings.namespace, settings.pod_name, settings.pod_uid) == ("team-a", "llama-0", "2f1c-uid")
    assert settings.node_name == "node-7"
    assert isinstance(settings.hub, HubAddress)
    assert settings.hub.target == "10.0.0.9:8443"
    assert settings.hub.name == "fleetprof-hub.fleetprof-system.svc"
    assert settings.store_addresses == {"fleetprof-store.fleetprof-system.svc": "10.0.0.8"}
    assert str(settings.hub.ca_file) == environment(sidecar)["FLEETPROF_CA_FILE"]
    assert settings.labels_file == Path("/var/run/secrets/fleetprof.io/labels")
    assert settings.ends_with_pod is True
    assert settings.grace_seconds == 25
    assert settings.workload is not None
    assert settings.workload.name == "llama"
    mounts = {mount["mountPath"] for mount in sidecar["volumeMounts"]}
    for needed in (settings.directory, settings.spool, settings.hub.token_file.parent, settings.labels_file.parent):
        assert str(needed) in mounts


def test_the_trainer_gets_what_a_trainer_of_local_mode_gets(inject: Inject) -> None:
    (trainer,) = inject().pod["spec"]["containers"]
    assert environment(trainer) == trainer_environment(check_path("/run/fleetprof"), {})


def test_the_sidecar_asks_the_exporter_of_its_own_node(inject: Inject) -> None:
    url = "http://$(FLEETPROF_NODE_IP):9400/metrics"
    (sidecar,) = inject(settings={"dcgm_url": url}).pod["spec"]["initContainers"]
    assert read_settings([], environment(sidecar)).dcgm_url == "http://10.0.0.7:9400/metrics"
    (sidecar,) = inject().pod["spec"]["initContainers"]
    assert read_settings([], environment(sidecar)).dcgm_url == ""
