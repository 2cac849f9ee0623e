"""The programs of the local cluster, built from Go modules once into the cache outside the tree.

Guarantees: a program counts as built only when it is whole and of the version named here; a killed build goes on where
it stopped, from Go's own cache.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from cluster.places import BINARIES, BUILT, KUBERNETES
from cluster.progress import step
from cluster.refusal import Failure, Refusal

KIND: Final = "sigs.k8s.io/kind@v0.33.0"

_KUBERNETES: Final = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)
_CONTAINERD: Final = "github.com/containerd/containerd/v2/cmd/{}@v2.4.2"
_HELM: Final = "4.3.1"
_COREDNS: Final = "github.com/coredns/coredns"
# Those that network.py's Corefile names; all of them would be twice as much to build.
_DNS_PLUGINS: Final = ("bind", "cache", "errors", "kubernetes")
_OTHERS: Final = {
    "containerd": _CONTAINERD.format("containerd"),
    "containerd-shim-runc-v2": _CONTAINERD.format("containerd-shim-runc-v2"),
    "ctr": _CONTAINERD.format("ctr"),
    "coredns": f"{_COREDNS}@v1.15.0 {' '.join(_DNS_PLUGINS)}",
    "helm": f"helm.sh/helm/v4/cmd/helm@v{_HELM}",
}
_FLAGS: Final = {"helm": f"-X helm.sh/helm/v4/internal/version.version=v{_HELM}"}
# Everything that a client of any cluster needs.
CLIENTS: Final = ("kubectl", "helm")
# What the tests on an API server alone need, etcd besides.
API_SERVER: Final = (*CLIENTS, "kube-apiserver")


def build(names: tuple[str, ...] = (*_KUBERNETES, *_OTHERS)) -> None:
    """Builds what is missing of `names`."""
    missing = [name for name in names if not _is_built(name)]
    if not missing:
        return
    if not shutil.which("go"):
        raise Refusal(f"the cluster's programs ({', '.join(missing)}) are built with Go, and there is none: install Go")
    BINARIES.mkdir(parents=True, exist_ok=True)
    if any(name in _KUBERNETES for name in missing):
        _prepare_kubernetes_module()
    for name in missing:
        with step(f"building {name} {_version(name).rpartition('@')[2].split()[0]} (minutes, once)"):
            _build_one(name)
        (BINARIES / f"{name}.version").write_text(_version(name))


def install(package: str, into: Path) -> None:
    """`go install` of one program."""
    if not shutil.which("go"):
        raise Refusal(f"{package} is built with Go, and there is none: install Go")
    with step(f"building {package} (once)"):
        _go("install", "-trimpath", "-ldflags", "-s -w", package, environment={"GOBIN": str(into)})


def _version(name: str) -> str:
    return f"k8s.io/kubernetes@v{KUBERNETES}" if name in _KUBERNETES else _OTHERS[name]


def _is_built(name: str) -> bool:
    stamp = BINARIES / f"{name}.version"
    return (BINARIES / name).is_file() and stamp.is_file() and stamp.read_text() == _version(name)


def _build_one(name: str) -> None:
    if name in _KUBERNETES:
        package, folder = f"k8s.io/kubernetes/cmd/{name}", BUILT / "src"
        _go("build", "-trimpath", "-ldflags", _kubernetes_flags(), "-o", str(BINARIES) + "/", package, folder=folder)
    elif name == "coredns":
        folder = _prepare_dns_module()
        words = ("build", "-mod=mod", "-trimpath", "-ldflags", "-s -w", "-o", str(BINARIES / name), ".")
        _go(*words, folder=folder)
    else:
        flags = f"-s -w {_FLAGS.get(name, '')}"
        _go("install", "-trimpath", "-ldflags", flags, _OTHERS[name], environment={"GOBIN": str(BINARIES)})


def _kubernetes_flags() -> str:
    _, minor, _ = KUBERNETES.split(".")
    base = "k8s.io/component-base/version"
    values = {
        f"{base}.gitVersion": f"v{KUBERNETES}",
        f"{base}.gitMajor": "1",
        f"{base}.gitMinor": minor,
        f"{base}.gitTreeState": "clean",
        f"{base}.gitCommit": "0" * 40,
        f"{base}.buildDate": "2026-01-01T00:00:00Z",
        "k8s.io/client-go/pkg/version.gitVersion": f"v{KUBERNETES}",
    }
    return "-s -w " + " ".join(f"-X {name}={value}" for name, value in values.items())


def _prepare_kubernetes_module() -> None:
    """A module whose only purpose is to name Kubernetes and where its staging modules are published."""
    folder = BUILT / "src"
    ready = folder / "ready"
    if ready.is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    tools = "".join(f"\tk8s.io/kubernetes/cmd/{name}\n" for name in _KUBERNETES)
    (folder / "go.mod").write_text(
        f"module localplane\ngo 1.26.0\nrequire k8s.io/kubernetes v{KUBERNETES}\ntool (\n{tools})\n"
    )
    described = _go("mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES}", folder=folder)
    required = Path(json.loads(described)["GoMod"]).read_text().splitlines()
    # Kubernetes requires its staging modules at v0.0.0: point each at the published version.
    staging = [line.split()[0] for line in required if line.split()[1:2] == ["v0.0.0"]]
    published = f"v0.{KUBERNETES.removeprefix('1.')}"
    _go("mod", "edit", *(f"-replace={name}={name}@{published}" for name in staging), folder=folder)
    _go("mod", "tidy", folder=folder, environment={"GOFLAGS": "-mod=mod"})
    ready.touch()


def _prepare_dns_module() -> Path:
    """A module with CoreDNS's main function, few plug-ins, and the versions of everything that CoreDNS names."""
    folder = BUILT / "dns"
    folder.mkdir(parents=True, exist_ok=True)
    published, _, _ = _OTHERS["coredns"].partition(" ")
    described = json.loads(_go("mod", "download", "-json", published, folder=folder))
    required = Path(described["GoMod"]).read_text().splitlines()
    lines = [line if not line.startswith("module ") else "module dns" for line in required]
    (folder / "go.mod").write_text("\n".join([*lines, f"require {published.replace('@', ' ')}", ""]))
    (folder / "go.sum").write_bytes((Path(described["Dir"]) / "go.sum").read_bytes())
    plugins = "".join(f'\t_ "{_COREDNS}/plugin/{name}"\n' for name in _DNS_PLUGINS)
    (folder / "main.go").write_text(
        f'package main\n\nimport (\n{plugins}\t"{_COREDNS}/coremain"\n)\n\nfunc main() {{\n\tcoremain.Run()\n}}\n'
    )
    return folder


def _go(*words: str, folder: Path = BUILT, environment: dict[str, str] | None = None) -> str:
    defaults = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["go", *words],
        cwd=folder,
        env=os.environ | defaults | (environment or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Failure(f"`go {' '.join(words[:2])} … {words[-1]}` failed:\n{done.stderr[-2000:]}")
    return done.stdout
