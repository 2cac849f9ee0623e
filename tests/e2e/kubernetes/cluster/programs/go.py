"""Go, with which the programs are built; a static binary each, by the tool chain that is there."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from cluster.refusal import ClusterFailure, NoCluster

# The linker drops what debuggers read; to make it first takes the compiler an eighth of its time. Every build has the
# same words, or Go's own packages are compiled once more.
AS_PROGRAM: Final = ("-trimpath", "-gcflags=all=-dwarf=false")

# Compilers and linkers collect no garbage until they have so much: a tenth less processor time. Two run on two cores.
_MEMORY_FOR_TIME: Final = {"GOGC": "off", "GOMEMLIMIT": "2GiB"}


def require_go(for_what: str) -> None:
    """Refuses where there is none."""
    if not shutil.which("go"):
        raise NoCluster(f"{for_what} built with Go, and there is none: install Go")


def run_go(*words: str, folder: Path, environment: dict[str, str] | None = None) -> str:
    """The output of `go`; it runs in `folder`, which is made."""
    defaults = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", **_MEMORY_FOR_TIME}
    folder.mkdir(parents=True, exist_ok=True)
    result = subprocess.run(
        ["go", *words],
        cwd=folder,
        env=os.environ | defaults | (environment or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise ClusterFailure(f"`go {' '.join(words[:2])} … {words[-1]}` failed:\n{result.stderr[-2000:]}")
    return result.stdout
