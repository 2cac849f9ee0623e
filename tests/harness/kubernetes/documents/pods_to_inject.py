"""Pods of every shape, as the API server would hand them to a webhook, and the settings of an installation."""

import json
from collections.abc import Callable
from typing import Any

from fleetprof_operator.injection.pods.change import Change
from fleetprof_operator.injection.pods.sidecar_settings import InjectionSettings
from hypothesis import strategies as st

CA = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
Inject = Callable[..., Change]
SETTINGS = InjectionSettings(
    image="ghcr.io/fleetprof/sidecar:0.1.0",
    hub="fleetprof-hub.fleetprof-system.svc:8443",
    ca=CA,
    hub_ip="10.0.0.9",
    store_host="fleetprof-store.fleetprof-system.svc",
    store_ip="10.0.0.8",
)


def make_review(pod: dict[str, Any], namespace: str, *, resource: str = "pods", uid: str = "r-1") -> bytes:
    """The review of a new object, in the order of fields in which the API server writes it."""
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": resource},
        "name": "p",
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {"username": "ada"},
        "object": pod,
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(review, separators=(",", ":")).encode()


NAMES = st.sampled_from(["train", "logger", "proxy", "data", "metrics"])
CPU = st.sampled_from(["100m", "1", "8", "0.5"])
MEMORY = st.sampled_from(["64Mi", "1Gi", "128e6", "32G"])
LABELS = st.dictionaries(
    st.sampled_from(["app", "team", "jobset.sigs.k8s.io/jobset-name"]), st.just("llama"), max_size=3
)
ANNOTATIONS = st.dictionaries(st.sampled_from(["a~b/c", "note", "fleetprof.io/agent"]), st.sampled_from(["false", "x"]))


@st.composite
def resources(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["none", "requests", "limits", "equal", "accelerator", "storage"]))
    cpu, memory = draw(CPU), draw(MEMORY)
    pair = {"cpu": cpu, "memory": memory}
    return {
        "none": {},
        "requests": {"requests": {"cpu": cpu}},
        "limits": {"limits": pair},
        "equal": {"limits": pair, "requests": pair},
        "accelerator": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}},
        "storage": {"limits": {**pair, "ephemeral-storage": "10Gi"}, "requests": {**pair, "ephemeral-storage": "1Gi"}},
    }[kind]


def variables() -> st.SearchStrategy[list[dict[str, Any]]]:
    literal = st.fixed_dictionaries(
        {
            "name": st.sampled_from(["HOME", "PYTHONPATH", "KINETO_CONFIG", "KINETO_USE_DAEMON", "RANK"]),
            "value": st.sampled_from(["", "1", "/code:/more", "$(HOME)/lib"]),
        }
    )
    field = st.fixed_dictionaries(
        {
            "name": st.sampled_from(["PYTHONPATH", "POD"]),
            "valueFrom": st.just({"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}),
        }
    )
    return st.lists(st.one_of(literal, field), max_size=4, unique_by=lambda entry: entry["name"])


@st.composite
def containers(draw: st.DrawFn, name: str) -> dict[str, Any]:
    container: dict[str, Any] = {"name": name, "image": "example.com/train:1", "resources": draw(resources())}
    if draw(st.booleans()):
        container["env"] = draw(variables())
    if draw(st.booleans()):
        container["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    if draw(st.booleans()):
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    if draw(st.booleans()):
        container["command"] = ["torchrun", "--nproc-per-node=4", "train.py"]
    return container


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    spec: dict[str, Any] = {
        "containers": [draw(containers(name)) for name in names],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "restartPolicy": draw(st.sampled_from(["Always", "Never", "OnFailure"])),
    }
    if draw(st.booleans()):
        spec["initContainers"] = [draw(containers("prepare"))]
        if draw(st.booleans()):
            spec["initContainers"][0]["restartPolicy"] = "Always"
    if draw(st.booleans()):
        spec["hostNetwork"] = True
        spec["dnsPolicy"] = draw(st.sampled_from(["ClusterFirst", "ClusterFirstWithHostNet"]))
    if draw(st.booleans()):
        spec["terminationGracePeriodSeconds"] = draw(st.sampled_from([0, 1, 30, 3600]))
    metadata: dict[str, Any] = {draw(st.sampled_from(["name", "generateName"])): "train-0"}
    if draw(st.booleans()):
        metadata["labels"] = draw(LABELS)
    if draw(st.booleans()):
        metadata["annotations"] = draw(ANNOTATIONS)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
