"""The agent in real PyTorch processes: what it reports, when it is silent, and that the job ends as it meant to."""

import json
import os
import signal
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fleetprof_agent import wire

pytestmark = pytest.mark.torch

TRAIN = """
model, optimizer = make()
while not is_stopped():
    iterate(model, optimizer)
"""


def read_marks(path: Path) -> list[tuple[float, float]]:
    """Begin and end (Unix ns) of each Optimizer.step mark of a trace, in order."""
    trace = json.loads(path.read_text())
    base = trace.get("baseTimeNanoseconds", 0)
    return sorted(
        (base + event["ts"] * 1000, base + (event["ts"] + event["dur"]) * 1000)
        for event in trace["traceEvents"]
        if event.get("ph") == "X" and event.get("name", "").startswith("Optimizer.step#")
    )


def read_times(side: Any, capture: str) -> dict[int, int]:
    """Step → end (Unix ns), of all "times" messages of a capture so far."""
    return {
        step: end
        for message in list(side.messages)
        if message["t"] == "times" and message["capture"] == capture
        for step, end in zip(message["step"], message["end_unix_ns"], strict=True)
    }


def test_first_step_says_who_steps(ground: Any, newest: str, prelude: str) -> None:
    job = ground.start(
        newest, prelude + TRAIN, RANK="3", LOCAL_RANK="1", WORLD_SIZE="4", TORCHELASTIC_RESTART_COUNT="2"
    )
    hello = ground.side.await_trainer()
    steps = ground.side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    assert (hello["rank"], hello["local_rank"], hello["world_size"], hello["restart_count"]) == (3, 1, 4, 2)
    assert (hello["pid"], hello["ppid"], hello["uid"]) == (job.process.pid, os.getpid(), os.getuid())
    assert hello["device_kind"] == "cpu"
    assert hello["torch"].startswith("2.")
    assert hello["address"].startswith(ground.directory + "/fleetprofagent")
    assert steps["step"] > 1
    assert steps["per_iteration"] == 1
    assert steps["iteration_ns"] > 4_000_000  # a sleep of 5 ms is in each
    # The Kineto client that polls and the agent are one process.
    (polled,) = {address for address, _ in ground.side.polls}
    assert polled == f"{ground.directory}/{hello['kineto']}"
    assert job.stop() == 0
    assert ground.side.await_message("bye")["capture"] == ""
    assert ground.agent_sockets() == []
    assert job.output == ""


def test_query_is_answered_with_both(ground: Any, newest: str, prelude: str) -> None:
    job = ground.start(newest, prelude + TRAIN)
    ground.side.await_message("steps")
    hellos = len(ground.side.of("hello"))
    ground.side.command("query")
    ground.side.await_message("hello", lambda _: len(ground.side.of("hello")) > hellos)
    assert job.stop() == 0


@pytest.mark.parametrize(
    ("loop", "per_iteration"),
    [
        ("iterate(model, optimizer)", 1),
        ("iterate(model, optimizer, other)", 2),
        ("iterate(model, optimizer, optimizer, optimizer, other)", 4),
        ("[model(torch.randn(4, 8)).sum().backward() for _ in range(3)]; iterate(model, optimizer)", 1),
    ],
    ids=["one", "two", "three of one, one of the other", "gradient accumulation"],
)
def test_steps_per_iteration(ground: Any, newest: str, prelude: str, loop: str, per_iteration: int) -> None:
    script = f"""
model, optimizer = make()
other = torch.optim.Adam(model.parameters())
while not is_stopped():
    {loop}
"""
    job = ground.start(newest, prelude + script)
    seen = ground.side.await_message("steps", lambda message: message["step"] > 80)
    assert seen["per_iteration"] == per_iteration
    assert seen["iteration_ns"] > 4_000_000
    assert job.stop() == 0


def test_window_begins_with_the_step_that_was_asked_for(ground: Any, python: str, prelude: str) -> None:
    """Kineto is sent F - 2 (kineto_config); the trace's marks hold exactly the ends of the steps F, F + 1, ..."""
    side = ground.side
    job = ground.start(python, prelude + TRAIN)
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    side.arm("offset")
    first = now["step"] + 4_000_000_000 // now["iteration_ns"]
    side.order("offset", first, 5)
    path = side.trace("offset")
    side.command("done", capture="offset", after_ns=500_000_000)
    side.await_message("times", lambda message: message["step"][-1] > first + 20)
    times = read_times(side, "offset")
    marked = [[step for step, end in times.items() if begin <= end <= finish] for begin, finish in read_marks(path)]
    assert marked == [[first + index] for index in range(5)]
    assert min(times) < first - 10  # there is a before
    assert job.stop() == 0


