"""The process that the kernel ends first when memory is short: one of ours, and never the trainer beside it.

Guarantees: a process's score (proc(5), oom_score_adj) is only ever raised, which takes no privilege, and which its
children inherit; raises nothing. So it is called in processes of ours alone, never in one that starts the training.
"""

import os
from contextlib import suppress
from typing import Final

# Of what the sidecar and the hub start: it can be done again, or its failure is one capture's.
HELPER: Final = 1000
# Of the sidecar and the hub: after their helpers, before everybody else.
SERVICE: Final = 900
_FILE: Final = "/proc/self/oom_score_adj"


def go_first(score: int, file: str = _FILE) -> None:
    """Has the kernel prefer this process, by `score` (0 to 1000), where it does not do so more already."""
    with suppress(OSError, ValueError):
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        try:
            if int(os.read(descriptor, 16)) < score:
                os.pwrite(descriptor, str(score).encode(), 0)
        finally:
            os.close(descriptor)
