"""The agent's end of the datagram socket in the shared directory.

Guarantees: nothing here blocks but `wait`; the socket is made in the process that uses it and is unlinked by that
process alone; only the sidecar's socket is listened to; a datagram that cannot be sent or understood is dropped. A job
may close all descriptors, as daemons do, and have one of its own under our number then: each use looks whether the
number is still the socket (device and inode), and from then on nothing is sent, read or closed.
"""

from __future__ import annotations

import os
import select
import socket
import time
from typing import Any

from fleetprof_agent import wire
from fleetprof_agent.errors import pass_on

MAX_COMMANDS = 16  # read at one go: more than the kernel queues for us


class Channel:
    """Bound to `<directory>/<prefix><token>`. Raises OSError when that cannot be."""

    def __init__(self, directory: str, prefix: str = wire.AGENT_SOCKET_PREFIX, token: str = "") -> None:
        self.token = token or os.urandom(8).hex()
        self.path = "%s/%s%s" % (directory, prefix, self.token)
        self._sidecar = directory + "/" + wire.SIDECAR_SOCKET
        self._pid = os.getpid()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._identity = _identify(self._socket.fileno())
        try:
            self._socket.setblocking(False)
            self._socket.bind(self.path)
            self._arrivals = select.poll()
            self._arrivals.register(self._socket, select.POLLIN)
            os.chmod(self.path, 0o666)  # noqa: S103 - the sidecar may have another uid; the directory keeps strangers out
        except BaseException:
            self.close()
            raise

    def wait(self, seconds: float) -> None:
        """Returns when something has arrived, or after so long. Not select(): it takes no descriptor above 1023."""
        if self._is_ours():
            self._arrivals.poll(seconds * 1000)
        else:
            time.sleep(seconds)

    def send(self, kind: str, **fields: Any) -> bool:
        """Sends one message to the sidecar; False when it could not be sent now."""
        if not self._is_ours():
            return False
        try:
            self._socket.sendto(wire.encode(kind, pid=self._pid, **fields), self._sidecar)
        except (OSError, ValueError) as error:
            pass_on(error)
            return False
        return True

    def receive(self) -> list[dict[str, Any]]:
        """The commands that have arrived, oldest first."""
        commands = []
        for _ in range(MAX_COMMANDS if self._is_ours() else 0):
            # Asked first: mostly there is none, and an exception would cost the trainer ten times as much.
            if not self._arrivals.poll(0):
                break
            try:
                data, address = self._socket.recvfrom(wire.MAX_BYTES + 1)
            except OSError as error:
                pass_on(error)
                break
            # By name, not by path: a sidecar may see the shared directory under another one.
            if not isinstance(address, str) or address.rpartition("/")[2] != wire.SIDECAR_SOCKET:
                continue
            try:
                commands.append(wire.decode(data, wire.TO_AGENT))
            except ValueError as error:
                pass_on(error)
                continue
        return commands

    def wake(self) -> None:
        """Ends a wait on this socket: it sends itself an empty datagram."""
        try:
            if self._is_ours():
                self._socket.sendto(b"", self.path)
        except OSError as error:
            pass_on(error)

    def close(self) -> None:
        """Closes; removes the socket's file in the process that made it."""
        if self._is_ours():
            self._socket.close()
        else:
            self._socket.detach()  # the number is the job's now
        if os.getpid() == self._pid:
            try:
                os.unlink(self.path)
            except OSError as error:
                pass_on(error)

    def _is_ours(self) -> bool:
        # Not for good: another thread of the job may be in the middle of putting back what it saved by dup().
        return _identify(self._socket.fileno()) == self._identity


def _identify(descriptor: int) -> tuple[int, int]:
    """Device and inode of what has this number; (0, 0): nothing has."""
    try:
        found = os.fstat(descriptor)
    except OSError as error:
        pass_on(error)
        return 0, 0
    return found.st_dev, found.st_ino
