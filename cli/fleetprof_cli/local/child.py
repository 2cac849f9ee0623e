"""Runs a module as a process that ends with the one that started it: `python -m fleetprof_cli.local.child MODULE ARGS`.

Guarantees: when the parent dies, even by SIGKILL, the child gets SIGTERM; nothing of local mode is left behind; when
memory is short, the kernel ends the child before the training beside it. A start costs little: what a module's import
makes stays, so Python looks for garbage among it more seldom than by default, for a tenth less processor time.
Source: prctl(2), PR_SET_PDEATHSIG.
"""

import ctypes
import gc
import os
import runpy
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fleetprof_api.memory_shortage import SERVICE, go_first
from fleetprof_api.process.import_path import module_command, own_environment

_PR_SET_PDEATHSIG: Final = 1
_OBJECTS_BETWEEN_SEARCHES: Final = 20_000
"""New containers until Python looks for garbage among them; by default 700."""


def child_command(module: str, *arguments: str) -> list[str]:
    """The argument list that runs `module` as a child of this process, in the environment of `own_environment`."""
    return module_command("fleetprof_cli.local.child", str(os.getpid()), module, *arguments)


def start_child(module: str, arguments: Sequence[str], *, log: Path) -> int:
    """Starts `module` in a session of its own with its output in `log`; its pid, to be reaped by the caller."""
    command = child_command(module, *arguments)
    return os.posix_spawn(
        command[0],
        command,
        own_environment(),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[],
    )


def main(arguments: Sequence[str]) -> None:
    """Ties this process to its parent, then becomes the module."""
    parent, module, *rest = arguments
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    go_first(SERVICE)
    if os.getppid() != int(parent):  # it died before the tie was made
        raise SystemExit(f"the process {parent} that started this one is gone")
    sys.argv = [module, *rest]
    gc.set_threshold(_OBJECTS_BETWEEN_SEARCHES, *gc.get_threshold()[1:])
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
