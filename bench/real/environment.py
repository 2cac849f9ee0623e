"""The environment of the real programs: one interpreter with their packages, made once in a cache outside the tree.

It is named by what is in it, so other versions make another one. Its `.pth` line runs truth/annotated.py where the
bench asks for it, and does nothing otherwise.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSIONS = {
    "torch": "2.15.0",
    "torchvision": "0.29.2",
    "transformers": "5.23.0",
    "lightning": "2.6.6",
    "accelerate": "1.15.0",
    "timm": "1.0.31",
    "ipython": "9.18.1",
    "ipykernel": "7.4.0",
    "deepspeed": "0.19.8",
}
# A source distribution that asks for PyTorch when it is built; its operators are compiled when they are first used.
_BUILT = ("deepspeed",)
_HOOK = (
    'import os; p = os.environ.get("BENCH_ANNOTATED"); '
    'p and exec(compile(open(p).read(), p, "exec"), {"__name__": "annotated"})\n'
)


def make_environment() -> Path:
    """The folder of its commands; minutes and several GB the first time."""
    pins = [f"{name}=={version}" for name, version in VERSIONS.items()]
    mark = hashlib.sha256(" ".join(sorted(pins)).encode()).hexdigest()[:8]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fleetprof"
    home = cache / f"real-torch-{VERSIONS['torch']}-{mark}"
    commands = home / "bin"
    if not (home / "complete").exists():
        print(f"making {home} (several GB, once)", file=sys.stderr)
        shutil.rmtree(home, ignore_errors=True)
        uv = [ROOT / ".ci" / "uv"]
        subprocess.run([*uv, "venv", "-q", "--python", "3.11", home], check=True)
        install = [*uv, "pip", "install", "-q", "--python", commands / "python"]
        first = [pin for pin in pins if pin.split("==")[0] not in _BUILT]
        subprocess.run([*install, *first, "numpy>=2.2", "setuptools", "jupyter-client"], check=True)
        built = [pin for pin in pins if pin.split("==")[0] in _BUILT]
        environment = {**os.environ, "DS_BUILD_OPS": "0", "DS_ACCELERATOR": "cpu"}
        subprocess.run([*install, "--no-build-isolation", *built], check=True, env=environment)
        site = next((home / "lib").glob("python3.*/site-packages"))
        (site / "bench-annotated.pth").write_text(_HOOK)
        (home / "complete").touch()
    return commands
