"""The Debian packages that the local cluster needs, installed where root may, without a service being started.

Guarantees: etcd and the CNI plug-ins are unpacked into the cache and never installed: their package starts a server.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from cluster.places import BINARIES, BUILT
from cluster.progress import step
from cluster.refusal import ClusterFailure, NoCluster
from cluster.turns import alone

UNPACKED: Final = BUILT / "debian"
ETCD: Final = BINARIES / "etcd"
CNI: Final = UNPACKED / "usr/lib/cni"

# Program → package.
_INSTALLED: Final = {
    "runc": "runc",
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "iptables": "iptables",
    "ip": "iproute2",
    "umount": "mount",
}
_UNPACKED: Final = {"etcd-server": UNPACKED / "usr/bin/etcd", "containernetworking-plugins": CNI / "bridge"}


def install() -> None:
    """Installs and unpacks what is missing."""
    with alone("packages"):
        _install_missing()


def _install_missing() -> None:
    missing = sorted({package for program, package in _INSTALLED.items() if not shutil.which(program)})
    to_unpack = [package for package, file in _UNPACKED.items() if not file.is_file() or not ETCD.is_file()]
    if not missing and not to_unpack:
        return
    if not shutil.which("apt-get"):
        raise NoCluster(f"{', '.join([*missing, *to_unpack])} missing, and this is no Debian; use E2E_CLUSTER=current")
    with step(f"installing {', '.join([*missing, *to_unpack])}"):
        _run("apt-get", "update", "-qq")
        if missing:
            _run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)
        UNPACKED.mkdir(parents=True, exist_ok=True)
        for package in to_unpack:
            _unpack(package)


def install_package(name: str) -> None:
    """Installs one that some tests alone want."""
    with alone("packages"), step(f"installing {name}"):
        _run("apt-get", "update", "-qq")
        _run("apt-get", "install", "-y", "-qq", "--no-install-recommends", name)


def _unpack(package: str) -> None:
    downloads = UNPACKED / "downloads"
    shutil.rmtree(downloads, ignore_errors=True)
    downloads.mkdir()
    # apt's own sandbox user may not write below a home directory.
    _run("apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", package, folder=downloads)
    (archive,) = downloads.glob("*.deb")
    _run("dpkg-deb", "-x", str(archive), str(UNPACKED))
    shutil.rmtree(downloads)
    # Beside the other programs, where tests that need no more than an API server look for it.
    BINARIES.mkdir(parents=True, exist_ok=True)
    ETCD.unlink(missing_ok=True)
    ETCD.symlink_to(UNPACKED / "usr/bin/etcd")


def _run(*command: str, folder: Path | None = None) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    result = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise ClusterFailure(f"`{' '.join(command)}` failed: {(result.stderr or result.stdout)[-1000:]}")
