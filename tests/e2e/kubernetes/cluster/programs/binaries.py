"""The programs of the local cluster, built from Go modules once into the cache outside the tree.

Guarantees: a program counts as built only when it is whole and of the version named here; a killed build goes on where
it stopped, from Go's own cache.
"""

import json
from pathlib import Path
from typing import Final

from cluster.places import BINARIES, BUILT, KUBERNETES, built
from cluster.programs import kubernetes
from cluster.programs.go import require_go, run_go
from cluster.progress import step

KIND: Final = "sigs.k8s.io/kind@v0.33.0"

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
# What some tests alone want.
_BESIDES: Final = {"kube-router": "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router@v2.1.0"}
_FLAGS: Final = {"helm": f"-X helm.sh/helm/v4/internal/version.version=v{_HELM}"}
# Everything that a client of any cluster needs.
CLIENTS: Final = ("kubectl", "helm")
# What the tests on an API server alone need, etcd besides.
API_SERVER: Final = (*CLIENTS, "kube-apiserver")


def build(names: tuple[str, ...] = (*kubernetes.PROGRAMS, *_OTHERS)) -> None:
    """Builds what is missing of `names`."""
    missing = [name for name in names if not _is_built(name)]
    if not missing:
        return
    require_go(f"the cluster's programs ({', '.join(missing)}) are")
    BINARIES.mkdir(parents=True, exist_ok=True)
    for name in missing:
        with step(f"building {name} {_version(name).rpartition('@')[2].split()[0]} (minutes, once)"):
            _build_one(name)
        (BINARIES / f"{name}.version").write_text(_version(name))


def build_api_server(release: str) -> None:
    """Builds the API server of another release, if it is missing; etcd and the clients are those of every release."""
    into = built(release) / "bin"
    stamp = into / "kube-apiserver.version"
    version = f"k8s.io/kubernetes@v{release}"
    if (into / "kube-apiserver").is_file() and stamp.is_file() and stamp.read_text() == version:
        return
    require_go(f"the API server of Kubernetes {release} is")
    with step(f"building kube-apiserver {release} (minutes, once)"):
        kubernetes.build_program("kube-apiserver", release)
    stamp.write_text(version)


def install(package: str, into: Path) -> None:
    """`go install` of one program."""
    require_go(f"{package} is")
    with step(f"building {package} (once)"):
        run_go("install", "-trimpath", "-ldflags", "-s -w", package, folder=BUILT, environment={"GOBIN": str(into)})


def _version(name: str) -> str:
    return f"k8s.io/kubernetes@v{KUBERNETES}" if name in kubernetes.PROGRAMS else (_OTHERS | _BESIDES)[name]


def _is_built(name: str) -> bool:
    stamp = BINARIES / f"{name}.version"
    return (BINARIES / name).is_file() and stamp.is_file() and stamp.read_text() == _version(name)


def _build_one(name: str) -> None:
    if name in kubernetes.PROGRAMS:
        kubernetes.build_program(name, KUBERNETES)
    elif name == "coredns":
        folder = _prepare_dns_module()
        words = ("build", "-mod=mod", "-trimpath", "-ldflags", "-s -w", "-o", str(BINARIES / name), ".")
        run_go(*words, folder=folder)
    else:
        flags = f"-s -w {_FLAGS.get(name, '')}"
        environment = {"GOBIN": str(BINARIES)}
        run_go("install", "-trimpath", "-ldflags", flags, _version(name), folder=BUILT, environment=environment)


def _prepare_dns_module() -> Path:
    """A module with CoreDNS's main function, few plug-ins, and the versions of everything that CoreDNS names."""
    folder = BUILT / "dns"
    folder.mkdir(parents=True, exist_ok=True)
    published, _, _ = _OTHERS["coredns"].partition(" ")
    described = json.loads(run_go("mod", "download", "-json", published, folder=folder))
    required = Path(described["GoMod"]).read_text().splitlines()
    lines = [line if not line.startswith("module ") else "module dns" for line in required]
    (folder / "go.mod").write_text("\n".join([*lines, f"require {published.replace('@', ' ')}", ""]))
    (folder / "go.sum").write_bytes((Path(described["Dir"]) / "go.sum").read_bytes())
    plugins = "".join(f'\t_ "{_COREDNS}/plugin/{name}"\n' for name in _DNS_PLUGINS)
    (folder / "main.go").write_text(
        f'package main\n\nimport (\n{plugins}\t"{_COREDNS}/coremain"\n)\n\nfunc main() {{\n\tcoremain.Run()\n}}\n'
    )
    return folder