def test_times_are_whole_and_in_order(ground: Any, newest: str, prelude: str) -> None:
    side = ground.side
    job = ground.start(newest, prelude + TRAIN)
    side.await_message("steps", lambda message: message["step"] > 50)
    side.arm("whole")
    side.command("done", capture="whole", after_ns=2_000_000_000)
    side.await_message("times", lambda message: message["step"][-1] > 200)
    assert job.stop() == 0
    steps = [step for message in side.of("times") for step in message["step"]]
    ends = [end for message in side.of("times") for end in message["end_unix_ns"]]
    assert steps == list(range(1, len(steps) + 1))
    assert all(earlier <= later for earlier, later in pairwise(ends))


@pytest.mark.parametrize(
    ("ending", "code", "collect"),
    [("", 0, ()), ("sys.exit(3)", 3, ()), ("raise RuntimeError('the job fails')", 1, ()), ("", 0, ("Stacks",))],
    ids=["end", "sys.exit", "exception", "stacks"],
)
def test_exit_while_collecting_keeps_the_exit_code(
    ground: Any, python: str, prelude: str, ending: str, code: int, collect: tuple[str, ...]
) -> None:
    """Without the guard each of these dies by SIGSEGV (kineto.py)."""
    side = ground.side
    job = ground.start(python, prelude + TRAIN + ending)
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    side.arm("exit")
    side.order("exit", now["step"] + 2, 100_000, collect)
    side.await_collecting("exit")
    assert job.stop() == code
    assert side.await_message("bye")["capture"] == "exit"
    assert ground.agent_sockets() == []


def test_exit_is_guarded_even_when_the_order_to_watch_was_lost(ground: Any, newest: str, prelude: str) -> None:
    side = ground.side
    job = ground.start(newest, prelude + TRAIN)
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    side.order("lost", now["step"] + 2, 100_000)
    side.await_collecting("lost")
    assert job.stop() == 0


def test_exit_without_the_agent_is_what_the_guard_is_for(ground: Any, python: str, prelude: str) -> None:
    """If this fails, PyTorch has cured its exit, and the guard can go for versions from then on."""
    side = ground.side
    script = prelude + TRAIN.replace("while", "iterate(model, optimizer)\nprint('steps', flush=True)\nwhile")
    job = ground.start(python, script, FLEETPROF_AGENT="0")
    job.await_output("steps\n")
    side.order("bare", 3, 100_000)
    side.await_collecting("bare")
    assert job.stop() == -signal.SIGSEGV
    assert side.messages == []


def test_exit_while_the_trace_is_written_completes_it(ground: Any, python: str, prelude: str) -> None:
    side = ground.side
    script = """
model, optimizer = make()
deep = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(100)])
while not is_stopped():
    deep(torch.randn(4, 8)).sum().backward()
    iterate(model, optimizer)
"""
    job = ground.start(python, prelude + script)
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    side.arm("write")
    side.order("write", now["step"] + 2, 30, ("Shapes",))
    traces = Path(ground.directory, "traces")
    while not any(path.stat().st_size for path in traces.glob("write_*.json.tmp")) and not list(traces.glob("*.json")):
        assert job.process.poll() is None
        time.sleep(0.001)
    assert job.stop() == 0
    assert len(read_marks(side.trace("write"))) == 30


def test_killed_while_collecting(ground: Any, newest: str, prelude: str) -> None:
    side = ground.side
    job = ground.start(newest, prelude + TRAIN)
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    side.arm("kill")
    side.order("kill", now["step"] + 2, 100_000)
    side.await_collecting("kill")
    job.process.kill()
    assert job.wait() == -signal.SIGKILL
    assert side.of("bye") == []


