"""The kinds of other projects, as those publish them: CRDs out of their Go modules, at the versions named here.

Guarantees: nothing of theirs is copied into the tree; a file is what Go's checksum database says it is, and is fetched
once into Go's own cache (some MB).
"""

import json
import os
import re
import shutil
import subprocess
from functools import cache, partial
from pathlib import Path
from typing import Final

import pytest

from harness.kubernetes.api_server import ApiServer
from harness.waiting import wait_until

ARGO_CD: Final = "github.com/argoproj/argo-cd/v3@v3.1.0"  # 25 MB
CERT_MANAGER: Final = "github.com/cert-manager/cert-manager@v1.19.1"
FLUX_KUSTOMIZE: Final = "github.com/fluxcd/kustomize-controller@v1.9.5"
FLUX_SOURCE: Final = "github.com/fluxcd/source-controller@v1.9.5"
JOBSET: Final = "sigs.k8s.io/jobset@v0.8.2"
KUBERAY: Final = "github.com/ray-project/kuberay/ray-operator@v1.3.2"
LEADER_WORKER_SET: Final = "sigs.k8s.io/lws@v0.6.0"
MPI_OPERATOR: Final = "github.com/kubeflow/mpi-operator@v0.6.0"
PROMETHEUS_OPERATOR: Final = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
TRAINER: Final = "github.com/kubeflow/trainer/v2@v2.0.0"
TRAINING_OPERATOR: Final = "github.com/kubeflow/training-operator@v1.8.1"
VOLCANO: Final = "volcano.sh/apis@v1.9.0"

# Kind → where its CRD is. Volcano's is in no module that Go's proxy has.
_PLACES: Final = {
    "Application": (ARGO_CD, "manifests/crds/application-crd.yaml"),
    "Certificate": (CERT_MANAGER, "deploy/crds/cert-manager.io_certificates.yaml"),
    "Issuer": (CERT_MANAGER, "deploy/crds/cert-manager.io_issuers.yaml"),
    "JobSet": (JOBSET, "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"),
    "Kustomization": (FLUX_KUSTOMIZE, "config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml"),
    "LeaderWorkerSet": (LEADER_WORKER_SET, "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml"),
    "MPIJob": (MPI_OPERATOR, "manifests/base/kubeflow.org_mpijobs.yaml"),
    "OCIRepository": (FLUX_SOURCE, "config/crd/bases/source.toolkit.fluxcd.io_ocirepositories.yaml"),
    "PrometheusRule": (
        PROMETHEUS_OPERATOR,
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
    "PyTorchJob": (TRAINING_OPERATOR, "manifests/base/crds/kubeflow.org_pytorchjobs.yaml"),
    "RayCluster": (KUBERAY, "config/crd/bases/ray.io_rayclusters.yaml"),
    "RayJob": (KUBERAY, "config/crd/bases/ray.io_rayjobs.yaml"),
    "ServiceMonitor": (
        PROMETHEUS_OPERATOR,
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
    ),
    "TrainJob": (TRAINER, "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"),
}


def install_kinds(server: ApiServer, *kinds: str) -> None:
    """Has the API server serve these kinds. Skips without Go or its proxy, or fails where a cluster is required."""
    for kind in kinds:
        module, path = _PLACES[kind]
        # Not `apply`: it would note the whole CRD in an annotation, which they are too large for.
        made = server.kubectl("create", "-f", str(find_module(module) / path))
        assert made.returncode == 0, made.stderr
    for kind in kinds:
        wait_until(partial(_serves, server, kind), f"{kind} to be served")


def _serves(server: ApiServer, kind: str) -> bool:
    return server.kubectl("explain", kind).returncode == 0


def read_constant(module: str, path: str, name: str) -> str:
    """A string constant of a module's Go source."""
    (value,) = re.findall(rf'^\s*{name}\s*(?:string)?\s*=\s*"([^"]*)"', (find_module(module) / path).read_text(), re.M)
    return str(value)


@cache
def find_module(module: str) -> Path:
    """The module's files in Go's cache."""
    trouble = "there is no Go to fetch it with"
    if shutil.which("go"):
        result = subprocess.run(
            ["go", "mod", "download", "-json", module],
            cwd="/",
            env=os.environ | {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        answer = json.loads(result.stdout or "{}")
        if "Dir" in answer:
            return Path(answer["Dir"])
        trouble = answer.get("Error") or result.stderr
    reason = f"the kinds of {module} cannot be had: {trouble}"
    if "cluster" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
        pytest.fail(reason)
    pytest.skip(reason)
