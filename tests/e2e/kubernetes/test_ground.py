"""What the other tests stand on: training runs on this cluster, alone and over the pod network, and S3 answers."""

from collections.abc import Callable

import pytest
from cluster.images import our_name
from scene.api import Api, parse
from scene.store import Store
from scene.training import Training

pytestmark = [pytest.mark.cluster, pytest.mark.torch]


@pytest.fixture(scope="module")
def namespace(namespaces: Callable[..., str]) -> str:
    return namespaces("e2e-ground")


@pytest.mark.parametrize(("pods", "ranks_per_pod"), [(1, 4), (2, 2)], ids=["one-pod", "two-pods"])
def test_a_training_job_runs_to_the_end_that_it_was_asked_for(
    namespace: str, start_training: Callable[..., Training], pods: int, ranks_per_pod: int
) -> None:
    training = start_training(namespace, f"train-{pods}", pods=pods, ranks_per_pod=ranks_per_pod)

    training.finish()

    training.assert_undisturbed()


def test_the_store_keeps_what_is_put(store: Store) -> None:
    client = store.client()

    client.put_object(Bucket=store.bucket, Key="v1/ground/x", Body=b"kept")

    assert client.get_object(Bucket=store.bucket, Key="v1/ground/x")["Body"].read() == b"kept"


LIST_FILES = """
import importlib.util, json, os, shutil, sys
names = [os.path.join(folder, name) for folder, _, names in os.walk("/") for name in names
         if not folder.startswith(("/proc", "/sys", "/dev"))]
tools = [tool for tool in ("pip", "pip3", "gcc", "cc", "ld", "make", "uv") if shutil.which(tool)]
print(json.dumps({"uid": os.getuid(), "tools": tools, "files": names,
                  "packages": [p for p in PACKAGES if importlib.util.find_spec(p)]}))
"""
PACKAGES = ("kopf", "kubernetes", "boto3", "numpy", "pydantic", "grpc", "msgspec", "pip", "setuptools", "ensurepip")


@pytest.mark.parametrize(
    ("component", "packages"),
    [
        ("sidecar", {"grpc", "msgspec", "numpy"}),
        ("operator", {"grpc", "msgspec", "kopf", "kubernetes", "boto3", "pydantic"}),
        ("analyzer", {"grpc", "msgspec", "boto3", "numpy"}),
    ],
)
def test_an_image_holds_what_it_runs_and_neither_installer_nor_compiler(
    api: Api, namespace: str, component: str, packages: set[str]
) -> None:
    name = f"list-{component}"
    script = f"PACKAGES = {PACKAGES!r}\n{LIST_FILES}"
    container = {
        "name": name,
        "image": our_name(component),
        "command": ["python", "-c", script],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"restartPolicy": "Never", "securityContext": security, "containers": [container]}
    api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec})
    api.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}", "-n", namespace, "--timeout=60s")

    found = parse(api.logs(name, namespace, name))

    assert found["uid"] == 65532
    assert found["tools"] == []
    assert set(found["packages"]) == packages
    assert not [file for file in found["files"] if "/site-packages/pip/" in file or file.endswith("/cc1")]
    assert [file for file in found["files"] if file.startswith("/opt/fleetprof/code/fleetprof_api/__pycache__/")]
