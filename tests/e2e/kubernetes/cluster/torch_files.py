"""PyTorch for the trainers' pods: installed once on this machine, mounted by the pods through a volume.

Guarantees: the files are readable by every user; the version is the one that pyproject.toml names.
"""

import subprocess
import tomllib

from cluster.image_tools import run
from cluster.places import ROOT, TORCH
from cluster.progress import step


def ensure_torch() -> None:
    """Installs it where it is missing; from uv's cache that takes no more disk."""
    complete = TORCH / "complete"
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["torch"]
    if complete.is_file() and complete.read_text().split() == wanted:
        return
    with step(f"installing {' '.join(wanted)} for the pods (several GB, once)"):
        uv = str(ROOT / ".ci/uv")
        run(uv, "venv", "--quiet", "--clear", "--python", "3.11", str(TORCH))
        run(uv, "pip", "install", "--quiet", "--python", str(TORCH / "bin/python"), *wanted, "numpy>=2.2", "setuptools")
        subprocess.run(["chmod", "-R", "go+rX", TORCH], check=True)
        complete.write_text("\n".join(wanted))
