"""Tells whether a process that speaks through a socket file still lives, without asking it anything.

Guarantees: no call blocks, sends or signals anything; None means "cannot tell from here". Two signs, both certain when
they say "dead": the pidfd of a process in a pid namespace that we see becomes readable at its exit (pidfd_open(2)), and
a datagram socket's path refuses a connection once the socket is closed (unix(7)). The second works across pid
namespaces; a forked child that outlives its parent can keep the socket open, so it proves death, not life.
"""

import os
import select
import socket


class ProcessHandle:
    """A process that was alive when this was made; the pid may be used again later without confusing it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._pidfd = os.pidfd_open(pid) if pid > 0 else -1
        except OSError:  # an old kernel, a sandbox, or gone already: the socket tells
            self._pidfd = -1

    def has_exited(self) -> bool | None:
        """True once the process has ended, a zombie included; None when its pid is not visible from here."""
        if self._pidfd < 0:
            return None
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        return bool(poller.poll(0))

    def close(self) -> None:
        """Frees the descriptor."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


def has_listener(path: str) -> bool | None:
    """Tells whether a datagram socket is bound to this path. None: the path is missing or may not be tried."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return False
        except OSError:
            return None
        return True
