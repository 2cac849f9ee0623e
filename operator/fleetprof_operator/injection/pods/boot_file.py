"""The text of `sitecustomize.py` that a pod gets in an annotation: the agent's own file, word for word.

Guarantees: read once; small enough for an annotation.
"""

import functools
from pathlib import Path
from typing import Final

import fleetprof_agent

MAX_BYTES: Final = 8 << 10


@functools.cache
def read_boot_file() -> str:
    """The file's text. Raises OSError where the agent is not installed beside the operator."""
    return (Path(fleetprof_agent.__file__).parent / "sitecustomize.py").read_text()
