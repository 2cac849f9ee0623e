"""What becomes of an error of ours inside a trainer: nothing, unless FLEETPROF_AGENT_DEBUG asks for it.

Guarantees: raises nothing.
"""

from __future__ import annotations

import os


def report_error() -> None:
    """Prints the exception that is being handled when FLEETPROF_AGENT_DEBUG asks for it; else nothing."""
    if os.environ.get("FLEETPROF_AGENT_DEBUG"):
        import traceback

        traceback.print_exc()
