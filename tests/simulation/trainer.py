"""Simulated trainers that speak the real datagrams: Kineto's (as torch 2.15 sends them) and the agent's.

One event loop carries hundreds of ranks: the step count is a function of time, so a rank costs one poll and two reports
a second. A config is obeyed as libkineto does it: one pending order, START_ITERATION S begins inside the hook of step
S + 1 (or after its warm-up when that has passed), a start time that is too near is refused silently, `_<pid>` goes
before `.json`, an empty `.tmp` while tracing, the rename when the file is whole, nothing outside the traces directory.
What real PyTorch does is tested with real PyTorch; this is for faults on command and for numbers of ranks.

    python tests/simulation/trainer.py --directory DIR --ranks 8 [--directory DIR2 ...] [--seconds 60] [--fault NAME]

prints one JSON line per rank at its end (SIGTERM, SIGINT or --seconds).
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from fleetprof_agent import wire
from fleetprof_sidecar.kineto_wire import IDLE, RequestMessage, build_request, parse_reply

FIRST_PID = 2_000_000
LAUNCHER_PID = 1_999_999
SHELLS = (1_999_998, 1_999_997, 1_999_996, 1_999_995)  # a real datagram names six pids and has 80 bytes
NS = 10**9


@dataclass
class Faults:
    """What goes wrong on this rank; the defaults are a healthy trainer."""

    never_polls: bool = False
    first_poll_after_s: float = 0.0
    exits_after_s: float = 0.0  # 0: never
    exits_before_capture: bool = False  # as soon as it has taken a config
    exits_mid_capture: bool = False
    exits_after_capture: bool = False
    farewell: bool = False  # whether the exit is orderly: the agent says bye
    ignores_orders: bool = False  # takes the config, never traces
    user_profiler: bool = False  # the job's own profiler cancels the trace: an empty .tmp stays
    always_busy: bool = False
    wrong_trace_id: bool = False
    empty_trace: bool = False
    truncated_trace: bool = False
    no_file: bool = False
    late_steps: int = 0  # begins its window so many steps too late
    silent_agent: bool = False  # the agent is there, but never answers an arm, cancel or done
    trace_bytes: int = 0  # pads the trace to at least this size


@dataclass
class Job:
    """What the ranks of one job have in common."""

    world_size: int = 1
    step_s: float = 0.05
    poll_s: float = 1.0
    steps_per_iteration: int = 1
    agent: bool = True
    write_s: float = 0.2  # from the end of the window to the whole file
    started_unix_ns: int = field(default_factory=time.time_ns)
    torch: str = "2.15.0"
    device_kind: str = "cpu"


@dataclass
class Trace:
    """A config that Kineto took: pending until `begin_unix_ns`, then running until the file is written."""

    output: Path
    trace_id: str
    begin_unix_ns: int
    end_unix_ns: int
    running: bool = False


class SimulatedTrainer:
    """One rank. `start` needs a running event loop; `ended` is set when the process is gone."""

    def __init__(self, directory: str | Path, rank: int = 0, job: Job | None = None, faults: Faults | None = None):
        self.directory = Path(directory)
        self.traces = self.directory / "traces"
        self.rank = rank
        self.job = job or Job()
        self.faults = faults or Faults()
        self.pid = FIRST_PID + rank
        self.ancestors: tuple[int, ...] = (LAUNCHER_PID, *SHELLS)
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
        self._trace: Trace | None = None
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
            self._after(max(0.0, self._seconds_until(self._end_of(1))), self._report)
        if self.faults.exits_after_s:
            self._after(self.faults.exits_after_s, self.exit)

    def exit(self) -> None:
        """The process ends: with a farewell if `faults.farewell`, else as if killed. Its socket files stay behind."""
        if self.ended.is_set():
            return
        if self.faults.farewell and self._agent is not None:
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

    def current_step(self, at_unix_ns: int | None = None) -> int:
        """KinetoStepTracker's count."""
        now = time.time_ns() if at_unix_ns is None else at_unix_ns
        return max(0, (now - self.job.started_unix_ns) // self._step_ns)

    @property
    def _step_ns(self) -> int:
        return int(self.job.step_s * NS)

    def _end_of(self, step: int) -> int:
        return self.job.started_unix_ns + step * self._step_ns

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
        keys = dict(line.split("=", 1) for line in text.splitlines())
        if self.faults.exits_before_capture:
            self.exit()
            return
        if self._trace is not None:
            self.counters["dropped_configs"] += 1
            return
        if self.faults.ignores_orders:
            return
        now = time.time_ns()
        if "PROFILE_START_ITERATION" in keys and self.current_step() >= 1:
            start = int(keys["PROFILE_START_ITERATION"])
            warmup = int(keys.get("ACTIVITIES_WARMUP_ITERATIONS", "0"))
            begin = max(start + 1, self.current_step(now) + 1 + warmup) + self.faults.late_steps
            span = self._end_of(begin), self._end_of(begin + int(keys["ACTIVITIES_ITERATIONS"]))
        else:
            begin_ns = int(keys.get("PROFILE_START_TIME", "0")) * 10**6 or now + 7 * NS
            # Kineto looks once a second whether the start is near, for the first time a second from now.
            if begin_ns < now + (int(keys.get("ACTIVITIES_WARMUP_PERIOD_SECS", "5")) + 1) * NS:
                self.counters["refused_configs"] += 1
                return
            span = begin_ns, begin_ns + int(keys.get("ACTIVITIES_DURATION_MSECS", "500")) * 10**6
        output = Path(keys["ACTIVITIES_LOG_FILE"])
        if ".." in output.parts or not output.is_relative_to(self.traces):
            self.counters["foreign_outputs"] += 1
            return
        self._trace = Trace(Path(str(output).replace(".json", f"_{self.pid}.json", 1)), keys["REQUEST_TRACE_ID"], *span)
        self._after(self._seconds_until(span[0]), self._begin_trace)

    def _begin_trace(self) -> None:
        trace = self._trace
        if trace is None:
            return
        trace.running = True
        if not self.faults.no_file:
            _temporary(trace).touch()
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
            document = self._document(trace)
            text = json.dumps(document)
            if self.faults.truncated_trace:
                text = text[: len(text) // 2]
            _temporary(trace).write_text(text)
            _temporary(trace).rename(trace.output)
            self.written.append(trace.output)
        if self.faults.exits_after_capture:
            self.exit()

    def _document(self, trace: Trace) -> dict[str, Any]:
        base = trace.begin_unix_ns // NS * NS
        events: list[dict[str, Any]] = []

        def add(name: str, kind: str, begin: int, duration: int, **args: object) -> None:
            place = {"pid": self.pid, "tid": self.pid, "ts": (begin - base) / 1000, "dur": duration / 1000}
            events.append({"ph": "X", "cat": kind, "name": name, **place, "args": args})

        first = self.current_step(trace.begin_unix_ns) + 1
        steps = range(first, self.current_step(trace.end_unix_ns) + 1)
        if self.faults.empty_trace:
            steps = range(0)
        for step in steps:
            begin, part = self._end_of(step - 1), self._step_ns // 10
            add("aten::linear", "cpu_op", begin, 3 * part)
            add("autograd::engine::evaluate_function: AddmmBackward0", "cpu_op", begin + 3 * part, 3 * part)
            add("gloo:all_reduce", "user_annotation", begin + 6 * part, 2 * part)
            add("Optimizer.step#SGD.step", "user_annotation", begin + 8 * part, 2 * part - 1000)
        if steps:
            self.first_recorded_steps.append(steps[0])
        document: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [],
            "trace_id": "another" if self.faults.wrong_trace_id else trace.trace_id,
            "host_name": "simulated",
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": base,
            "traceEvents": events,
            "traceName": str(trace.output),
        }
        if not events:
            document["WARNING"] = ["No Valid Trace Events (CPU/GPU) found. Outputting empty trace."]
        if self.faults.trace_bytes:
            document["padding"] = "x" * self.faults.trace_bytes
        return document

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
        step = self.current_step()
        self._tell(
            "steps",
            step=step,
            at_unix_ns=self._end_of(step),
            iteration_ns=self._step_ns * self.job.steps_per_iteration,
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
                self._after(self._seconds_until(self._end_of(self.current_step() + 1)), self._answer_query)
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
        last = self.current_step()
        first = max(1, int((self._armed or {}).get("first_step") or last) - 20)
        self._armed = None
        for begin in range(first, last + 1, 500):
            steps = list(range(begin, min(begin + 500, last + 1)))
            self._tell("times", capture=capture, step=steps, end_unix_ns=[self._end_of(step) for step in steps])

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
        """What this rank has seen, for the bench."""
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


def _temporary(trace: Trace) -> Path:
    return trace.output.with_name(trace.output.name + ".tmp")


def _bind(path: Path) -> socket.socket:
    endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    endpoint.bind(str(path))
    path.chmod(0o666)
    return endpoint


async def run_trainers(trainers: list[SimulatedTrainer], seconds: float, stop: asyncio.Event) -> None:
    """Starts all, spread over one poll interval, and ends them after `seconds` (0: never) or at `stop`."""
    for index, trainer in enumerate(trainers):
        trainer.start()
        if index % 16 == 15:
            await asyncio.sleep(trainer.job.poll_s * 16 / max(16, len(trainers)))
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds or None)
    for trainer in trainers:
        trainer.exit()


def make_trainers(
    directories: list[str], ranks: int, first_rank: int, job: Job, faults: Faults, faulty_ranks: set[int]
) -> list[SimulatedTrainer]:
    """`ranks` trainers for each directory, numbered through."""
    numbered = enumerate((directory for directory in directories for _ in range(ranks)), start=first_rank)
    return [
        SimulatedTrainer(directory, rank, job, faults if rank in faulty_ranks or not faulty_ranks else None)
        for rank, directory in numbered
    ]


def _parse_fault(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    kinds = {option.name: option.type for option in fields(Faults)}
    if name not in kinds:
        raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(kinds)}")
    return name, {bool: lambda: value in ("", "1", "true"), int: lambda: int(value), float: lambda: float(value)}[
        kinds[name]  # type: ignore[index]
    ]()


def main(arguments: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--directory", action="append", required=True, help="a sidecar's directory; may be repeated")
    parser.add_argument("--ranks", type=int, default=1, help="ranks for each directory")
    parser.add_argument("--first-rank", type=int, default=0)
    parser.add_argument("--world-size", type=int, default=0)
    parser.add_argument("--step-ms", type=float, default=50.0)
    parser.add_argument("--poll-ms", type=float, default=1000.0)
    parser.add_argument("--steps-per-iteration", type=int, default=1)
    parser.add_argument("--no-agent", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--started-unix-ns", type=int, default=0, help="when step 0 was, the same for all ranks")
    parser.add_argument("--fault", type=_parse_fault, action="append", default=[], metavar="NAME[=VALUE]")
    parser.add_argument("--faulty-rank", type=int, action="append", default=[], help="default: all")
    options = parser.parse_args(arguments)
    job = Job(
        world_size=options.world_size or options.ranks * len(options.directory),
        step_s=options.step_ms / 1000,
        poll_s=options.poll_ms / 1000,
        steps_per_iteration=options.steps_per_iteration,
        agent=not options.no_agent,
        started_unix_ns=options.started_unix_ns or time.time_ns(),
    )
    faults = Faults(**dict(options.fault))

    async def serve() -> None:
        trainers = make_trainers(
            options.directory, options.ranks, options.first_rank, job, faults, set(options.faulty_rank)
        )
        stop = asyncio.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        print(json.dumps({"job": asdict(job), "ranks": len(trainers)}), flush=True)
        await run_trainers(trainers, options.seconds, stop)
        for trainer in trainers:
            print(json.dumps(trainer.stats()), flush=True)
            trainer.remove_sockets()

    asyncio.run(serve())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
