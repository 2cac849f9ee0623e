"""What is in our images, as a pod sees it: what they run, and neither an installer nor a compiler."""

from collections.abc import Callable

import pytest
from cluster.images import our_name
from scene.api import Api, parse

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def namespace(namespaces: Callable[..., str]) -> str:
    return namespaces("e2e-images")


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
