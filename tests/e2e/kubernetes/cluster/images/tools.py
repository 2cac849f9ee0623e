"""The builder of images here: Docker or Podman where they answer, else buildah without a daemon.

Guarantees: buildah keeps its layers in a store of its own in the cache, so a build after a change of code redoes the
last layers only, and drops them when told; nothing of the machine's own image store is touched.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from cluster.places import CACHE
from cluster.refusal import ClusterFailure, NoCluster

BASE: Final = "docker.io/library/python:3.11-slim-bookworm"
"""The base of our images by its name on this machine; the Dockerfile pins the published one by its digest."""
_STORE: Final = CACHE / "images"
_CERTIFICATES: Final = Path("/etc/ssl/certs")


class ImageTool(Protocol):
    """Builds images and writes them into archives."""

    def build(self, name: str, context: Path, file: Path, target: str = "") -> None:
        """Builds `name` from a Dockerfile."""

    def export(self, name: str, archive: Path) -> None:
        """Writes the image with its name into one file that `ctr images import` and kind read."""

    def size_bytes(self, name: str) -> int:
        """The size of the image, unpacked."""

    def identity(self, name: str) -> str:
        """The image's digest; empty when there is none of that name."""

    def drop_stale_layers(self) -> None:
        """Frees what earlier builds kept and no image of a name needs; the next builds begin anew."""


@dataclass(frozen=True)
class ContainerEngine:
    """`docker` or `podman`, whose daemon answers."""

    program: str

    def build(self, name: str, context: Path, file: Path, target: str = "") -> None:
        """See ImageTool."""
        stage = ["--target", target] if target else []
        run(self.program, "build", "--tag", name, "--file", str(file), *stage, str(context))

    def export(self, name: str, archive: Path) -> None:
        """See ImageTool."""
        run(self.program, "save", "--output", str(archive), name)

    def size_bytes(self, name: str) -> int:
        """See ImageTool."""
        return int(run(self.program, "image", "inspect", "--format", "{{.Size}}", name))

    def identity(self, name: str) -> str:
        """See ImageTool."""
        return _or_empty(self.program, "image", "inspect", "--format", "{{.Id}}", name)

    def drop_stale_layers(self) -> None:
        """Nothing: an engine's layers are its owner's to drop."""


class Buildah:
    """buildah as root, in chroot isolation, over the network of this machine."""

    def __init__(self) -> None:
        if not shutil.which("buildah"):
            raise NoCluster("images are built with Docker, Podman or buildah, and there is none: install one")
        _STORE.mkdir(parents=True, exist_ok=True)
        places = ["--root", str(_STORE / "store"), "--runroot", str(_STORE / "run"), "--storage-driver", "overlay"]
        self.command = ["buildah", *places]

    def build(self, name: str, context: Path, file: Path, target: str = "") -> None:
        """See ImageTool."""
        stage = ["--target", target] if target else []
        network = ["--isolation", "chroot", "--network", "host"]
        # Behind a proxy that signs with its own authority, the machine's certificates are those that work.
        authority = ["--volume", f"{_CERTIFICATES}:{_CERTIFICATES}:ro"] if _CERTIFICATES.is_dir() else []
        known = ("PIP_CERT", "SSL_CERT_FILE")
        arguments = [word for key in known if key in os.environ for word in ("--build-arg", f"{key}={os.environ[key]}")]
        arguments += ["--build-arg", f"BASE={BASE}"]  # by its name here, whether it was pulled or made
        pull = ["--layers", "--pull-never", "--quiet"]
        words = [*pull, *network, *authority, *arguments, *stage, "--tag", name, "--file", str(file), str(context)]
        run(*self.command, "bud", *words)

    def export(self, name: str, archive: Path) -> None:
        """See ImageTool."""
        # Docker's format: the other one would be compressed, at most of the time that loading takes.
        archive.unlink(missing_ok=True)
        run(*self.command, "push", "--quiet", "--disable-compression", name, f"docker-archive:{archive}:{name}")

    def size_bytes(self, name: str) -> int:
        """See ImageTool."""
        found = run(*self.command, "images", "--format", "{{.Size}}", name)
        return _read_size(found.split("\n")[0])

    def identity(self, name: str) -> str:
        """See ImageTool."""
        return _or_empty(*self.command, "inspect", "--type", "image", "--format", "{{.FromImageID}}", name)

    def drop_stale_layers(self) -> None:
        """See ImageTool."""
        run(*self.command, "rmi", "--prune", "--force")

    def commit_root(self, name: str, archive: Path, environment: Mapping[str, str]) -> None:
        """Makes an image of a root file system."""
        container = run(*self.command, "from", "scratch")
        try:
            run(*self.command, "add", "--quiet", container, str(archive), "/")
            values = [word for key, value in environment.items() for word in ("--env", f"{key}={value}")]
            run(*self.command, "config", *values, "--cmd", "python3", container)
            run(*self.command, "commit", "--quiet", container, name)
        finally:
            run(*self.command, "rm", container)


def find_engine() -> ContainerEngine | None:
    """Docker or Podman, when it is there and answers."""
    for program in ("docker", "podman"):
        if shutil.which(program):
            result = subprocess.run([program, "info", "--format", "json"], capture_output=True, check=False, timeout=30)
            if result.returncode == 0 and b"ServerErrors" not in result.stdout:
                return ContainerEngine(program)
    return None


def run(*command: str) -> str:
    """Runs a program to its end; its output. Fails with the end of its errors."""
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ClusterFailure(f"`{' '.join(command)[:200]}` failed:\n{(result.stderr or result.stdout)[-3000:]}")
    return result.stdout.strip()


def _or_empty(*command: str) -> str:
    try:
        return run(*command)
    except ClusterFailure:
        return ""


def _read_size(text: str) -> int:
    number, unit = text.split()
    return int(float(number) * {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}[unit])
