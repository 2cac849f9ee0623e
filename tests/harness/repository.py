"""The files of the repository, for tests that hold all of them to a rule."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]


def tracked_files() -> list[str]:
    """Their paths from the root, and with them those that are new and not ignored; skips outside a checkout."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [name for name in listing.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def source_files() -> list[str]:
    """The Python modules that people write."""
    return [name for name in tracked_files() if name.endswith(".py") and "_pb2" not in name]