@pytest.mark.parametrize("state", ["pending", "collecting", "forgotten"])
def test_cancel_in_the_process(ground: Any, python: str, prelude: str, state: str) -> None:
    """A cancelled order leaves nothing, and the next one works. `forgotten`: the agent was never told to watch.

    PyTorch 2.13 keeps a pending order, so there it is dropped when it begins.
    """
    side = ground.side
    job = ground.start(python, prelude + TRAIN)
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    if state != "forgotten":
        side.arm("first")
    ahead = 4_000_000_000 // now["iteration_ns"] if state == "pending" else 2
    side.order("first", now["step"] + ahead, 100_000)
    if state != "pending":
        side.await_collecting("first")
    side.command("cancel", capture="first")
    side.await_message("cancelled", lambda message: message["capture"] == "first")

    later = side.await_message("steps", lambda message: message["step"] > now["step"])
    side.arm("second")
    side.order("second", later["step"] + 4_000_000_000 // later["iteration_ns"], 3)
    assert len(read_marks(side.trace("second"))) == 3
    assert list(Path(ground.directory, "traces").glob("first_*.json")) == []
    assert job.stop() == 0


def test_own_profiler_of_the_job_is_not_disturbed_by_a_cancel(ground: Any, python: str, prelude: str) -> None:
    script = """
model, optimizer = make()
while not os.path.exists(os.environ["PROFILE"]):
    iterate(model, optimizer)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
    print("profiling", flush=True)
    while not is_stopped():
        iterate(model, optimizer)
print(sum(event.name.startswith("Optimizer.step#") for event in own.events()) > 50)
"""
    side = ground.side
    profile = ground.scratch / "profile"
    job = ground.start(python, prelude + script, PROFILE=str(profile))
    side.await_message("steps")
    side.arm("mine")
    profile.touch()
    job.await_output("profiling\n")
    begun = side.await_message("steps")
    side.command("cancel", capture="mine")
    side.await_message("steps", lambda message: message["step"] > begun["step"] + 100)
    assert side.of("cancelled") == []
    assert job.stop() == 0
    assert "True" in job.output


def test_no_thread_outside_a_capture(ground: Any, newest: str, prelude: str) -> None:
    script = """
import threading
model, optimizer = make()
names = set()
while not is_stopped():
    iterate(model, optimizer)
    now = {thread.name for thread in threading.enumerate()}
    if now != names:
        names = now
        print(*sorted(now), flush=True)
"""
    side = ground.side
    job = ground.start(newest, prelude + script)
    side.await_message("steps")
    side.arm("thread")
    job.await_output("fleetprof-capture\n")
    side.command("done", capture="thread", after_ns=0)
    job.await_output("fleetprof-capture\nMainThread\n")
    assert job.stop() == 0
    assert job.output.split("\n") == ["MainThread", "MainThread fleetprof-capture", "MainThread", ""]


def test_job_without_an_optimizer_step_says_that_the_agent_is_there_and_no_more(
    ground: Any, python: str, prelude: str
) -> None:
    script = "model, optimizer = make()\nmodel(torch.randn(4, 8)).sum().backward()\n"
    job = ground.start(python, prelude + script, RANK="3", LOCAL_RANK="1", WORLD_SIZE="4")
    assert job.wait() == 0
    (hello,) = ground.side.messages
    assert (hello["t"], hello["role"], hello["pid"]) == ("hello", "waiting", job.process.pid)
    assert (hello["rank"], hello["local_rank"], hello["world_size"], hello["restart_count"]) == (3, 1, 4, 0)
    assert hello["torch"].startswith("2.")
    (polled,) = {address for address, _ in ground.side.polls}
    assert polled == f"{ground.directory}/{hello['kineto']}"
    assert ground.agent_sockets() == []
    assert job.output == ""


@pytest.mark.parametrize(("steps", "sockets"), [(1, 0), (0, 1)], ids=["a step", "no step"])
def test_what_a_trainer_does_at_its_exit_comes_before_what_others_do(
    ground: Any, newest: str, prelude: str, steps: int, sockets: int
) -> None:
    """PyTorch's own handlers among them: the guard must have ended the trace by then."""
    script = """
import atexit
def look():
    print(sum(name.startswith("fleetprofagent") for name in os.listdir(os.environ["KINETO_IPC_SOCKET_DIR"])))
model, optimizer = make()
atexit.register(look)
for _ in range(int(os.environ["STEPS"])):
    iterate(model, optimizer)
"""
    job = ground.start(newest, prelude + script, STEPS=str(steps))
    assert job.wait() == 0
    assert job.output == f"{sockets}\n"
    assert ground.agent_sockets() == []
    assert len(ground.side.of("bye")) == steps


WORKERS = """
from torch.optim.optimizer import _global_optimizer_post_hooks

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        return torch.randn(8)

def main():
    model, optimizer = make()
    method = os.environ["METHOD"]
    iterate(model, optimizer)
    while not is_stopped():
        loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context=method)
        for batch in loader:
            model(batch).sum().backward()
            iterate(model, optimizer)
        if method == "fork":
            child = os.fork()
            if not child:
                # What a child that trains would do (PyTorch itself may hang in one).
                for hook in _global_optimizer_post_hooks.values():
                    hook(optimizer, (), {})
                # Without the agent's help this hangs for ever (kineto.py).
                sys.exit(5)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_are_silent(ground: Any, python: str, prelude: str, method: str) -> None:
    side = ground.side
    job = ground.start(python, prelude + WORKERS, METHOD=method)
    side.await_message("steps", lambda message: message["step"] > 20)
    assert job.stop() == 0
    bye = side.await_message("bye")
    # A spawned worker imports PyTorch for itself.
    said = [message for message in side.messages if method == "fork" or message.get("role") != wire.WAITING]
    assert {message["pid"] for message in said} == {bye["pid"]} == {job.process.pid}
    assert len(side.of("bye")) == 1
    assert ground.agent_sockets() == []


@pytest.mark.parametrize("compiled", ["optimizer.step", "whole"])
def test_compiled_training_is_counted_once_and_not_recompiled(
    ground: Any, python: str, prelude: str, compiled: str
) -> None:
    script = """
model, optimizer = make()
step = optimizer.step
def whole(batch):
    model(batch).sum().backward()
    step()
    optimizer.zero_grad()
if os.environ["COMPILED"] == "whole":
    whole = torch.compile(whole, backend="eager")
else:
    step = torch.compile(step, backend="eager")
for _ in range(40):
    whole(torch.randn(4, 8))
    time.sleep(0.02)
from torch.autograd.profiler import KinetoStepTracker
print("steps", KinetoStepTracker.current_step())
"""
    job = ground.start(python, prelude + script, COMPILED=compiled, TORCH_LOGS="recompiles")
    assert job.wait() == 0
    assert "steps 40" in job.output
    assert "fleetprof_agent" not in job.output
    assert ground.side.await_message("bye")


def test_error_of_ours_ends_the_agent_not_the_job(ground: Any, newest: str, prelude: str) -> None:
    """The agent fails at the first step: the training goes on, and nobody waits for the agent any more."""
    script = """
from torch.optim import optimizer as module
from fleetprof_agent import agent
agent.identity.read_device = None
model, optimizer = make()
for _ in range(20):
    iterate(model, optimizer)
print([hook.__name__ for hook in module._global_optimizer_post_hooks.values()])
print([name for name in os.listdir(os.environ["KINETO_IPC_SOCKET_DIR"]) if name.startswith("fleetprofagent")])
"""
    job = ground.start(newest, prelude + script)
    assert job.wait() == 0
    assert job.output == "['_optimizer_post_hook', '_ignore_step']\n[]\n"
    assert [message["role"] for message in ground.side.messages] == [wire.WAITING]


def test_directory_that_takes_no_socket_of_ours_leaves_the_job_alone(ground: Any, newest: str, prelude: str) -> None:
    script = """
from torch.optim import optimizer as module
for _ in range(20):
    iterate(*made)
print([hook.__name__ for hook in module._global_optimizer_post_hooks.values()])
"""
    broken = "from fleetprof_agent import wire\nwire.AGENT_SOCKET_PREFIX = 'nowhere/'\n"
    job = ground.start(newest, broken + prelude + "made = make()\n" + script)
    assert job.wait() == 0
    assert job.output == "['_optimizer_post_hook', '_ignore_step']\n"
    assert ground.side.messages == []


def test_isolated_interpreter_trains_without_the_agent(ground: Any, newest: str, prelude: str) -> None:
    script = """
model, optimizer = make()
for _ in range(5):
    iterate(model, optimizer)
print("fleetprof_agent" in sys.modules)
"""
    job = ground.start(newest, prelude + script, "-I")
    assert job.wait() == 0
    assert job.output == "False\n"
    assert ground.side.messages == []


def test_process_group_knows_the_rank_better_than_the_environment(ground: Any, python: str, prelude: str) -> None:
    script = (
        """
import torch.distributed
store = torch.distributed.FileStore(os.environ["STORE"], 1)
torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
"""
        + TRAIN
        + "torch.distributed.destroy_process_group()\n"
    )
    job = ground.start(python, prelude + script, RANK="7", WORLD_SIZE="9", STORE=str(ground.scratch / "store"))
    hello = ground.side.await_trainer()
    assert (hello["rank"], hello["world_size"]) == (0, 1)
    assert job.stop() == 0
