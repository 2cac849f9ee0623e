"""Answers Kineto's polls on `<dir>/dynolog`, from a thread that does nothing else.

Guarantees: whatever arrives, what is sent is nothing, or exactly one well-formed answer to the address it came from,
and only to an address in the same directory string as the bound socket: a client checks that the answer's path begins
with the string it was given and terminates its process otherwise, so one that knows this directory by another spelling
is never answered. Nor is a poll that its sender has given up: the answer would be taken for that of the next poll, and
so would every later one, for the rest of the process's life, since each poll takes one answer, the oldest (measured,
PyTorch 2.13 and 2.15). Where an answer may have come too late all the same, the next poll is left without one; its
sender does not mind, and nothing is left over. A client that cannot be answered is counted, nothing is raised. What a
process is, and whether an order waits for it, is the table's; the table calls nobody back from here, so nothing slow
can delay an answer.
"""

from collections import Counter
from typing import Final

from fleetprof_sidecar.kineto.wire import MAX_REQUEST_BYTES, ContextMessage, build_context_reply, build_reply, parse
from fleetprof_sidecar.processes.index import MAX_PROCESSES
from fleetprof_sidecar.profiler import PollTaker
from fleetprof_sidecar.sockets.datagrams import Datagram, DatagramGate, DatagramSocket
from fleetprof_sidecar.sockets.directory import CLIENT_PREFIX, KINETO_SOCKET, check_path

# Kineto looks for an answer for 90 ms, and 80 ms were too late (docs/kineto-protocol.md#answers).
ANSWER_WITHIN_NS: Final = 70_000_000
_MOST_OVERTAKEN: Final = MAX_PROCESSES


class KinetoEndpoint:
    """Serves one directory between `start` and `stop`.

    `allowed_uids`: whose processes are served; None: everybody who can write in the directory.
    `counters`: received, too_long, malformed, foreign_address, refused_uid, given_up, left_out, send_errors, ...
    """

    def __init__(self, directory: str, table: PollTaker, allowed_uids: frozenset[int] | None = None) -> None:
        self.counters: Counter[str] = Counter()
        self._table = table
        self._overtaken: set[str] = set()  # whose latest answer may have come after its poll was given up
        self._gate = DatagramGate(check_path(directory), CLIENT_PREFIX, allowed_uids, parse, self.counters)
        self._socket = DatagramSocket(f"{directory}/{KINETO_SOCKET}", MAX_REQUEST_BYTES, self.counters)

    def start(self) -> None:
        """Binds and serves. Raises SocketInUse, OSError."""
        self._socket.start(self._handle)

    def stop(self) -> None:
        """Ends the thread and removes the socket: a stale one makes every torch process exit 10 s late."""
        self._socket.stop()

    def _handle(self, datagram: Datagram) -> None:
        message = self._gate.admit(datagram)
        if message is None:
            return
        if isinstance(message, ContextMessage):
            self._socket.send(build_context_reply(1), datagram.address)
            return
        self._table.record_poll(
            datagram.address,
            message,
            datagram.credentials,
            lambda config: self._answer(config, datagram),
            datagram.age_ns(),
        )

    def _answer(self, config: str, datagram: Datagram) -> bool:
        address = datagram.address
        if address in self._overtaken:
            self._overtaken.discard(address)
            self.counters["left_out"] += 1
            return False
        try:
            reply, is_usable = build_reply(config), True
        except ValueError:
            self.counters["unusable_configs"] += 1
            reply, is_usable = build_reply(), False
        if datagram.age_ns() > ANSWER_WITHIN_NS:
            self.counters["given_up"] += 1
            return False
        sent = self._socket.send(reply, address)
        # This thread may have been kept from the processor between the look at the clock and the sending.
        if sent and datagram.age_ns() > ANSWER_WITHIN_NS:
            if len(self._overtaken) >= _MOST_OVERTAKEN:
                self._overtaken.clear()  # of processes that have ended, nearly all
            self._overtaken.add(address)
        return sent and is_usable
