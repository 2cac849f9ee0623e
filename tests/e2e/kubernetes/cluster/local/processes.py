"""Programs in the background, each with a log and a pid file that outlives whoever started it.

Guarantees: only a process that was started here is ever signalled: the pid file holds its start time too, so that a
pid which the machine has given to somebody else is left alone.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cluster.refusal import ClusterFailure


def start(folder: Path, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
    """Starts `command` in a session of its own, its output in `folder/name.log`."""
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment) if environment is not None else None,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (folder / f"{name}.pid").write_text(f"{process.pid} {_start_time(process.pid)}\n")
    # It outlives this object, which would warn of that.
    process.returncode = 0


def is_running(folder: Path, name: str) -> bool:
    """Tells whether the process of that name lives."""
    return _pid(folder / f"{name}.pid") is not None


def stop(folder: Path, name: str, patience_s: float = 30) -> None:
    """Asks the process to end, ends it after `patience_s`, and removes its pid file."""
    file = folder / f"{name}.pid"
    pid = _pid(file)
    if pid is not None:
        _signal(pid, signal.SIGTERM)
        until = time.monotonic() + patience_s
        while _pid(file) is not None and time.monotonic() < until:
            _reap(pid)
            time.sleep(0.05)
        if _pid(file) is not None:
            _signal(pid, signal.SIGKILL)
            while _pid(file) is not None:
                _reap(pid)
                time.sleep(0.02)
    file.unlink(missing_ok=True)


def kill_tree(roots: set[int]) -> None:
    """Ends processes and all their descendants at once."""
    doomed, found = set(roots), set(roots)
    parents = {pid: parent for pid in _pids() if (parent := _parent(pid)) is not None}
    while found:
        found = {pid for pid, parent in parents.items() if parent in found} - doomed
        doomed |= found
    for pid in doomed:
        _signal(pid, signal.SIGKILL)


def find(program: str, argument: str) -> set[int]:
    """The pids whose program has that file name and which have that argument."""
    found = set()
    for pid in _pids():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if Path(words[0]).name == program and argument in words:
            found.add(pid)
    return found


def wait_for(happened: Callable[[], object], what: str, folder: Path, name: str, patience_s: float = 120) -> None:
    """Returns once `happened()`; fails with the end of the process's log when it ends or takes too long."""
    until = time.monotonic() + patience_s
    while not happened():
        if not is_running(folder, name) or time.monotonic() > until:
            log = (folder / f"{name}.log").read_text(errors="replace")[-2000:]
            raise ClusterFailure(f"{name} did not come to {what}; the end of {folder / name}.log:\n{log}")
        time.sleep(0.1)


def _pid(file: Path) -> int | None:
    try:
        pid, started = file.read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid) if _start_time(int(pid)) == started else None


def _start_time(pid: int) -> str | None:
    """Clock ticks since boot when the process began; None when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _reap(pid: int) -> None:
    # A child of ours stays a zombie until we ask; other processes are none of our children.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
