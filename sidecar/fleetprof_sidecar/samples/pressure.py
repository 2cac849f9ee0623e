"""The time that tasks of the host waited for a core, for memory, for a disk: pressure stall information.

Guarantees: what cannot be read is None and never an error. Source: the kernel's accounting/psi.rst, `some avg10`: the
share of the latest ten seconds in which at least one task waited.
"""

import re
from pathlib import Path
from typing import Final

_SOME: Final = re.compile(r"some avg10=([0-9]{1,3}\.[0-9]{2})")


def read_pressure(proc: Path, resource: str) -> int | None:
    """Permille of one resource (`cpu`, `memory`, `io`); None where the kernel does not account it."""
    try:
        match = _SOME.match((proc / "pressure" / resource).read_text())
    except (OSError, ValueError):
        return None
    return min(1000, round(float(match[1]) * 10)) if match else None
