"""Flux's health checks: its own evaluation of healthCheckExprs, and of kstatus where there are none.

Guarantees: the code is Flux's, out of its Go modules at the versions of flux_health/go.mod; it is built once (a minute
of processor time, some MB of modules) and kept outside the tree.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

_SOURCE: Final = Path(__file__).with_name("flux_health")


def judge(documents: Sequence[Mapping[str, Any]], expressions: Mapping[str, str] | None = None) -> list[str]:
    """kstatus' word for each object. `expressions`: one entry of healthCheckExprs. Skips without Go or its proxy."""
    arguments = [json.dumps(expressions)] if expressions is not None else []
    result = subprocess.run(
        [str(_find_program()), *arguments],
        input="".join(f"{json.dumps(document)}\n" for document in documents),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def _find_program() -> Path:
    sources = sorted(path for path in _SOURCE.iterdir() if path.suffix in (".go", ".mod", ".sum"))
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fleetprof"
    program = cache / f"flux-health-{digest}"
    if program.is_file():
        return program
    trouble = "there is no Go to build it with"
    if shutil.which("go"):
        cache.mkdir(parents=True, exist_ok=True)
        made = cache / f"{program.name}.{os.getpid()}"
        result = subprocess.run(
            ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(made), "."],
            cwd=_SOURCE,
            env=os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        if result.returncode == 0:
            made.replace(program)
            return program
        trouble = result.stderr[-2000:]
    reason = f"Flux's health checks cannot be had: {trouble}"
    if "cluster" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
        pytest.fail(reason)
    pytest.skip(reason)
