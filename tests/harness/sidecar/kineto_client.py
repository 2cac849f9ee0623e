"""A process's end of the Kineto socket, and an endpoint to speak to."""

import contextlib
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fleetprof_sidecar.kineto.wire import RequestMessage
from fleetprof_sidecar.processes.table import ProcessTable
from fleetprof_sidecar.sockets.kineto_endpoint import KinetoEndpoint
from kineto_messages import build_request, parse_reply

from harness.sidecar.process_world import RecordedAgents

IDLE = build_request(RequestMessage(2, 0, (4711, 10)))
BUSY = build_request(RequestMessage(0, 0, (4711, 10)))


class Client:
    """A process's end: sends as Kineto does, and takes whatever comes."""

    def __init__(self, directory: str, name: str = "") -> None:
        self.path = f"{directory}/{name or f'dynoconfigclient{uuid.uuid4()}'}"
        self.process_id = Path(self.path).name.removeprefix("dynoconfigclient")
        self._daemon = f"{directory}/dynolog"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(10)
        self.socket.bind(self.path)

    def send(self, data: bytes) -> None:
        self.socket.sendto(data, self._daemon)

    def poll(self, data: bytes = IDLE) -> str:
        """One request and its answer."""
        self.send(data)
        reply, sender = self.socket.recvfrom(65536)
        assert sender == self._daemon
        return parse_reply(reply)

    def received(self) -> list[tuple[bytes, str]]:
        """The messages that have come and was not yet taken."""
        found = []
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(self.socket.recvfrom(65536))
        self.socket.settimeout(10)
        return found

    def close(self) -> None:
        self.socket.close()
        Path(self.path).unlink(missing_ok=True)


@contextlib.contextmanager
def serving(directory: str, **options: Any) -> Iterator[tuple[ProcessTable, KinetoEndpoint]]:
    table = ProcessTable(RecordedAgents())
    endpoint = KinetoEndpoint(directory, table, **options)
    endpoint.start()
    try:
        yield table, endpoint
    finally:
        endpoint.stop()
