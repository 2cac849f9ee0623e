"""Hears the agents on `<dir>/fleetprof`, from a thread of its own: what agents do cannot delay an answer to Kineto.

Guarantees: nothing enters the table before its types and ranges are checked (agent_messages.py) and the kernel's word
on the sender is known; what cannot be used is counted and dropped; sending to an agent never waits.
"""

import re
from collections import Counter

from fleetprof_agent import wire

from fleetprof_sidecar.agent_messages import parse_agent_message
from fleetprof_sidecar.datagrams import Datagram, DatagramSocket
from fleetprof_sidecar.processes import ProcessTable
from fleetprof_sidecar.socket_directory import check_path


class AgentEndpoint:
    """Serves one directory between `start` and `stop`; `allowed_uids` and `counters` as in KinetoEndpoint."""

    def __init__(self, directory: str, table: ProcessTable, allowed_uids: frozenset[int] | None = None) -> None:
        self.counters: Counter[str] = Counter()
        self._table = table
        self._allowed_uids = allowed_uids
        prefix = f"{check_path(directory)}/{wire.AGENT_SOCKET_PREFIX}"
        self._agent = re.compile(re.escape(prefix) + "[A-Za-z0-9_-]{1,64}")
        self._socket = DatagramSocket(f"{directory}/{wire.SIDECAR_SOCKET}", wire.MAX_BYTES, self._handle, self.counters)

    def start(self) -> None:
        """Binds and serves. Raises SocketInUse, OSError."""
        self._socket.start()
        self._table.attach_agent_sender(self._socket.send)

    def stop(self) -> None:
        """Ends the thread and removes the socket."""
        self._socket.stop()

    def _handle(self, datagram: Datagram) -> None:
        if not self._agent.fullmatch(datagram.address):
            self.counters["foreign_address"] += 1
            return
        if self._allowed_uids is not None and datagram.credentials.uid not in self._allowed_uids:
            self.counters["refused_uid"] += 1
            return
        try:
            message = parse_agent_message(datagram.data)
        except ValueError:
            self.counters["malformed"] += 1
            return
        self._table.record_agent(datagram.address, message, datagram.credentials)
