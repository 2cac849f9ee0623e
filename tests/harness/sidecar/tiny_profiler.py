"""The smallest profiler that the sidecar can serve, and a process with it: orders are JSON, traces a few rows.

    python tiny_profiler.py DIRECTORY

asks for orders every tenth of a second, and writes a Chrome trace for each.
"""

import contextlib
import json
import os
import re
import socket
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetprof_api.profiler import ProfilerFacts
from fleetprof_sidecar.profiler import Listener, PollTaker, TimeStart, TraceName, TraceOrder
from fleetprof_sidecar.sockets.datagrams import Datagram, DatagramGate, DatagramSocket

SOCKET = "tinyprof"
PREFIX = "tiny-"
NAME = re.compile(r"(?P<stem>[-a-z0-9]+-r\d+)_(?P<pid>\d+)\.trace(?P<part>\.part)?")


@dataclass(frozen=True)
class TinyPoll:
    pids: tuple[int, ...]
    idle: bool


def parse(data: bytes) -> TinyPoll:
    fields = json.loads(data)
    return TinyPoll(tuple(fields["pids"]), bool(fields["idle"]))


class TinyListener:
    def __init__(self, directory: str, polls: PollTaker, allowed_uids: frozenset[int] | None) -> None:
        self.counters: Counter[str] = Counter()
        self._polls = polls
        self._gate = DatagramGate(directory, PREFIX, allowed_uids, parse, self.counters)
        self._socket = DatagramSocket(f"{directory}/{SOCKET}", 1024, self.counters)

    def start(self) -> None:
        self._socket.start(self._handle)

    def stop(self) -> None:
        self._socket.stop()

    def _handle(self, datagram: Datagram) -> None:
        if (message := self._gate.admit(datagram)) is not None:
            self._polls.record_poll(
                datagram.address,
                message,
                datagram.credentials,
                lambda text: not text or self._socket.send(text.encode(), datagram.address),
            )


class TinyProfiler:
    facts = ProfilerFacts(name="tiny", steps_before_first=0, warmup_ns=0, delivery_margin_ns=300 * 10**6)

    def write_order(self, order: TraceOrder) -> str:
        if not isinstance(order.start, TimeStart):
            raise ValueError("start: this profiler counts no steps")
        until_unix_ms = order.start.start_unix_ms + order.start.duration_ms
        place = order.output.removesuffix(".json")
        return json.dumps([place, order.trace_id, order.start.start_unix_ms, until_unix_ms])

    def latest_delivery_unix_ns(self, start: TimeStart, device_kind: str) -> int:
        return start.start_unix_ms * 10**6 - self.facts.delivery_margin_ns

    def listen(self, directory: str, polls: PollTaker, allowed_uids: frozenset[int] | None) -> Listener:
        return TinyListener(directory, polls, allowed_uids)

    def read_name(self, name: str) -> TraceName | None:
        match = NAME.fullmatch(name)
        return None if match is None else TraceName(match["stem"], int(match["pid"]), match["part"] is None)

    def find_stray(self, elsewhere: Path, traces: Path, pid: int, since_unix_ns: int) -> str:
        return ""


def make_trace(trace_id: str, begin_unix_ms: int, end_unix_ms: int) -> dict[str, Any]:
    """Ten iterations, in each of which one operator takes half of the time."""
    each = (end_unix_ms - begin_unix_ms) * 1000 / 10
    events = []
    for number in range(10):
        begin = number * each
        for name, category, length in (
            (f"ProfilerStep#{number}", "user_annotation", each),
            ("work", "cpu_op", each / 2),
        ):
            row = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": begin, "dur": length, "args": {}}
            events.append(row)
    return {"trace_id": trace_id, "baseTimeNanoseconds": begin_unix_ms * 10**6, "traceEvents": events}


def main(directory: str) -> None:
    """Polls until it is killed."""
    own = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    own.bind(f"{directory}/{PREFIX}{os.getpid()}")
    own.settimeout(0.1)
    order: list[Any] | None = None
    while True:
        poll = {"pids": [os.getpid(), os.getppid()], "idle": order is None}
        with contextlib.suppress(OSError):
            own.sendto(json.dumps(poll).encode(), f"{directory}/{SOCKET}")
        with contextlib.suppress(TimeoutError):
            order = json.loads(own.recv(65536))
        if order is not None and time.time_ns() >= order[3] * 10**6:
            place, trace_id, begin, end = order
            path = Path(f"{place}_{os.getpid()}.trace")
            part = path.with_name(f"{path.name}.part")
            part.write_text(json.dumps(make_trace(trace_id, begin, end)))
            part.rename(path)
            order = None


if __name__ == "__main__":
    main(sys.argv[1])
