"""Real PyTorch through the endpoint, with orders placed by hand and without the agent.

`python` runs over the interpreters that FLEETPROF_TORCH_PYTHONS names (os.pathsep between them), by default the one
that runs the tests.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from fleetprof_sidecar.kineto.config import build_config, latest_delivery_unix_ns
from fleetprof_sidecar.processes.events import Delivered, Gone
from fleetprof_sidecar.processes.roles import Role
from fleetprof_sidecar.processes.views import OrderRefused, ProcessView
from fleetprof_sidecar.profiler import StepStart, TimeStart, TraceOrder
from fleetprof_sidecar.sockets.datagrams import DatagramSocket
from fleetprof_sidecar.sockets.directory import trainer_environment
from fleetprof_sidecar.trainer_side import TrainerSide
from harness.training.local_job import NO_COMPILER, TORCHRUN
from kineto_messages import trace_path

pytestmark = pytest.mark.torch
PYTHONS = os.environ.get("FLEETPROF_TORCH_PYTHONS", sys.executable).split(os.pathsep)

WITHOUT_COMPILER = f"import sys\nsys.path.append({str(NO_COMPILER.parent)!r})\nimport no_compiler\n"
# Writes "<KinetoStepTracker's count> <before> <after>" (Unix ns) for every optimizer step to steps.<rank>.
JOB = """
import os, time, torch
torch.set_num_threads(1)
if "MASTER_ADDR" in os.environ:
    torch.distributed.init_process_group("gloo")
from torch.autograd.profiler import KinetoStepTracker
model = torch.nn.Linear(32, 32)
if "MASTER_ADDR" in os.environ:
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def goes_on():
    stop = torch.tensor(float(os.path.exists("stop")))
    if "MASTER_ADDR" in os.environ:  # all ranks leave together, or the last all-reduce of one of them fails
        torch.distributed.all_reduce(stop)
    return not stop
with open(f"steps.{os.environ.get('RANK', '0')}", "w", buffering=1) as steps:
    while goes_on():
        optimizer.zero_grad()
        model(torch.randn(8, 32)).sum().backward()
        before = time.time_ns()
        optimizer.step()
        steps.write(f"{KinetoStepTracker.current_step()} {before} {time.time_ns()}\\n")
        time.sleep(0.02)
if "MASTER_ADDR" in os.environ:
    torch.distributed.barrier()
    time.sleep(0.5)  # gloo may abort a process that leaves while others talk
    torch.distributed.destroy_process_group()
