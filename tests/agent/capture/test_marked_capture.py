"""Captures that mark modules in a real job: in the window's last iteration alone, and the job trains on."""

import io
from pathlib import Path

import pytest
from fleetprof_analyzer.rank.iterations import RecordingTerms, find_iterations
from fleetprof_analyzer.rank.modules.marked_iteration import MARK, part_marked
from fleetprof_analyzer.rank.modules.tree import measure_modules
from fleetprof_analyzer.reading.reader import read_trace
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import Trace
from fleetprof_api.report.module_tree import ModuleNode
from harness.training.agent_ground import AgentGround
from harness.training.agent_job import read_times

pytestmark = pytest.mark.torch

# Each module sleeps a time of its own, in forward and in backward.
SLEEPS = """
import torch.nn.modules.module as hooked
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, times):
        ctx.times = times
        time.sleep(times[0] / 1000)
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.times[1] / 1000)
        return gradient.clone(), None
class Sleeps(torch.nn.Module):
    def __init__(self, *times):
        super().__init__()
        self.times, self.scale = times, torch.nn.Parameter(torch.ones(4))
    def forward(self, x):
        return Slow.apply(x * self.scale, self.times)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.short, self.long = Sleeps(4, 8), torch.nn.Sequential(Sleeps(20, 40))
    def forward(self, x):
        return self.long(self.short(x))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
hooks = 0
while not is_stopped():
    optimizer.zero_grad()
    model(torch.ones(4)).sum().backward()
    hooks += len(hooked._global_forward_hooks)
    optimizer.step()
print(hooks, len(hooked._global_forward_hooks), len(hooked._global_forward_pre_hooks))
"""


def test_modules_are_marked_in_the_last_iteration_alone(ground: AgentGround, python: str, prelude: str) -> None:
    side = ground.side
    job = ground.start(python, prelude + SLEEPS, FLEETPROF_AGENT_DEBUG="1")
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    first = now["step"] + 3_000_000_000 // now["iteration_ns"]
    side.arm("marked", first_step=first, measured_step=first + 2, last_step=first + 3)
    side.order("marked", first, 4)
    trace = _read(side.trace("marked"))
    side.command("done", capture="marked", after_ns=10**9)
    columns = side.await_message("modules")
    side.await_message("times", lambda message: message["step"][-1] > first + 6)
    assert job.stop() == 0
    assert job.output == "1 0 0\n"  # in one iteration there was a hook

    plain, marked = part_marked(trace)
    assert not any(MARK.search(plain.names[name]) for name in set(plain.rows.name.tolist()))
    found = find_iterations(plain, None, RecordingTerms("step", first, 3), Problems())
    assert len(found.iterations) == 3
    times = read_times(side, "marked")
    assert marked is not None
    assert times[first + 1] < marked.begin_ns <= times[first + 2] + 1_000_000
    tree = measure_modules(marked, None)
    assert tree is not None
    assert not tree.ended_early
    slept = {node.name: _milliseconds(node) for node in tree.nodes}
    for name, (forward, backward) in {
        "Net": (24, 48), "Net.short": (4, 8), "Net.long": (20, 40), "Net.long.0": (20, 40),
    }.items():  # fmt: skip
        assert slept[name][0] >= forward
        assert slept[name][1] >= backward
    assert slept["Net.short"][1] < slept["Net.long"][1]
    assert columns["name"] == ["Net", "Net.short", "Net.long", "Net.long.0"]
    assert columns["class_name"] == ["Net", "Sleeps", "Sequential", "Sleeps"]
    assert columns["parameter_bytes"] == [0, 16, 0, 16]
    assert columns["output_bytes"] == [16] * 4
    assert columns["gradient_bytes"] == [0, 16, 0, 16]
    assert columns["optimizer_bytes"] == [0] * 4  # plain SGD has none
    assert columns["rows"] == [4, None, None, None]


def _read(path: Path) -> Trace:
    return read_trace(io.BytesIO(path.read_bytes()), path.name, Problems())


def _milliseconds(node: ModuleNode) -> tuple[float, float]:
    return node.forward.host_ns / 1e6, node.backward.host_ns / 1e6


def test_a_capture_that_is_cancelled_leaves_no_hook(ground: AgentGround, newest: str, prelude: str) -> None:
    side = ground.side
    job = ground.start(newest, prelude + SLEEPS, FLEETPROF_AGENT_DEBUG="1")
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    first = now["step"] + 2_000_000_000 // now["iteration_ns"]
    side.arm("gone", first_step=first, measured_step=first, last_step=first + 10_000)
    side.order("gone", first, 10_000)
    side.await_message("steps", lambda message: message["step"] > first + 5)
    side.command("cancel", capture="gone", first_step=first, last_step=first + 10_000)
    side.await_cancelled("gone")
    steps = side.of("steps")[-1]["step"]
    side.await_message("steps", lambda message: message["step"] > steps + 3)
    assert job.stop() == 0
    hooks, *left = map(int, job.output.split())
    assert hooks > 2
    assert left == [0, 0]
