"""libkineto's obedience to a config, and the trace that it writes then."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulated_job import NS, Faults, SimulatedJob


@dataclass
class SimulatedTrace:
    """A config that Kineto took: pending until `begin_unix_ns`, then running until the file is written."""

    output: Path
    trace_id: str
    begin_unix_ns: int
    end_unix_ns: int
    running: bool = False

    @property
    def temporary(self) -> Path:
        """The path at which it is written before it is whole."""
        return self.output.with_name(self.output.name + ".tmp")


def read_config(text: str, traces: Path, pid: int, job: SimulatedJob, faults: Faults) -> SimulatedTrace | str:
    """The trace that a config makes; else what it is counted as: Kineto refuses it silently."""
    keys = dict(line.split("=", 1) for line in text.splitlines())
    now = time.time_ns()
    if "PROFILE_START_ITERATION" in keys and job.current_step() >= 1:
        start = int(keys["PROFILE_START_ITERATION"])
        warmup = int(keys.get("ACTIVITIES_WARMUP_ITERATIONS", "0"))
        begin = max(start + 1, job.current_step(now) + 1 + warmup) + faults.late_steps
        span = job.end_of(begin), job.end_of(begin + int(keys["ACTIVITIES_ITERATIONS"]))
    else:
        begin_ns = int(keys.get("PROFILE_START_TIME", "0")) * 10**6 or now + 7 * NS
        # Kineto looks once a second whether the start is near, for the first time a second from now.
        if begin_ns < now + (int(keys.get("ACTIVITIES_WARMUP_PERIOD_SECS", "5")) + 1) * NS:
            return "refused_configs"
        span = begin_ns, begin_ns + int(keys.get("ACTIVITIES_DURATION_MSECS", "500")) * 10**6
    output = Path(keys["ACTIVITIES_LOG_FILE"])
    if ".." in output.parts or not output.is_relative_to(traces):
        return "foreign_outputs"
    return SimulatedTrace(Path(str(output).replace(".json", f"_{pid}.json", 1)), keys["REQUEST_TRACE_ID"], *span)


def recorded_steps(trace: SimulatedTrace, job: SimulatedJob, faults: Faults) -> range:
    """The steps that the window holds whole."""
    if faults.empty_trace:
        return range(0)
    return range(job.current_step(trace.begin_unix_ns) + 1, job.current_step(trace.end_unix_ns) + 1)


def make_document(trace: SimulatedTrace, job: SimulatedJob, faults: Faults, pid: int) -> dict[str, Any]:
    """The trace that Kineto would write."""
    base = trace.begin_unix_ns // NS * NS
    events: list[dict[str, Any]] = []

    def add(name: str, kind: str, begin: int, duration: int, **args: object) -> None:
        place = {"pid": pid, "tid": pid, "ts": (begin - base) / 1000, "dur": duration / 1000}
        events.append({"ph": "X", "cat": kind, "name": name, **place, "args": args})

    for step in recorded_steps(trace, job, faults):
        begin, part = job.end_of(step - 1), job.step_ns // 10
        add("aten::linear", "cpu_op", begin, 3 * part)
        add("autograd::engine::evaluate_function: AddmmBackward0", "cpu_op", begin + 3 * part, 3 * part)
        add("gloo:all_reduce", "user_annotation", begin + 6 * part, 2 * part)
        add("Optimizer.step#SGD.step", "user_annotation", begin + 8 * part, 2 * part - 1000)
    document: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "trace_id": "another" if faults.wrong_trace_id else trace.trace_id,
        "host_name": "simulated",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base,
        "traceEvents": events,
        "traceName": str(trace.output),
    }
    if not events:
        document["WARNING"] = ["No Valid Trace Events (CPU/GPU) found. Outputting empty trace."]
    if faults.trace_bytes:
        document["padding"] = "x" * faults.trace_bytes
    return document
