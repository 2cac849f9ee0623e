"""Captures in real PyTorch processes: the window is the one that was asked for, and the job ends as it meant to."""

import signal
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from harness.training.agent_ground import AgentGround
from harness.training.agent_job import TRAIN, read_marks, read_times

pytestmark = pytest.mark.torch


def test_window_begins_with_the_step_that_was_asked_for(ground: AgentGround, python: str, prelude: str) -> None:
    """Kineto is sent F - 2 (kineto_config); the trace's marks hold exactly the ends of the steps F, F + 1, ..."""
    side = ground.side
    job = ground.start(python, prelude + TRAIN)
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    side.arm("offset")
    first = now["step"] + 4_000_000_000 // now["iteration_ns"]
    side.order("offset", first, 6)
    path = side.trace("offset")
    side.command("done", capture="offset", after_ns=500_000_000)
    side.await_message("times", lambda message: message["step"][-1] > first + 20)
    times = read_times(side, "offset")
    marked = [[step for step, end in times.items() if begin <= end <= finish] for begin, finish in read_marks(path)]
    # Kineto ends its recording in a thread of its own: within the last mark at the earliest, late on a loaded machine.
    assert marked[:5] == [[first + index] for index in range(5)]
    assert min(times) < first - 10  # there is a before
    assert job.stop() == 0


def test_times_are_whole_and_in_order(ground: AgentGround, newest: str, prelude: str) -> None:
    side = ground.side
    job = ground.start(newest, prelude + TRAIN)
    side.await_message("steps", lambda message: message["step"] > 20)
    side.arm("whole")
    side.command("done", capture="whole", after_ns=2_000_000_000)
    side.await_message("times", lambda message: message["step"][-1] > 60)
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
    ground: AgentGround, python: str, prelude: str, ending: str, code: int, collect: tuple[str, ...]
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


def test_exit_is_guarded_even_when_the_order_to_watch_was_lost(ground: AgentGround, newest: str, prelude: str) -> None:
    side = ground.side
    job = ground.start(newest, prelude + TRAIN)
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    side.order("lost", now["step"] + 2, 100_000)
    side.await_collecting("lost")
    assert job.stop() == 0


def test_exit_of_a_job_without_an_optimizer_is_guarded(ground: AgentGround, python: str, prelude: str) -> None:
    """Its hook never runs, so that the agent knows of no capture; Kineto may take an order by time all the same."""
    script = """
model = torch.nn.Linear(8, 8)
print("runs", flush=True)
while not is_stopped():
    model(torch.randn(4, 8))
"""
    job = ground.start(python, prelude + script)
    job.await_output("runs")
    ground.side.order_by_time("unknown", 60_000)
    ground.side.await_collecting("unknown")
    time.sleep(3)  # the file is there some seconds before events are
    assert job.stop() == 0


def test_exit_without_the_agent_is_what_the_guard_is_for(ground: AgentGround, python: str, prelude: str) -> None:
    """If this fails, PyTorch has cured its exit, and the guard can go for versions from then on."""
    side = ground.side
    script = prelude + TRAIN.replace("while", "iterate(model, optimizer)\nprint('steps', flush=True)\nwhile")
    job = ground.start(python, script, FLEETPROF_AGENT="0")
    job.await_output("steps\n")
    side.order("bare", 3, 100_000)
    side.await_collecting("bare")
    assert job.stop() == -signal.SIGSEGV
    assert side.messages == []


def test_exit_while_the_trace_is_written_completes_it(ground: AgentGround, python: str, prelude: str) -> None:
    side = ground.side
    script = """
model, optimizer = make()
deep = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(50)])
while not is_stopped():
    if os.listdir(os.environ["TRACES"]):  # Kineto records
        deep(torch.randn(4, 8)).sum().backward()
    iterate(model, optimizer)
"""
    traces = Path(ground.directory, "traces")
    job = ground.start(python, prelude + script, TRACES=str(traces))
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    side.arm("write")
    side.order("write", now["step"] + 2, 30, ("Shapes",))
    while not any(path.stat().st_size for path in traces.glob("write_*.json.tmp")) and not list(traces.glob("*.json")):
        assert job.process.poll() is None
        time.sleep(0.001 if any(traces.iterdir()) else 0.02)
    assert job.stop() == 0
    assert len(read_marks(side.trace("write"))) >= 30


