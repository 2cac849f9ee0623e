"""The images that the tests need: ours from the project's Dockerfile, the trainer's, the S3 server's, the pause image.

Guarantees: an image is of what is in the tree now; where nothing of that changed, nothing is built or loaded again.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleetprof_api import __version__

from cluster.images.tools import ImageTool, run
from cluster.places import CACHE, ROOT
from cluster.programs.go import AS_PROGRAM
from cluster.progress import say, step
from cluster.refusal import ClusterFailure, NoCluster

STORE: Final = "ghcr.io/versity/versitygw:v1.8.0"
TRAINER: Final = "localhost/fleetprof-e2e/trainer:1"
_SOURCES: Final = Path(__file__).parents[2] / "images"
_LAYERS_OF: Final = CACHE / "images/made-from"
_IMAGES_OF: Final = CACHE / "images/built-from"


@dataclass(frozen=True, slots=True)
class Image:
    """One image: its name, and how it is built under that name."""

    name: str
    build: Callable[[ImageTool, str], None]


def version() -> str:
    """The project's version, the tag of its images."""
    return __version__


def our_name(component: str) -> str:
    """The published name of `operator`, `sidecar`, `analyzer` or `webui`."""
    return f"ghcr.io/fleetprof/{component}:{version()}"


def list_images() -> list[Image]:
    """All images of the tests, ours first."""

    def ours(component: str) -> Image:
        file = ROOT / "Dockerfile"
        return Image(our_name(component), lambda tool, name: tool.build(name, ROOT, file, component))

    return [
        *(ours(component) for component in ("operator", "sidecar", "analyzer", "webui")),
        Image(TRAINER, lambda tool, name: tool.build(name, _SOURCES / "trainer", _SOURCES / "trainer/Dockerfile")),
        Image(STORE, _build_store),
    ]


def build(tool: ImageTool) -> list[str]:
    """Builds all of them, unless they are of this tree already, and prints their sizes; their names."""
    images = list_images()
    names = [image.name for image in images]
    digest = digest_tree()
    if not _IMAGES_OF.is_file() or _IMAGES_OF.read_text() != digest or not all(map(tool.identity, names)):
        _drop_stale_layers(tool)
        for image in images:
            with step(f"building {image.name}"):
                image.build(tool, image.name)
        _IMAGES_OF.write_text(digest)
    for name in names:
        say(f"{name}: {tool.size_bytes(name) / 1e6:.0f} MB")
    return names


def digest_tree() -> str:
    """A hash of all that the images are built from: the Dockerfiles, and what ours copies from the tree."""
    dockerfile = ROOT / "Dockerfile"
    copies = [line.split()[1:-1] for line in dockerfile.read_text().splitlines() if line.startswith("COPY ")]
    copied = {ROOT / name for names in copies if not names[0].startswith("--from=") for name in names}
    digest = hashlib.sha256()
    for path in sorted([dockerfile, _SOURCES, *copied]):
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and file.suffix != ".so" and "__pycache__" not in file.parts:
                content = file.read_bytes()
                digest.update(
                    f"{file.relative_to(ROOT)} {len(content)} {os.access(file, os.X_OK)}\n".encode() + content
                )
    return digest.hexdigest()


def _drop_stale_layers(tool: ImageTool) -> None:
    """Once the dependencies have changed nothing uses the old layers of them: a gigabyte for each change."""
    made_from = b"".join((ROOT / name).read_bytes() for name in ("Dockerfile", "pyproject.toml", "uv.lock"))
    digest = hashlib.sha256(made_from).hexdigest()
    if not _LAYERS_OF.is_file() or _LAYERS_OF.read_text() != digest:
        tool.drop_stale_layers()
        _LAYERS_OF.parent.mkdir(parents=True, exist_ok=True)
        _LAYERS_OF.write_text(digest)


def build_pause(tool: ImageTool, name: str) -> None:
    """The process that holds a pod's namespaces; built with Go for the local cluster."""
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        source = _SOURCES / "pause"
        compiled = subprocess.run(
            ["go", "build", *AS_PROGRAM, "-ldflags", "-s -w", "-o", context / "pause", source / "main.go"],
            env={"CGO_ENABLED": "0", "HOME": str(Path.home()), "PATH": _path()},
            capture_output=True,
            text=True,
            check=False,
        )
        if compiled.returncode != 0:
            raise ClusterFailure(f"the pause image cannot be built: {compiled.stderr[-1000:]}")
        tool.build(name, context, source / "Dockerfile")


def _build_store(tool: ImageTool, name: str) -> None:
    program = run(str(ROOT / ".ci/versitygw"))
    if not program:
        raise NoCluster("the image of the S3 server is built with Go, and there is none: install Go")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy2(program, Path(folder) / "versitygw")
        tool.build(name, Path(folder), _SOURCES / "store/Dockerfile")


def _path() -> str:
    go = shutil.which("go")
    if go is None:
        raise NoCluster("the pause image is built with Go, and there is none: install Go")
    return f"{Path(go).parent}:/usr/bin:/bin"