"""


T = TypeVar("T")


class Job:
    """A running job in its own folder, and the sidecar's side of it."""

    def __init__(self, folder: Path, directory: str, python: str, ranks: int) -> None:
        self.folder = folder
        (folder / "job.py").write_text(WITHOUT_COMPILER + JOB)
        self.side = TrainerSide(directory)
        self.events: list[object] = []
        self.side.table.events.subscribe(self.events.append)
        self.side.start()
        alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"} if ranks == 1 else {}
        # torchrun leaves a folder in TMPDIR.
        quiet = {"FLEETPROF_AGENT": "0", "KINETO_LOG_LEVEL": "99", "TMPDIR": str(folder)}
        environment = trainer_environment(directory, os.environ | quiet | alone)
        words = [python, "job.py"]
        if ranks > 1:
            words[1:1] = [str(TORCHRUN), "--standalone", "--nproc-per-node", str(ranks)]
        with (folder / "output").open("wb") as output:
            self.process = subprocess.Popen(words, cwd=folder, env=environment, stdout=output, stderr=output)

    def await_that(self, condition: Callable[[], T | None], patience_s: float = 120) -> T:
        end = time.monotonic() + patience_s
        while not (value := condition()):
            assert self.process.poll() is None, (self.folder / "output").read_text()[-3000:]
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.02)
        return value

    def steps(self, rank: int = 0) -> list[tuple[int, int, int]]:
        path = self.folder / f"steps.{rank}"
        lines = path.read_text().splitlines()[:-1] if path.exists() else []
        found = (map(int, line.split()) for line in lines)
        return [(step, before, after) for step, before, after in found]

    def has_passed(self, step: int) -> bool:
        return self.steps()[-1][0] > step

    def await_trainer(self, rank: int = 0) -> ProcessView:
        """The process table's view of a rank that steps and polls."""
        self.await_that(lambda: self.steps(rank))
        return self.await_that(
            lambda: next((v for v in self.side.table.snapshot() if v.rank == rank and v.role is Role.TRAINER), None)
        )

    def order(self, view: ProcessView, start: StepStart | TimeStart, **more: Any) -> Path:
        """Places an order by hand; returns where its trace will be."""
        output = f"{self.side.directory.traces}/c-r{view.rank}.json"
        wanted = TraceOrder(output=output, trace_id=f"c-r{view.rank}", start=start, device_kind="cpu", **more)
        until = time.time_ns() + 20 * 10**9
        if isinstance(start, TimeStart):
            until = latest_delivery_unix_ns(start, "cpu")
        self.side.table.place_order(view.process_id, build_config(wanted), until, None)
        return Path(trace_path(output, view.pid))

    def await_trace(self, path: Path) -> dict[str, Any]:
        self.await_that(path.exists)
        trace: dict[str, Any] = json.loads(path.read_text())
        return trace

    def record(self, view: ProcessView, start: StepStart | TimeStart, **more: Any) -> dict[str, Any]:
        """The trace of an order; the process takes another one then."""
        path = self.order(view, start, **more)
        trace = self.await_trace(path)
        self.await_that(lambda: (now := self.side.table.get(view.process_id)) and not now.busy)
        path.unlink()
        return trace

    def finish(self) -> int:
        (self.folder / "stop").touch()
        return self.process.wait(60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        self.side.stop()


def recorded_steps(trace: dict[str, Any], steps: list[tuple[int, int, int]]) -> list[int]:
    """The numbers of the optimizer steps that a trace holds whole, by time.

    Kineto ends its recording in a thread of its own: on a loaded machine there may be one more than was asked for.
    """
    found = []
    for event in trace["traceEvents"]:
        if event.get("name", "").startswith("Optimizer.step#"):
            middle = trace["baseTimeNanoseconds"] + int(1000 * (event["ts"] + event["dur"] / 2))
            found += [step for step, before, after in steps if before <= middle <= after]
    return sorted(found)


@pytest.fixture(params=PYTHONS, ids=lambda path: "torch-of-" + path.split(os.sep)[-3])
def python(request: pytest.FixtureRequest) -> str:
    named: str = request.param
    return named


@pytest.fixture
def start_job(tmp_path: Path, short_directory: str) -> Iterator[Callable[..., Job]]:
    jobs = []

    def start(python: str, ranks: int = 1) -> Job:
        jobs.append(Job(tmp_path, short_directory, python, ranks))
        return jobs[-1]

    yield start
    for job in jobs:
        job.close()


def test_each_window_is_the_one_that_was_asked_for(start_job: Callable[..., Job], python: str) -> None:
    """One after the other in one job."""
    job = start_job(python)
    view = job.await_trainer()
    assert view.rank_source == "RANK_ENVIRON"
    assert_iterations_begin_with_the_asked_step(job, view)
    assert_iterations_begin_with_the_asked_step(job, view, collect=("Shapes", "Stacks"))
    assert_iterations_begin_with_the_asked_step(job, view, warmup_steps=3)
    assert_time_holds_the_steps_of_that_time(job, view)
    assert_a_recording_of_the_device_has_the_marks_of_steps_alone(job, view)
    assert len([event for event in job.events if isinstance(event, Delivered)]) == 5
    assert job.finish() == 0


def assert_iterations_begin_with_the_asked_step(
    job: Job, view: ProcessView, collect: tuple[str, ...] = (), warmup_steps: int = 0
) -> None:
    first_step = job.steps()[-1][0] + 150  # 20 ms each, a poll every second
    trace = job.record(view, StepStart(first_step=first_step, steps=5, warmup_steps=warmup_steps), collect=collect)
    job.await_that(partial(job.has_passed, first_step + 5))
    assert recorded_steps(trace, job.steps())[:5] == list(range(first_step, first_step + 5))
    assert trace["trace_id"] == "c-r0"
    modules = {event["name"] for event in trace["traceEvents"] if event.get("cat") == "python_function"}
    assert any(name.startswith("nn.Module: Linear_") for name in modules) == ("Stacks" in collect)


def assert_a_recording_of_the_device_has_the_marks_of_steps_alone(job: Job, view: ProcessView) -> None:
    first_step = job.steps()[-1][0] + 150
    trace = job.record(view, StepStart(first_step=first_step, steps=5), activities=("Device",))
    job.await_that(partial(job.has_passed, first_step + 5))
    assert recorded_steps(trace, job.steps())[:5] == list(range(first_step, first_step + 5))
    assert {event["cat"] for event in trace["traceEvents"] if event["ph"] == "X"} <= {"user_annotation", "Trace"}


def assert_time_holds_the_steps_of_that_time(job: Job, view: ProcessView) -> None:
    start_ms = time.time_ns() // 10**6 + 4500
    trace = job.record(view, TimeStart(start_unix_ms=start_ms, duration_ms=400))
    recorded = recorded_steps(trace, job.steps())
    inside = [
        step for step, before, after in job.steps() if start_ms * 10**6 <= before and after <= (start_ms + 400) * 10**6
    ]
    assert len(recorded) >= 3
    assert set(recorded) & set(inside)
    assert recorded == list(range(recorded[0], recorded[-1] + 1))


def test_an_answer_that_came_too_late_does_not_delay_those_after_it(
    monkeypatch: pytest.MonkeyPatch, start_job: Callable[..., Job], python: str
) -> None:
    """Kineto takes one answer at each poll, the oldest: one that is left over would put it one poll behind for ever."""
    job = start_job(python)
    view = job.await_trainer()
    late = iter([0.3])
    answers = []
    send = DatagramSocket.send  # the agent is off, so this is Kineto's socket alone

    def be_late_once(socket: DatagramSocket, data: bytes, address: str) -> bool:
        time.sleep(next(late, 0))
        answers.append((time.time_ns(), b"REQUEST_TRACE_ID" in data))
        return send(socket, data, address)

    monkeypatch.setattr(DatagramSocket, "send", be_late_once)
    job.await_that(lambda: len(answers) >= 3)
    trace = job.await_trace(job.order(view, StepStart(first_step=2, steps=3)))  # in the past: Kineto begins at once
    job.await_that(lambda: not answers[-1][1])
    first = recorded_steps(trace, job.steps())[0]
    began = next(before for step, before, _ in job.steps() if step == first)
    following = answers[[config for _, config in answers].index(True) + 1][0]
    assert began < following
    assert job.finish() == 0


def test_the_launcher_is_refused_and_its_ranks_begin_together(start_job: Callable[..., Job]) -> None:
    job = start_job(PYTHONS[0], ranks=2)
    views = [job.await_trainer(rank) for rank in range(2)]
    launchers = [v for v in job.side.table.snapshot() if v.process_id not in {view.process_id for view in views}]
    assert [v.role for v in launchers] == [Role.LAUNCHER]
    with pytest.raises(OrderRefused) as refused:
        job.side.table.place_order(launchers[0].process_id, "", time.time_ns() + 10**9, None, chosen=True)
    assert refused.value.reason == "Launcher"
    assert [(view.local_rank, view.world_size) for view in views] == [(0, 2), (1, 2)]

    first_step = job.steps(0)[-1][0] + 400
    paths = [job.order(view, StepStart(first_step=first_step, steps=3)) for view in views]
    traces = [job.await_trace(path) for path in paths]
    job.await_that(lambda: all(job.steps(rank)[-1][0] > first_step + 3 for rank in range(2)))
    for rank, trace in enumerate(traces):
        assert recorded_steps(trace, job.steps(rank))[:3] == [first_step, first_step + 1, first_step + 2]
    assert job.finish() == 0


def test_an_end_by_a_signal_is_noticed(start_job: Callable[..., Job]) -> None:
    job = start_job(PYTHONS[0])
    view = job.await_trainer()
    job.process.kill()
    job.process.wait(30)
    end = time.monotonic() + 30
    while not any(isinstance(event, Gone) and event.process_id == view.process_id for event in job.events):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert job.side.directory.collect_garbage() == 1
