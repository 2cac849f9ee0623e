"""Containers that die or hang: signals from outside, as the kernel's own killer of processes sends them.

Guarantees: only processes in the control group of that one container get a signal; one that was held goes on. Works
where the nodes' processes are this machine's: on the local cluster and with kind on Linux.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from scene.api import Object


def kill(pod: Object, container: str) -> None:
    """Ends every process of the container at once; the kubelet does what the pod's restart policy says."""
    for pid in _processes(pod, container):
        with suppress(ProcessLookupError):  # a helper of one that was killed just before
            os.kill(pid, signal.SIGKILL)


@contextmanager
def held(pod: Object, container: str) -> Iterator[None]:
    """No process of the container runs meanwhile, as when its node hangs."""
    found = _processes(pod, container)
    for pid in found:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in found:
            with suppress(ProcessLookupError):  # the kubelet has killed it
                os.kill(pid, signal.SIGCONT)


def _processes(pod: Object, container: str) -> list[int]:
    status = pod["status"]
    listed = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    identity = next(each["containerID"] for each in listed if each["name"] == container).rpartition("/")[2]
    found = [pid for pid in _pids() if identity in _control_groups(pid)]
    if not found:
        pytest.skip("the containers of this cluster are not processes of this machine, so none can be killed")
    return found


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _control_groups(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return ""
