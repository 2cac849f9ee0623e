"""The agent's end of the datagram socket in the shared directory.

Guarantees: nothing here blocks but `wait`; the socket is made in the process that uses it and is unlinked by that
process alone; only the sidecar's socket is listened to; a datagram that cannot be sent or understood is dropped.
"""

from __future__ import annotations

import os
import select
import socket
from typing import Any

from fleetprof_agent import wire

MAX_COMMANDS = 16  # read at one go: more than the kernel queues for us


class Channel:
    """Bound to `<directory>/fleetprofagent<token>`. Raises OSError when that cannot be."""

    def __init__(self, directory: str) -> None:
        self.path = "%s/%s%s" % (directory, wire.AGENT_SOCKET_PREFIX, os.urandom(8).hex())
        self._sidecar = directory + "/" + wire.SIDECAR_SOCKET
        self._pid = os.getpid()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
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
        self._arrivals.poll(seconds * 1000)

    def send(self, kind: str, **fields: Any) -> bool:
        """Sends one message to the sidecar; False when it could not be sent now."""
        try:
            self._socket.sendto(wire.encode(kind, pid=self._pid, **fields), self._sidecar)
        except (OSError, ValueError):
            return False
        return True

    def receive(self) -> list[dict[str, Any]]:
        """The commands that have arrived, oldest first."""
        commands = []
        for _ in range(MAX_COMMANDS):
            # Asked first: mostly there is none, and an exception would cost the trainer ten times as much.
            if not self._arrivals.poll(0):
                break
            try:
                data, address = self._socket.recvfrom(wire.MAX_BYTES + 1)
            except OSError:
                break
            # By name, not by path: a sidecar may see the shared directory under another one.
            if not isinstance(address, str) or address.rpartition("/")[2] != wire.SIDECAR_SOCKET:
                continue
            try:
                commands.append(wire.decode(data, wire.TO_AGENT))
            except ValueError:
                continue
        return commands

    def wake(self) -> None:
        """Ends a wait on this socket: it sends itself an empty datagram."""
        try:
            self._socket.sendto(b"", self.path)
        except OSError:
            pass

    def close(self) -> None:
        """Closes; removes the socket's file in the process that made it."""
        self._socket.close()
        if os.getpid() == self._pid:
            try:
                os.unlink(self.path)
            except OSError:
                pass