def test_killed_while_collecting(ground: AgentGround, newest: str, prelude: str) -> None:
    side = ground.side
    job = ground.start(newest, prelude + TRAIN)
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    side.arm("kill")
    side.order("kill", now["step"] + 2, 100_000)
    side.await_collecting("kill")
    job.process.kill()
    assert job.wait() == -signal.SIGKILL
    assert side.of("bye") == []


def test_cancel_in_the_process(ground: AgentGround, python: str, prelude: str) -> None:
    """A cancelled order leaves nothing, and the next one works; in one job, whatever the state of the order is."""
    job = ground.start(python, prelude + TRAIN)
    ground.side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    for state in ("forgotten", "collecting", "pending"):
        cancel_in(ground, state)
    assert job.stop() == 0


def cancel_in(ground: AgentGround, state: str) -> None:
    """Cancels an order in this state, and has a second one recorded. `forgotten`: the agent was never told to watch.

    PyTorch 2.13 keeps a pending order, so there it is dropped when it begins.
    """
    side, first, second = ground.side, f"{state}-first", f"{state}-second"
    now = side.of("steps")[-1]
    if state != "forgotten":
        side.arm(first)
    ahead = 4_000_000_000 // now["iteration_ns"] if state == "pending" else 2
    side.order(f"{first}-r0", now["step"] + ahead, 100_000)
    if state != "pending":
        side.await_collecting(f"{first}-r0")
    side.command("cancel", capture=first)
    side.await_cancelled(first)
    # Dropping what is recorded can take long: that it has begun is said first.
    begun = any(message["capture"] == first for message in side.of("dropping"))
    assert begun or state == "pending"

    later = side.await_message("steps", lambda message: message["step"] > now["step"])
    side.arm(second)
    side.order(f"{second}-r0", later["step"] + 4_000_000_000 // later["iteration_ns"], 3)
    assert len(read_marks(side.trace(f"{second}-r0"))) >= 3
    assert list(Path(ground.directory, "traces").glob(f"{first}-r0_*.json")) == []
    side.command("done", capture=second, after_ns=0)


def test_own_profiler_of_the_job_is_not_disturbed_by_a_cancel(ground: AgentGround, python: str, prelude: str) -> None:
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


def test_no_thread_outside_a_capture(ground: AgentGround, newest: str, prelude: str) -> None:
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


SLEEPY = """
def read_batch():
    time.sleep(0.1)  # five times as long as an iteration

model, optimizer = make()
while not is_stopped():
    read_batch()
    iterate(model, optimizer)
"""


def test_the_training_thread_is_seen_where_it_is(ground: AgentGround, python: str, prelude: str) -> None:
    job = ground.start(python, prelude + SLEEPY)
    side = ground.side
    side.await_trainer()
    step = side.await_message("steps", lambda message: message["iteration_ns"] > 0)["step"]
    order = {"sample_interval_ns": 10**9, "until_unix_ns": time.time_ns() + 60 * 10**9, "thread_samples": True}
    side.command("arm", capture="c", first_step=step + 10, last_step=step + 25, **order)
    side.await_message("thread")
    assert job.stop() == 0
    messages = {kind: side.of(kind) for kind in ("places", "stacks", "thread")}
    functions = [name for message in messages["places"] for name in message["function"]]
    stacks = [stack for message in messages["stacks"] for stack in message["stacks"]]
    samples = [number for message in messages["thread"] for number in message["stack"] if number is not None]
    innermost = Counter(functions[stacks[number][0]] for number in samples)
    assert len(samples) >= 3  # a few hundred where there is a core for them
    assert innermost.most_common(1)[0][0] == "read_batch"
    assert {"record_step", "tick", "wait"}.isdisjoint(functions)
