"""A pod after injection, field by field, and which pods are left alone."""

from typing import Any

import pytest
from fleetprof_api import __version__
from fleetprof_operator.injection.admission import MAX_WARNING
from fleetprof_operator.injection.pods.change import Change
from harness.kubernetes.documents.pods_to_inject import SETTINGS, Inject

AGENT = "/run/fleetprof/agent"
HUB = "fleetprof-hub.fleetprof-system.svc"
BY_NAME = {"FLEETPROF_HUB": f"{HUB}:8443"}
BY_ADDRESS = {
    "FLEETPROF_HUB": "10.0.0.9:8443",
    "FLEETPROF_HUB_NAME": HUB,
    "FLEETPROF_STORE_ADDRESS": "fleetprof-store.fleetprof-system.svc=10.0.0.8",
}


def sidecar(change: Change) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [c for c in change.pod["spec"].get("initContainers", []) if c["name"] == "fleetprof"]
    return found


def environment(container: dict[str, Any]) -> dict[str, Any]:
    return {
        entry["name"]: entry.get("value") or entry["valueFrom"]["fieldRef"]["fieldPath"] for entry in container["env"]
    }


def test_the_trainer_gets_kinetos_variables_and_a_mount(inject: Inject) -> None:
    change = inject()
    (trainer,) = change.pod["spec"]["containers"]
    assert environment(trainer) == {
        "KINETO_USE_DAEMON": "1",
        "KINETO_IPC_SOCKET_DIR": "/run/fleetprof",
        "KINETO_ONDEMAND_TRACE_DIR": "/run/fleetprof/traces",
        "KINETO_CONFIG": "/run/fleetprof/libkineto.conf",
        "PYTHONPATH": AGENT,
    }
    assert trainer["volumeMounts"] == [
        {"name": "fleetprof", "mountPath": "/run/fleetprof"},
    ]
    assert set(trainer) == {"name", "image", "env", "volumeMounts"}
    assert change.warnings == []


def test_the_sidecar_is_the_first_init_container_and_restarts_by_itself(inject: Inject) -> None:
    change = inject(initContainers=[{"name": "prepare", "image": "x"}])
    first, second = change.pod["spec"]["initContainers"]
    assert (first["name"], first["restartPolicy"], second) == ("fleetprof", "Always", {"name": "prepare", "image": "x"})
    assert not {"startupProbe", "livenessProbe", "readinessProbe", "lifecycle"} & set(first)


def test_the_sidecar_is_right_under_the_restricted_standard(inject: Inject) -> None:
    assert sidecar(inject())["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert "runAsUser" not in sidecar(inject(settings={"run_as_user": None}))["securityContext"]


def test_the_sidecar_knows_its_pod_and_its_hub(inject: Inject) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "llama", "controller": True}
    assert environment(sidecar(inject(metadata={"ownerReferences": [owner]}))) == {
        "FLEETPROF_DIRECTORY": "/run/fleetprof",
        "FLEETPROF_SPOOL": "/var/spool/fleetprof",
        "FLEETPROF_HUB": "fleetprof-hub.fleetprof-system.svc:8443",
        "FLEETPROF_TOKEN_FILE": "/var/run/secrets/fleetprof.io/token",
        "FLEETPROF_CA_FILE": "/var/run/secrets/fleetprof.io/ca.crt",
        "FLEETPROF_LABELS_FILE": "/var/run/secrets/fleetprof.io/labels",
        "FLEETPROF_GRACE_SECONDS": "25",
        "FLEETPROF_ENDS_WITH_POD": "1",
        "FLEETPROF_WORKLOAD": "batch/v1/Job/llama",
        "FLEETPROF_NAMESPACE": "metadata.namespace",
        "FLEETPROF_POD_NAME": "metadata.name",
        "FLEETPROF_POD_UID": "metadata.uid",
        "FLEETPROF_NODE_NAME": "spec.nodeName",
    }


@pytest.mark.parametrize(
    ("amounts", "limit"),
    [
        ([None], None),
        (["10Gi"], 18 << 30),  # and the sidecar's own part
        (["10Gi", None], 18 << 30),
        (["10Gi", "512Mi"], (18 << 30) + (512 << 20)),
    ],
)
def test_the_sidecar_knows_how_much_disk_its_pod_may_take_before_it_is_evicted(
    inject: Inject, amounts: tuple[str | None, str | None], limit: str
) -> None:
    containers = [
        {"name": f"c{number}", "image": "i", "resources": {"limits": {"ephemeral-storage": amount}} if amount else {}}
        for number, amount in enumerate(amounts)
    ]
    limit_bytes = environment(sidecar(inject(*containers))).get("FLEETPROF_STORAGE_LIMIT_BYTES")
    assert limit_bytes == (None if limit is None else str(limit))


