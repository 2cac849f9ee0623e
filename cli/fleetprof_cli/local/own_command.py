"""Starts and stops one of our own commands beside another one, as a user would have typed it.

Guarantees: each has a session of its own, so that Ctrl-C reaches only the command that started it.
"""

import signal
import subprocess
from pathlib import Path
from typing import Final

from fleetprof_api.process.import_path import own_environment

from fleetprof_cli.local.child import child_command
from fleetprof_cli.messages import say

_ENDS_WITHIN_S: Final = 60.0


def start_own(log: Path, *words: str, folder: str = "/") -> subprocess.Popen[bytes]:
    """Starts `fleetprof WORDS` in a folder, with its output in `log`."""
    with log.open("wb") as output:
        return subprocess.Popen(
            child_command("fleetprof_cli.main", *words),
            cwd=folder,
            env=own_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def stop_own(process: subprocess.Popen[bytes], what: str) -> None:
    """Ends it: by SIGTERM, and by SIGKILL where that does not."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        say(f"the {what} (pid {process.pid}) does not end; killing it")
        process.kill()
        process.wait()


def last_lines(log: Path) -> list[str]:
    """The end of a log."""
    return log.read_text(errors="replace").strip().splitlines()[-8:] or ["it said nothing"]
