"""The other end of Kineto's and the agents' datagrams, in a directory where real jobs run."""

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fleetprof_agent import wire
from fleetprof_sidecar.kineto.config import build_config
from fleetprof_sidecar.kineto.wire import RequestMessage, build_reply, parse
from fleetprof_sidecar.profiler import StepStart, TimeStart, TraceOrder

PATIENCE_S = 60.0  # a torch import on a loaded machine takes its time; no test measures time with this
SOON_MS = 5000  # a poll, and Kineto's look a second before the start, on a loaded machine
WRITING_S = 20.0  # from the end of a window until its trace is there, on a loaded machine


class SidecarSide:
    """Binds both sockets of a directory, answers Kineto's polls, keeps what the agents say."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.messages: list[dict[str, Any]] = []
        self.polls: list[tuple[str, RequestMessage]] = []
        self.delivered = 0
        self._config = ""
        self._changed = threading.Condition()
        self._agents: list[str] = []
        self._kineto = self._bind("dynolog")
        self._own = self._bind(wire.SIDECAR_SOCKET)
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _bind(self, name: str) -> socket.socket:
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        bound.bind(f"{self.directory}/{name}")
        return bound

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for readable in (self._kineto, self._own, self._woken):
                selector.register(readable, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._woken:
                        return
                    data, address = key.fileobj.recvfrom(wire.MAX_BYTES)  # type: ignore[union-attr]
                    with self._changed:
                        if key.fileobj is self._kineto:
                            self._answer(data, address)
                        else:
                            message = wire.decode(data, wire.FROM_AGENT)
                            self.messages.append(message | {"address": address, "heard_unix_ns": time.time_ns()})
                            if address not in self._agents:
                                self._agents.append(address)
                        self._changed.notify_all()

    def _answer(self, data: bytes, address: str) -> None:
        request = parse(data)
        assert isinstance(request, RequestMessage)
        self.polls.append((address, request))
        config = ""
        if self._config and request.idle:
            config, self._config = self._config, ""
            self.delivered += 1
        with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):  # the process ended after it had asked
            self._kineto.sendto(build_reply(config), address)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The messages of one kind so far."""
        with self._changed:
            return [message for message in self.messages if message["t"] == kind]

    def await_message(self, kind: str, where: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """The latest message of a kind that `where` holds for."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            found[:] = [message for message in self.messages if message["t"] == kind and where(message)]
            return bool(found)

        with self._changed:
            assert self._changed.wait_for(is_there, PATIENCE_S), f"no {kind!r}; heard {self.messages[-5:]}"
        return found[-1]

    def await_trainer(self) -> dict[str, Any]:
        """The hello that comes with the first optimizer step."""
        return self.await_message("hello", lambda message: message["role"] == wire.TRAINER)

    def await_cancelled(self, capture: str) -> dict[str, Any]:
        """The agent's word that nothing of a capture is left in the process."""
        return self.await_message("cancelled", lambda message: message["capture"] == capture)

    def order(self, trace_id: str, first_step: int, steps: int, collect: tuple[str, ...] = ()) -> None:
        """Has the next idle poll answered with an order for this window, and waits until it has been."""
        self._give(trace_id, StepStart(first_step=first_step, steps=steps), collect)

    def order_soon(self, trace_id: str, duration_ms: int) -> Path:
        """The trace of a window in time, some seconds ahead, once it is known that somebody polls.

        Kineto drops an order that it gets after its start, as on a machine that stands still; it gets a later one then.
        """
        with self._changed:
            assert self._changed.wait_for(lambda: bool(self.polls), PATIENCE_S), "nobody polls"
        for ahead_ms in (SOON_MS, 2 * SOON_MS, 4 * SOON_MS):
            start_unix_ms = time.time_ns() // 1_000_000 + ahead_ms
            self._give(trace_id, TimeStart(start_unix_ms=start_unix_ms, duration_ms=duration_ms), ())
            if found := self._find_trace(trace_id, (ahead_ms + duration_ms) / 1e3 + WRITING_S):
                return found
        raise AssertionError("no trace")

    def order_by_time(self, trace_id: str, duration_ms: int) -> None:
        """Has the next idle poll answered with an order for a window in time, which begins in some seconds."""
        with self._changed:
            assert self._changed.wait_for(lambda: bool(self.polls), PATIENCE_S), "nobody polls"
        start = TimeStart(start_unix_ms=time.time_ns() // 1_000_000 + SOON_MS, duration_ms=duration_ms)
        self._give(trace_id, start, ())

    def _give(self, trace_id: str, start: StepStart | TimeStart, collect: tuple[str, ...]) -> None:
        output = f"{self.directory}/traces/{trace_id}.json"
        config = build_config(TraceOrder(output=output, trace_id=trace_id, start=start, collect=collect))
        with self._changed:
            before = self.delivered
            self._config = config
            assert self._changed.wait_for(lambda: self.delivered > before, PATIENCE_S), "nobody polls"

    def command(self, kind: str, **fields: Any) -> None:
        """Sends a command to the only agent there is."""
        (address,) = self._agents
        self._own.sendto(wire.encode(kind, **fields), address)

    def send_to(self, address: str, kind: str, **fields: Any) -> None:
        """Sends a command to any socket."""
        self._own.sendto(wire.encode(kind, **fields), address)

    def arm(self, capture: str, *, sample_interval_ns: int = 10**8, seconds: int = 60, **more: Any) -> None:
        """Sends "arm" and waits for the answer."""
        until = time.time_ns() + seconds * 10**9
        # A test that does not say which window it orders: the agent cannot know that it is over.
        window = {"first_step": None, "last_step": None, **more}
        self.command("arm", capture=capture, sample_interval_ns=sample_interval_ns, until_unix_ns=until, **window)
        self.await_message("armed", lambda message: message["capture"] == capture)

    def trace(self, trace_id: str) -> Path:
        """The finished trace of an order; waits for it."""
        found = self._find_trace(trace_id, PATIENCE_S)
        assert found, "no trace"
        return found

    def _find_trace(self, trace_id: str, patience_s: float) -> Path | None:
        end = time.monotonic() + patience_s
        while True:
            found = list(Path(self.directory, "traces").glob(f"{trace_id}_*.json"))
            if found or time.monotonic() >= end:
                return next(iter(found), None)
            time.sleep(0.02)

    def await_collecting(self, trace_id: str) -> None:
        """Waits until Kineto has begun this trace: its output file is open."""
        end = time.monotonic() + PATIENCE_S
        while not list(Path(self.directory, "traces").glob(f"{trace_id}_*.json.tmp")):
            assert time.monotonic() < end, "tracing does not begin"
            time.sleep(0.01)

    def close(self) -> None:
        """Ends the thread, closes the sockets."""
        self._wake.send(b".")
        self._thread.join()
        for one in (self._wake, self._woken, self._kineto, self._own):
            one.close()