def test_the_sidecar_holds_a_token_for_us_and_none_for_the_api(inject: Inject) -> None:
    change = inject()
    volumes = {volume["name"]: volume for volume in change.pod["spec"]["volumes"]}
    token, ca, labels = volumes["fleetprof-identity"]["projected"]["sources"]
    assert token["serviceAccountToken"] == {"audience": "fleetprof.io", "expirationSeconds": 3600, "path": "token"}
    assert ca["downwardAPI"]["items"][0]["fieldRef"]["fieldPath"] == "metadata.annotations['fleetprof.io/hub-ca']"
    assert labels["downwardAPI"]["items"][0]["fieldRef"]["fieldPath"] == "metadata.labels"
    assert volumes["fleetprof-identity"]["projected"]["defaultMode"] == 0o644
    mounts = {mount["mountPath"]: mount["name"] for mount in sidecar(change)["volumeMounts"]}
    assert mounts["/var/run/secrets/kubernetes.io/serviceaccount"] == "fleetprof-no-api-token"
    assert volumes["fleetprof-no-api-token"] == {"name": "fleetprof-no-api-token", "emptyDir": {}}
    trainer_mounts = {mount["name"] for mount in change.pod["spec"]["containers"][0]["volumeMounts"]}
    assert "fleetprof-identity" not in trainer_mounts


def test_no_volume_has_a_size_at_which_the_kubelet_would_evict_the_trainer(inject: Inject) -> None:
    change = inject()
    assert [v["emptyDir"] for v in change.pod["spec"]["volumes"] if "emptyDir" in v] == [{}, {}, {}]


def test_a_pod_carries_no_more_text_of_ours_than_a_version_and_an_authority(inject: Inject) -> None:
    annotations = inject(metadata={"annotations": {"team": "a"}}).pod["metadata"]["annotations"]
    assert annotations == {"team": "a", "fleetprof.io/injected": __version__, "fleetprof.io/hub-ca": SETTINGS.ca}


def train(**fields: Any) -> dict[str, Any]:
    return {"name": "train", "image": "train:1", **fields}


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (train(), AGENT),
        (train(env=[{"name": "PYTHONPATH", "value": "/code:/more"}]), f"{AGENT}:/code:/more"),
        (train(env=[{"name": "PYTHONPATH", "value": ""}]), AGENT),
        (train(env=[{"name": "PYTHONPATH", "value": "/code:"}]), f"{AGENT}:/code:"),
        (train(env=[{"name": "PYTHONPATH", "value": ":/code"}]), f"{AGENT}::/code"),
        (train(env=[{"name": "PYTHONPATH", "value": f"{AGENT}:/code"}]), f"{AGENT}:/code"),
        (train(envFrom=[{"secretRef": {"name": "s"}}]), f"{AGENT}:$(PYTHONPATH)"),
    ],
)
def test_the_users_own_pythonpath_stays_behind_ours(inject: Inject, container: dict[str, Any], expected: str) -> None:
    assert environment(inject(container).pod["spec"]["containers"][0])["PYTHONPATH"] == expected


def test_a_pythonpath_by_reference_leaves_the_agent_out(inject: Inject) -> None:
    entry = {"name": "PYTHONPATH", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}
    change = inject(train(env=[entry]))
    env = change.pod["spec"]["containers"][0]["env"]
    assert env[0] == entry
    assert {"name": "FLEETPROF_AGENT", "value": "0"} in env
    assert "PYTHONPATH comes from a reference" in change.warnings[0]


def test_the_annotation_leaves_the_agent_out(inject: Inject) -> None:
    change = inject(metadata={"annotations": {"fleetprof.io/agent": "false"}})
    names = environment(change.pod["spec"]["containers"][0])
    assert "PYTHONPATH" not in names
    assert names["FLEETPROF_AGENT"] == "0"
    assert change.warnings == []


def test_a_users_own_kineto_configuration_stays(inject: Inject) -> None:
    change = inject(train(env=[{"name": "KINETO_CONFIG", "value": "/mine"}]))
    assert environment(change.pod["spec"]["containers"][0])["KINETO_CONFIG"] == "/mine"
    assert "KINETO_CONFIG is the pod's own" in change.warnings[0]


