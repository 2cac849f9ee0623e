"""Kubernetes' own programs, of any release, from its Go module."""

import json
from pathlib import Path
from typing import Final

from cluster.places import built
from cluster.programs.go import AS_PROGRAM, run_go

PROGRAMS: Final = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)


def build_program(name: str, release: str) -> None:
    """Builds one of PROGRAMS into the release's folder."""
    module = _prepare_module(release)
    into = built(release) / "bin"
    into.mkdir(parents=True, exist_ok=True)
    package = f"k8s.io/kubernetes/cmd/{name}"
    run_go("build", *AS_PROGRAM, "-ldflags", _flags(release), "-o", f"{into}/", package, folder=module)


def _flags(release: str) -> str:
    _, minor, _ = release.split(".")
    base = "k8s.io/component-base/version"
    values = {
        f"{base}.gitVersion": f"v{release}",
        f"{base}.gitMajor": "1",
        f"{base}.gitMinor": minor,
        f"{base}.gitTreeState": "clean",
        f"{base}.gitCommit": "0" * 40,
        f"{base}.buildDate": "2026-01-01T00:00:00Z",
        "k8s.io/client-go/pkg/version.gitVersion": f"v{release}",
    }
    return "-s -w " + " ".join(f"-X {name}={value}" for name, value in values.items())


def _prepare_module(release: str) -> Path:
    """A module whose only purpose is to name Kubernetes and where its staging modules are published."""
    folder = built(release) / "src"
    ready = folder / "ready"
    if ready.is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    tools = "".join(f"\tk8s.io/kubernetes/cmd/{name}\n" for name in PROGRAMS)
    (folder / "go.mod").write_text(
        f"module localplane\ngo 1.26.0\nrequire k8s.io/kubernetes v{release}\ntool (\n{tools})\n"
    )
    described = run_go("mod", "download", "-json", f"k8s.io/kubernetes@v{release}", folder=folder)
    required = Path(json.loads(described)["GoMod"]).read_text().splitlines()
    # Kubernetes requires its staging modules at v0.0.0: point each at the published version.
    staging = [line.split()[0] for line in required if line.split()[1:2] == ["v0.0.0"]]
    published = f"v0.{release.removeprefix('1.')}"
    run_go("mod", "edit", *(f"-replace={name}={name}@{published}" for name in staging), folder=folder)
    run_go("mod", "tidy", folder=folder, environment={"GOFLAGS": "-mod=mod"})
    ready.touch()
    return folder
