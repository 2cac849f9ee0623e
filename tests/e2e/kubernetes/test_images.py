"""The content of our images, as a pod sees it: what they run, and neither an installer nor a compiler."""

from collections.abc import Callable

import pytest
from cluster.images.building import our_name
from scene.api import Api, parse

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def namespace(namespaces: Callable[..., str]) -> str:
    return namespaces("e2e-images")


LIST_FILES = """
import importlib, importlib.util, json, os, pkgutil, shutil, sys
names = [os.path.join(folder, name) for folder, _, names in os.walk("/") for name in names
         if not folder.startswith(("/proc", "/sys", "/dev"))]
tools = [tool for tool in ("pip", "pip3", "gcc", "cc", "ld", "make", "uv") if shutil.which(tool)]
packages = [p for p in PACKAGES if importlib.util.find_spec(p)]
missing, clients = set(), []
for ours in pkgutil.iter_modules(["/opt/fleetprof/code"]):
    # The agent is for the trainer's Python; of the contract each component uses a part; the scanner is no module.
    if ours.name in ("fleetprof_agent", "fleetprof_api", "fleetprof_store", "fleetprof_accelerator"):
        continue
    for module in pkgutil.walk_packages(importlib.import_module(ours.name).__path__, ours.name + "."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            missing.add(error.name.partition(".")[0])
if "boto3" in packages:
    import boto3
    session = boto3.Session("key", "secret", region_name="eu-central-1")
    clients = [name for name in session.get_available_services() if session.client(name)]
scanner = importlib.util.find_spec("fleetprof_accelerator") is not None
if scanner:
    importlib.import_module("fleetprof_accelerator").load()
print(json.dumps({"scanner": scanner, "uid": os.getuid(), "tools": tools, "files": names, "packages": packages,
                  "missing": sorted(missing), "clients": clients}))
"""
PACKAGES = ("kopf", "kubernetes", "boto3", "numpy", "pydantic", "grpc", "msgspec", "pip", "setuptools", "ensurepip")
# S3, and what credentials come from.
AWS = ["s3", "signin", "sso", "sso-oidc", "sts"]


@pytest.mark.parametrize(
    ("component", "packages", "left_out", "clients", "scanner"),
    [
        # It summarises, and draws no page.
        ("sidecar", {"grpc", "msgspec", "numpy"}, {"jinja2", "markupsafe", "pyarrow"}, [], True),
        ("operator", {"grpc", "msgspec", "kopf", "kubernetes", "boto3", "pydantic"}, set(), AWS, False),
        # Whoever wants the report's tables as Parquet installs what writes it. It has no client of any cloud.
        ("analyzer", {"grpc", "msgspec", "numpy"}, {"pyarrow"}, [], True),
        # Of the analyzer it has the words and the comparison: it neither dials nor reads traces.
        ("webui", {"msgspec", "numpy", "boto3", "pydantic"}, {"grpc", "isal", "pyarrow"}, AWS, False),
    ],
)
def test_an_image_holds_what_it_runs_and_neither_installer_nor_compiler(
    api: Api, namespace: str, component: str, packages: set[str], left_out: set[str], clients: list[str], scanner: bool
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
    assert set(found["missing"]) <= left_out
    assert sorted(found["clients"]) == clients
    assert found["scanner"] is scanner
    assert ("/opt/fleetprof/code/fleetprof_webui/static/index.html" in found["files"]) is (component == "webui")
    useless = ("/site-packages/pip/", "/numpy/tests/", "/kubernetes/client/models/v1_pod.py")
    assert not [file for file in found["files"] if file.endswith("/cc1") or any(part in file for part in useless)]
    assert [file for file in found["files"] if file.startswith("/opt/fleetprof/code/fleetprof_api/__pycache__/")]