GPU = {"limits": {"nvidia.com/gpu": "1"}}


@pytest.mark.parametrize(
    ("names_and_resources", "annotation", "chosen", "warned"),
    [
        ([("a", {})], None, "a", False),
        ([("a", {}), ("b", GPU)], None, "b", False),
        ([("a", {}), ("b", {"limits": {"amd.com/gpu": 2}})], None, "b", False),
        ([("a", {}), ("b", {"claims": [{"name": "gpu"}]})], None, "b", False),
        ([("a", GPU), ("b", GPU)], None, "a", True),
        ([("a", {}), ("b", {})], None, "a", True),
        ([("a", {}), ("b", {"limits": {"example.com/licence": 1}})], None, "a", True),
        ([("a", GPU), ("b", {})], "b", "b", False),
    ],
)
def test_which_container_is_the_trainer(
    inject: Inject,
    names_and_resources: list[tuple[str, dict[str, Any]]],
    annotation: str | None,
    chosen: str,
    warned: bool,
) -> None:
    containers = [{"name": name, "image": "x", "resources": given} for name, given in names_and_resources]
    metadata = {"annotations": {"fleetprof.io/container": annotation}} if annotation else {}
    change = inject(*containers, metadata=metadata)
    assert [c["name"] for c in change.pod["spec"]["containers"] if "env" in c] == [chosen]
    assert bool(change.warnings) is warned


@pytest.mark.parametrize(
    ("fields", "launches"),
    [
        ({}, False),
        ({"command": ["python", "train.py"]}, False),
        ({"command": ["torchrun", "--nproc-per-node=8", "train.py"]}, True),
        ({"command": ["/opt/venv/bin/torchrun"]}, True),
        ({"args": ["python -m torch.distributed.run train.py"]}, True),
        ({"command": ["bash", "-c"], "args": ["cd /code && torchrun train.py"]}, True),
        ({"command": ["accelerate", "launch", "train.py"]}, True),
        ({"command": ["accelerate", "config"]}, False),
        ({"command": ["python", "my_torchrun_notes.py"]}, False),
        ({"command": ["sh", "-c", "exec deepspeed train.py"]}, True),
        # Does not import PyTorch, so it does not poll, and the first to poll is a rank.
        ({"command": ["mpirun", "-np", "8", "python", "train.py"]}, False),
    ],
)
def test_the_sidecar_is_told_of_a_launcher_that_it_cannot_see(
    inject: Inject, fields: dict[str, Any], launches: bool
) -> None:
    values = environment(sidecar(inject(train(**fields))))
    assert (values.get("FLEETPROF_COMMAND_LAUNCHES") == "1") is launches


@pytest.mark.parametrize(
    ("fields", "addresses"),
    [
        ({}, BY_NAME),
        ({"hostNetwork": True}, BY_ADDRESS),
        ({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}, BY_NAME),
        ({"dnsPolicy": "None"}, BY_ADDRESS),
        ({"dnsPolicy": "Default"}, BY_ADDRESS),
    ],
)
def test_a_pod_that_cannot_resolve_cluster_names_gets_the_addresses_of_hub_and_store(
    inject: Inject, fields: dict[str, Any], addresses: dict[str, str]
) -> None:
    change = inject(**fields)
    values = environment(sidecar(change))
    assert {name: values[name] for name in BY_ADDRESS if name in values} == addresses
    assert change.warnings == []


NO_STORE = (
    "fleetprof: this pod cannot resolve fleetprof-store.fleetprof-system.svc, whose address is not known here: "
    "its captures end with UploadFailed. Set dnsPolicy: ClusterFirstWithHostNet"
)
NO_HUB = (
    "fleetprof: this pod cannot resolve fleetprof-hub.fleetprof-system.svc, whose address is not known here: "
    "it cannot be captured. Set dnsPolicy: ClusterFirst"
)


@pytest.mark.parametrize(
    ("fields", "settings", "warnings"),
    [
        ({"hostNetwork": True}, {"store_ip": ""}, [NO_STORE]),
        ({"dnsPolicy": "Default"}, {"hub_ip": ""}, [NO_HUB]),
        ({"hostNetwork": True}, {"store_ip": "", "store_host": "s3.example.com"}, []),
        ({}, {"store_ip": "", "hub_ip": ""}, []),
    ],
)
def test_whoever_creates_a_pod_is_told_what_it_will_not_find(
    inject: Inject, fields: dict[str, Any], settings: dict[str, str], warnings: list[str]
) -> None:
    change = inject(**fields, settings=settings)
    assert change.warnings == warnings
    assert all(len(warning) <= MAX_WARNING for warning in change.warnings)
    assert change.patch


