"""One simulated rank: the datagrams that Kineto and the agent of a real one would send and what they would do.

The step count is a function of time, so a rank costs one poll and two reports a second, and one event loop carries
hundreds. A config is obeyed as libkineto does it (`simulated_trace`): one pending order, `_<pid>` goes before `.json`,
an empty `.tmp` while tracing, the rename when the file is whole, nothing outside the traces directory.
"""

import asyncio
import json
import os
import socket
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fleetprof_agent import wire
from fleetprof_sidecar.kineto.wire import IDLE, RequestMessage
from kineto_messages import build_request, parse_reply
from simulated_job import NS, Faults, SimulatedJob
from simulated_trace import SimulatedTrace, make_document, read_config, recorded_steps

FIRST_PID = 2_000_000
ANCESTORS = tuple(FIRST_PID - above for above in range(1, 6))  # a real datagram names six pids and has 80 bytes


class SimulatedTrainer:
    """One rank. `start` needs a running event loop; `ended` is set when the process is gone."""

    def __init__(
        self, directory: str | Path, rank: int = 0, job: SimulatedJob | None = None, faults: Faults | None = None
    ):
        self.directory = Path(directory)
        self.traces = self.directory / "traces"
        self.rank = rank
        self.job = job or SimulatedJob()
        self.faults = faults or Faults()
        self.pid = FIRST_PID + rank
        self.ancestors: tuple[int, ...] = ANCESTORS
        self.process_id = str(uuid.uuid4())
        self.kineto_path = self.directory / f"dynoconfigclient{self.process_id}"
        self.agent_path = self.directory / f"{wire.AGENT_SOCKET_PREFIX}{uuid.uuid4().hex[:16]}"
        self.counters: Counter[str] = Counter()
        self.reply_latencies_s: list[float] = []
        self.configs: list[tuple[int, str]] = []  # (unix ns of arrival, text)
        self.first_recorded_steps: list[int] = []
        self.written: list[Path] = []
        self.ended = asyncio.Event()
        self._kineto: socket.socket | None = None
        self._agent: socket.socket | None = None
        self._trace: SimulatedTrace | None = None
        self._timers: set[asyncio.TimerHandle] = set()
        self._asked_at = 0.0
        self._armed: dict[str, Any] | None = None
        self._hello_at = 0.0

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """The process begins: torch is imported, the optimizer steps."""
        if not self.faults.never_polls:
            self._after(self.faults.first_poll_after_s, self._begin_polling)
        if self.job.agent:
            self._agent = _bind(self.agent_path)
            asyncio.get_running_loop().add_reader(self._agent, self._hear_agent_orders)
            self._after(max(0.0, self._seconds_until(self.job.end_of(1))), self._report)
        if self.faults.exits_after_s:
            self._after(self.faults.exits_after_s, self.exit)

    def exit(self) -> None:
        """The process ends: in order if `faults.orderly_end`, else as if killed. Its socket files stay behind."""
        if self.ended.is_set():
            return
        if self.faults.orderly_end and self._agent is not None:
            capture = self._armed["capture"] if self._armed else ""
            self._tell("bye", capture=capture, reason="exit")
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        for endpoint in (self._kineto, self._agent):
            if endpoint is not None:
                asyncio.get_running_loop().remove_reader(endpoint)
                endpoint.close()
        self._kineto = self._agent = None
        self.ended.set()

    def remove_sockets(self) -> None:
        """Takes the socket files away, for tests that leave nothing behind."""
        self.kineto_path.unlink(missing_ok=True)
        self.agent_path.unlink(missing_ok=True)

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        def fire() -> None:
            self._timers.discard(timer)
            if not self.ended.is_set():
                call()

        timer = asyncio.get_running_loop().call_later(seconds, fire)
        self._timers.add(timer)

    def _seconds_until(self, unix_ns: int) -> float:
        return max(0.0, (unix_ns - time.time_ns()) / NS)

    # ------------------------------------------------------------ Kineto

    def _begin_polling(self) -> None:
        self._kineto = _bind(self.kineto_path)
        asyncio.get_running_loop().add_reader(self._kineto, self._hear_replies)
        self._poll()

    def _poll(self) -> None:
        assert self._kineto is not None
        busy = self.faults.always_busy or (self._trace is not None and self._trace.running)
        request = RequestMessage(0 if busy else IDLE, 0, (self.pid, *self.ancestors))
        self._asked_at = time.monotonic()
        self.counters["polls"] += 1
        try:
            self._kineto.sendto(build_request(request), str(self.directory / "dynolog"))
        except OSError:
            self.counters["poll_errors"] += 1
        self._after(self.job.poll_s, self._poll)

    def _hear_replies(self) -> None:
        while self._kineto is not None:
            try:
                data, sender = self._kineto.recvfrom(65536)
            except OSError:
                return
            self.reply_latencies_s.append(time.monotonic() - self._asked_at)
            self.counters["replies"] += 1
            if sender != str(self.directory / "dynolog"):
                self.counters["fatal_replies"] += 1  # a real process would have been terminated
                continue
            if text := parse_reply(data):
                self.configs.append((time.time_ns(), text))
                self._take_config(text)

    def _take_config(self, text: str) -> None:
        if self.faults.exits_before_capture:
            self.exit()
            return
        if self._trace is not None:
            self.counters["dropped_configs"] += 1
            return
        if self.faults.ignores_orders:
            return
        taken = read_config(text, self.traces, self.pid, self.job, self.faults)
        if isinstance(taken, str):
            self.counters[taken] += 1
            return
        self._trace = taken
        self._after(self._seconds_until(taken.begin_unix_ns), self._begin_trace)

    def _begin_trace(self) -> None:
        trace = self._trace
        if trace is None:
            return
        trace.running = True
        if not self.faults.no_file:
            trace.temporary.touch()
        if self.faults.exits_mid_capture:
            self._after(self._seconds_until((trace.begin_unix_ns + trace.end_unix_ns) // 2), self.exit)
        if self.faults.user_profiler:
            self._trace = None
            return
        self._after(self._seconds_until(trace.end_unix_ns) + self.job.write_s, self._write_trace)

    def _write_trace(self) -> None:
        trace, self._trace = self._trace, None
        if trace is None:
            return
        if not self.faults.no_file:
            if steps := recorded_steps(trace, self.job, self.faults):
                self.first_recorded_steps.append(steps[0])
            document = make_document(trace, self.job, self.faults, self.pid)
            text = json.dumps(document)
            if self.faults.truncated_trace:
                text = text[: len(text) // 2]
            trace.temporary.write_text(text)
            trace.temporary.rename(trace.output)
            self.written.append(trace.output)
        if self.faults.exits_after_capture:
            self.exit()

    # ------------------------------------------------------------ agent

    def _tell(self, kind: str, **content: Any) -> None:
        if self._agent is None:
            return
        try:
            self._agent.sendto(wire.encode(kind, pid=self.pid, **content), str(self.directory / wire.SIDECAR_SOCKET))
        except OSError:
            self.counters["agent_errors"] += 1

    def _report(self) -> None:
        if time.monotonic() - self._hello_at >= wire.HELLO_EVERY_S:
            self._hello()
        self._steps()
        if self._armed is not None:
            self._sample()
        self._after(max(wire.REPORT_EVERY_S, self.job.step_s), self._report)

    def _hello(self) -> None:
        self._hello_at = time.monotonic()
        self._tell(
            "hello",
            ppid=self.ancestors[0],
            uid=os.getuid(),
            rank=self.rank,
            local_rank=self.rank,
            world_size=self.job.world_size,
            restart_count=0,
            role="trainer",
            torch=self.job.torch,
            python="3.11",
            device_kind=self.job.device_kind,
            device_name="",
            device_uuid="",
            host="simulated",
            started_unix_ns=self.job.started_unix_ns,
            kineto=self.kineto_path.name if self._kineto is not None else "",
        )

    def _steps(self) -> None:
        step = self.job.current_step()
        self._tell(
            "steps",
            step=step,
            at_unix_ns=self.job.end_of(step),
            iteration_ns=self.job.step_ns * self.job.steps_per_iteration,
            per_iteration=self.job.steps_per_iteration,
        )

    def _hear_agent_orders(self) -> None:
        while self._agent is not None:
            try:
                order = wire.decode(self._agent.recv(wire.MAX_BYTES), wire.TO_AGENT)
            except OSError:
                return
            self.counters[f"agent_{order['t']}"] += 1
            if not self.faults.silent_agent:
                self._obey(order)

    def _obey(self, order: dict[str, Any]) -> None:
        match order["t"]:
            case "query":
                self._after(self._seconds_until(self.job.end_of(self.job.current_step() + 1)), self._answer_query)
            case "arm":
                self._armed = order
                self._tell("armed", capture=order["capture"])
            case "cancel":
                if self._trace is not None:
                    self._trace = None
                self._armed = None
                self._tell("cancelled", capture=order["capture"])
            case "done":
                self._after(int(order.get("after_ns", 0)) / NS, lambda: self._send_times(order["capture"]))

    def _answer_query(self) -> None:
        self._hello()
        self._steps()

    def _send_times(self, capture: str) -> None:
        last = self.job.current_step()
        first = max(1, int((self._armed or {}).get("first_step") or last) - 20)
        self._armed = None
        for begin in range(first, last + 1, 500):
            steps = list(range(begin, min(begin + 500, last + 1)))
            self._tell("times", capture=capture, step=steps, end_unix_ns=[self.job.end_of(step) for step in steps])

    def _sample(self) -> None:
        assert self._armed is not None
        now = time.time_ns()
        self._tell(
            "device",
            capture=self._armed["capture"],
            at_unix_ns=[now],
            utilization_permille=[500 + self.rank % 100],
            power_milliwatts=[300_000],
        )

    def stats(self) -> dict[str, Any]:
        """The counts of this rank, for the bench."""
        return {
            "rank": self.rank,
            "process_id": self.process_id,
            "polls": self.counters["polls"],
            "replies": self.counters["replies"],
            "slowest_reply_ms": round(1000 * max(self.reply_latencies_s, default=0.0), 3),
            "config_arrivals_unix_ns": [at for at, _ in self.configs],
            "first_recorded_steps": self.first_recorded_steps,
            "written": [path.name for path in self.written],
            "counters": dict(self.counters),
        }


def _bind(path: Path) -> socket.socket:
    endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    endpoint.bind(str(path))
    path.chmod(0o666)
    return endpoint
