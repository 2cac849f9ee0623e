"""The programs of the local cluster, built from Go modules once into the cache outside the tree.

Guarantees: a program counts as built only when it is whole and of the version named here; a killed build goes on where
it stopped, from Go's own cache.
"""

from pathlib import Path
from typing import Final

from cluster.places import BINARIES, BUILT, KUBERNETES, built
from cluster.programs import kubernetes
from cluster.programs.go import AS_PROGRAM, require_go, run_go
from cluster.programs.others import OTHERS, build_other, version_of
from cluster.progress import step
from cluster.turns import alone

KIND: Final = "sigs.k8s.io/kind@v0.33.0"

# What some tests alone want.
_BESIDES: Final = {"kube-router": "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router@v2.1.0"}
# Everything that a client of any cluster needs.
CLIENTS: Final = ("kubectl", "helm")
# What the tests on an API server alone need, etcd besides.
API_SERVER: Final = (*CLIENTS, "kube-apiserver")


def build(names: tuple[str, ...] = (*kubernetes.PROGRAMS, *OTHERS)) -> None:
    """Builds what is missing of `names`."""
    with alone("programs"):
        _build_missing(names)


def _build_missing(names: tuple[str, ...]) -> None:
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
    with alone("programs"), step(f"building kube-apiserver {release} (minutes, once)"):
        kubernetes.build_program("kube-apiserver", release)
    stamp.write_text(version)


def install(package: str, into: Path) -> None:
    """`go install` of one program."""
    require_go(f"{package} is")
    with step(f"building {package} (once)"):
        _install(package, into)


def _version(name: str) -> str:
    if name in kubernetes.PROGRAMS:
        return f"k8s.io/kubernetes@v{KUBERNETES}"
    return _BESIDES[name] if name in _BESIDES else version_of(name)


def _is_built(name: str) -> bool:
    stamp = BINARIES / f"{name}.version"
    return (BINARIES / name).is_file() and stamp.is_file() and stamp.read_text() == _version(name)


def _build_one(name: str) -> None:
    if name in kubernetes.PROGRAMS:
        kubernetes.build_program(name, KUBERNETES)
    elif name in _BESIDES:
        _install(_BESIDES[name], BINARIES)
    else:
        build_other(name, BINARIES)


def _install(package: str, into: Path) -> None:
    environment = {"GOBIN": str(into)}
    run_go("install", *AS_PROGRAM, "-ldflags", "-s -w", package, folder=BUILT, environment=environment)
