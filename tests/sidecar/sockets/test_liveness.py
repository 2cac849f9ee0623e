"""Life and death of processes and sockets, seen from outside."""

import os
import select
import socket
import subprocess
import sys
from pathlib import Path

from fleetprof_sidecar.sockets.liveness import ProcessHandle, has_listener


def test_a_process_is_seen_to_live_and_to_end_before_it_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    handle = ProcessHandle(child.pid)
    assert handle.has_exited() is False
    child.kill()
    ended = os.pidfd_open(child.pid)
    select.select([ended], [], [], 30)
    os.close(ended)
    assert handle.has_exited() is True  # still a zombie
    child.communicate()
    assert handle.has_exited() is True
    handle.close()


def test_a_pid_that_is_not_visible_tells_nothing() -> None:
    handle = ProcessHandle(0)
    assert handle.has_exited() is None
    handle.close()


def test_a_socket_file_tells_whether_somebody_listens(short_directory: str) -> None:
    path = f"{short_directory}/s"
    assert has_listener(path) is None
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(path)
        assert has_listener(path) is True
        bound.setblocking(False)
        # Nothing was sent to it by asking.
        assert select.select([bound], [], [], 0) == ([], [], [])
    assert has_listener(path) is False
    Path(path).unlink()
    Path(path).touch()
    assert has_listener(path) is False
