"""PyTorch for the trainers' pods: installed once on this machine, mounted by the pods through a volume.

Guarantees: the files are readable by every user; the version is the one that pyproject.toml names; they are compiled,
since pods cannot keep what they compile: each rank would do it anew, for three times the work of its start.
"""

import subprocess
import tomllib
from typing import Final

from cluster.images.tools import run
from cluster.places import ROOT, TORCH
from cluster.progress import step
from cluster.turns import alone

_COMPILED: Final = "compiled"


def ensure_torch() -> None:
    """Installs it where it is missing; from uv's cache that takes no more disk."""
    with alone("pods-torch"):
        _install_missing()


def _install_missing() -> None:
    complete = TORCH / "complete"
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["torch"]
    made_of = "\n".join([*wanted, _COMPILED])
    if complete.is_file() and complete.read_text() == made_of:
        return
    with step(f"installing {' '.join(wanted)} for the pods (several GB, once)"):
        uv = str(ROOT / ".ci/uv")
        run(uv, "venv", "--quiet", "--clear", "--python", "3.11", str(TORCH))
        quietly = ["--quiet", "--compile-bytecode", "--python", str(TORCH / "bin/python")]
        run(uv, "pip", "install", *quietly, *wanted, "numpy>=2.2", "setuptools")
        subprocess.run(["chmod", "-R", "go+rX", TORCH], check=True)
        complete.write_text(made_of)
