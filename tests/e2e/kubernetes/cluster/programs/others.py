"""The programs of a cluster that are not Kubernetes' own, from one Go module: their common libraries are compiled once.

Guarantees: each program is of the version named here; of a library that several of them want, all get the newest
version that one of them asks for.
"""

from pathlib import Path
from typing import Final

from cluster.places import BUILT
from cluster.programs.go import AS_PROGRAM, run_go

_HELM: Final = "v4.3.1"
_COREDNS: Final = "github.com/coredns/coredns"
# Those that network.py's Corefile names; all of them would be twice as much to build.
_DNS_PLUGINS: Final = ("bind", "cache", "errors", "kubernetes")
_CONTAINERD: Final = "github.com/containerd/containerd/v2"
_MODULES: Final = {"helm.sh/helm/v4": _HELM, _CONTAINERD: "v2.4.2", _COREDNS: "v1.15.0"}
_PACKAGES: Final = {
    "containerd": f"{_CONTAINERD}/cmd/containerd",
    "containerd-shim-runc-v2": f"{_CONTAINERD}/cmd/containerd-shim-runc-v2",
    "ctr": f"{_CONTAINERD}/cmd/ctr",
    "coredns": "./dns",
    "helm": "helm.sh/helm/v4/cmd/helm",
}
_FLAGS: Final = {"helm": f"-X helm.sh/helm/v4/internal/version.version={_HELM}"}
OTHERS: Final = tuple(_PACKAGES)


def version_of(name: str) -> str:
    """The version of one of OTHERS."""
    if name == "coredns":
        return f"{_COREDNS}@{_MODULES[_COREDNS]} {' '.join(_DNS_PLUGINS)}"
    package = _PACKAGES[name]
    (version,) = (version for module, version in _MODULES.items() if package.startswith(f"{module}/"))
    return f"{package}@{version}"


def build_other(name: str, into: Path) -> None:
    """Builds one of OTHERS into a folder."""
    folder = _prepare_module()
    flags = f"-s -w {_FLAGS.get(name, '')}"
    run_go("build", "-mod=mod", *AS_PROGRAM, "-ldflags", flags, "-o", str(into / name), _PACKAGES[name], folder=folder)


def _prepare_module() -> Path:
    """A module that names them all, with CoreDNS's main function and few of its plug-ins."""
    folder = BUILT / "others"
    (folder / "dns").mkdir(parents=True, exist_ok=True)
    required = "".join(f"\t{module} {version}\n" for module, version in _MODULES.items())
    (folder / "go.mod").write_text(f"module others\n\ngo 1.26.6\n\nrequire (\n{required})\n")
    plugins = "".join(f'\t_ "{_COREDNS}/plugin/{name}"\n' for name in _DNS_PLUGINS)
    (folder / "dns/main.go").write_text(
        f'package main\n\nimport (\n{plugins}\t"{_COREDNS}/coremain"\n)\n\nfunc main() {{\n\tcoremain.Run()\n}}\n'
    )
    return folder
