"""The environments of the real programs: interpreters with their packages, made once in a cache outside the tree.

Each is named by what is in it, so other versions make another one. A `.pth` line in it runs truth/annotated.py where
the bench asks for it, and does nothing otherwise.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEWEST, WITH_TORCHREC = "newest", "with torchrec"
VERSIONS = {
    NEWEST: {
        "torch": "2.15.0",
        "torchvision": "0.29.2",
        "transformers": "5.23.0",
        "lightning": "2.6.6",
        "accelerate": "1.15.0",
        "timm": "1.0.31",
        "ipython": "9.18.1",
        "ipykernel": "7.4.0",
        "deepspeed": "0.19.8",
    },
    # The operators of torchrec's newest release (fbgemm-gpu-cpu 1.9.0) do not load beside PyTorch 2.15.
    WITH_TORCHREC: {
        "torch": "2.13.0",
        "fbgemm-gpu-cpu": "1.8.0",
        "torchrec": "1.8.0",
        "tensordict": "0.15.3",
        "torchmetrics": "1.0.3",
        "pyre-extensions": "0.0.32",
        "tqdm": "4.70.1",
    },
}
# A source distribution that asks for PyTorch when it is built; its operators are compiled when they are first used.
_BUILT = ("deepspeed",)
# Requires the operators for GPUs, which fbgemm-gpu-cpu stands for.
_ALONE = ("torchrec",)
_HOOK = (
    'import os; p = os.environ.get("BENCH_ANNOTATED"); '
    'p and exec(compile(open(p).read(), p, "exec"), {"__name__": "annotated"})\n'
)


def make_environment(name: str) -> Path:
    """The folder of its commands; minutes and several GB the first time."""
    versions = VERSIONS[name]
    pins = {package: f"{package}=={version}" for package, version in versions.items()}
    mark = hashlib.sha256(" ".join(sorted(pins.values())).encode()).hexdigest()[:8]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fleetprof"
    home = cache / f"real-torch-{versions['torch']}-{mark}"
    commands = home / "bin"
    if not (home / "complete").exists():
        print(f"making {home} (several GB, once)", file=sys.stderr)
        shutil.rmtree(home, ignore_errors=True)
        uv = [ROOT / ".ci" / "uv"]
        subprocess.run([*uv, "venv", "-q", "--python", "3.11", home], check=True)
        install = [*uv, "pip", "install", "-q", "--python", commands / "python"]
        first = [pin for package, pin in pins.items() if package not in (*_BUILT, *_ALONE)]
        subprocess.run([*install, *first, "numpy>=2.2", "setuptools", "jupyter-client"], check=True)
        environment = {**os.environ, "DS_BUILD_OPS": "0", "DS_ACCELERATOR": "cpu"}
        for flag, packages in (("--no-build-isolation", _BUILT), ("--no-deps", _ALONE)):
            if chosen := [pins[package] for package in packages if package in pins]:
                subprocess.run([*install, flag, *chosen], check=True, env=environment)
        site = next((home / "lib").glob("python3.*/site-packages"))
        (site / "bench-annotated.pth").write_text(_HOOK)
        (home / "complete").touch()
    return commands
