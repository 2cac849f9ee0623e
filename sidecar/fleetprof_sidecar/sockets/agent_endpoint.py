"""Hears the agents on `<dir>/fleetprof`, from a thread of its own: what agents do cannot delay an answer to Kineto.

Guarantees: nothing enters the table before its types and ranges are checked (agent_messages.py) and the kernel's word
on the sender is known; what cannot be used is counted and dropped; sending to an agent never waits.
"""

from collections import Counter

from fleetprof_agent import wire

from fleetprof_sidecar.processes.agent_messages import parse_agent_message
from fleetprof_sidecar.processes.table import ProcessTable
from fleetprof_sidecar.sockets.datagrams import Datagram, DatagramGate, DatagramSocket
from fleetprof_sidecar.sockets.directory import check_path


def make_agent_socket(directory: str) -> DatagramSocket:
    """The socket of `<dir>/fleetprof`, not bound yet: the table sends through it, the endpoint serves it."""
    return DatagramSocket(f"{check_path(directory)}/{wire.SIDECAR_SOCKET}", wire.MAX_BYTES, Counter())


class AgentEndpoint:
    """Serves the agents' socket between `start` and `stop`; `allowed_uids` and `counters` as in KinetoEndpoint."""

    def __init__(self, socket: DatagramSocket, table: ProcessTable, allowed_uids: frozenset[int] | None = None) -> None:
        self.counters = socket.counters
        self._socket = socket
        self._table = table
        self._gate = DatagramGate(
            str(socket.path.parent), wire.AGENT_SOCKET_PREFIX, allowed_uids, parse_agent_message, self.counters
        )

    def start(self) -> None:
        """Binds and serves. Raises SocketInUse, OSError."""
        self._socket.start(self._handle)

    def stop(self) -> None:
        """Ends the thread and removes the socket."""
        self._socket.stop()

    def _handle(self, datagram: Datagram) -> None:
        message = self._gate.admit(datagram)
        if message is not None:
            self._table.record_agent(datagram.address, message, datagram.credentials)