@pytest.mark.parametrize(("given", "sidecars"), [(None, "25"), (0, "0"), (3, "0"), (60, "55"), (3600, "120")])
def test_the_sidecar_is_done_before_the_kubelet_kills_it(inject: Inject, given: int | None, sidecars: str) -> None:
    fields = {} if given is None else {"terminationGracePeriodSeconds": given}
    assert environment(sidecar(inject(**fields)))["FLEETPROF_GRACE_SECONDS"] == sidecars


def test_before_native_sidecars_it_is_the_first_container_of_pods_that_never_end(inject: Inject) -> None:
    change = inject(settings={"native_sidecars": False})
    assert [c["name"] for c in change.pod["spec"]["containers"]] == ["fleetprof", "train"]
    assert "restartPolicy" not in change.pod["spec"]["containers"][0]
    assert change.pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] == "train"
    assert inject(settings={"native_sidecars": False}, restartPolicy="Never").reason == "NoNativeSidecars"


@pytest.mark.parametrize(
    ("labels", "owner", "expected"),
    [
        ({}, ("batch/v1", "Job", "llama"), "batch/v1/Job/llama"),
        ({}, ("kubeflow.org/v1", "PyTorchJob", "llama"), "kubeflow.org/v1/PyTorchJob/llama"),
        ({"pod-template-hash": "5d9"}, ("apps/v1", "ReplicaSet", "web-5d9"), "apps/v1/Deployment/web"),
        ({}, ("apps/v1", "ReplicaSet", "web-5d9"), "apps/v1/ReplicaSet/web-5d9"),
        (
            {"jobset.sigs.k8s.io/jobset-name": "llama"},
            ("batch/v1", "Job", "llama-workers-0"),
            "jobset.x-k8s.io/v1alpha2/JobSet/llama",
        ),
        ({}, ("v1", "odd kind", "x"), None),
        ({}, None, None),
    ],
)
def test_the_job_that_a_pod_belongs_to(
    inject: Inject, labels: dict[str, str], owner: dict[str, Any] | None, expected: str | None
) -> None:
    metadata: dict[str, Any] = {"labels": labels}
    if owner:
        metadata["ownerReferences"] = [dict(zip(("apiVersion", "kind", "name"), owner, strict=True), controller=True)]
    assert environment(sidecar(inject(metadata=metadata))).get("FLEETPROF_WORKLOAD") == expected


@pytest.mark.parametrize(
    ("fields", "reason", "message"),
    [
        ({"metadata": {"labels": {"fleetprof.io/inject": "false"}}}, "OptedOut", ""),
        ({"metadata": {"annotations": {"fleetprof.io/injected": "0.0.9"}}}, "AlreadyInjected", ""),
        ({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}, "StaticPod", ""),
        ({"metadata": {"annotations": {"fleetprof.io/container": "b"}}}, "NoTrainer", "the containers are train"),
        ({"os": {"name": "windows"}}, "NotLinux", "Windows"),
        ({"volumes": [{"name": "fleetprof-spool"}]}, "NameTaken", "volume named 'fleetprof-spool'"),
        ({"initContainers": [{"name": "fleetprof"}]}, "NameTaken", "container named 'fleetprof'"),
    ],
)
def test_pods_that_are_left_alone(inject: Inject, fields: dict[str, Any], reason: str, message: str) -> None:
    change = inject(**fields)
    assert (change.patch, change.reason) == ([], reason)
    assert [message in text for text in change.warnings] == ([True] if message else [])


@pytest.mark.parametrize("name", ["KINETO_USE_DAEMON", "KINETO_IPC_SOCKET_DIR", "KINETO_ONDEMAND_TRACE_DIR"])
def test_a_pod_with_a_kineto_daemon_of_its_own_is_left_alone(inject: Inject, name: str) -> None:
    change = inject(train(env=[{"name": name, "value": "/mine"}]))
    assert (change.patch, change.reason) == ([], "OwnKineto")
    assert name in change.warnings[0]


@pytest.mark.parametrize("path", ["/run/fleetprof", "/run/fleetprof/"])
def test_a_trainer_that_mounts_something_at_our_place_is_left_alone(inject: Inject, path: str) -> None:
    change = inject(train(volumeMounts=[{"name": "v", "mountPath": path}]))
    assert (change.patch, change.reason) == ([], "PathTaken")
