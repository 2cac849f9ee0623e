"""The images' base where its registry cannot be reached: Debian's Python under the published image's name.

Guarantees: the published image that the Dockerfile pins is taken when it can be pulled; what is built instead has the
same name and release.
"""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from cluster.images.tools import BASE, Buildah, run
from cluster.places import ROOT
from cluster.progress import say, step
from cluster.refusal import NoCluster

_PINNED: Final = re.compile(rf"^ARG BASE=({re.escape(BASE)}@sha256:[0-9a-f]{{64}})$", re.MULTILINE)
_RELEASE: Final = "bookworm"
_PULL_PATIENCE_S: Final = 120


def ensure_base(buildah: Buildah) -> None:
    """Pulls the base, or builds it."""
    if buildah.identity(BASE):
        return
    (pinned,) = _PINNED.findall((ROOT / "Dockerfile").read_text())
    try:
        pull = [*buildah.command, "pull", "--quiet", pinned]
        subprocess.run(pull, check=True, capture_output=True, timeout=_PULL_PATIENCE_S, stdin=subprocess.DEVNULL)
        run(*buildah.command, "tag", pinned, BASE)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        say(f"{BASE} cannot be pulled; building one from Debian's packages")
    else:
        return
    with step(f"building {BASE} (a minute, once)"), tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "root.tar"
        _bootstrap(archive)
        buildah.commit_root(BASE, archive, {"LANG": "C.UTF-8"})


def _bootstrap(archive: Path) -> None:
    unneeded = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
    leftovers = 'rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/var/log/*'
    try:
        run(
            "mmdebstrap",
            "--variant=minbase",
            "--include=python3,python3-venv,ca-certificates",
            *(f"--dpkgopt=path-exclude={pattern}" for pattern in unneeded),
            f"--customize-hook={leftovers}",
            _RELEASE,
            str(archive),
        )
    except FileNotFoundError:
        raise NoCluster("mmdebstrap is missing: apt-get install mmdebstrap") from None
