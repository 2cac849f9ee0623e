"""A job that profiles itself: it ends as it would without us, and each of its own traces is whole.

Its phases (wait, warm-up, active, export) against ours (armed, recording, cancel, end of the window, exit). One job per
PyTorch plays all that it survives; a job that dies of any of it dies in its cell.
"""

import json
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from harness.training.agent_ground import AgentGround
from harness.training.agent_job import read_marks
from harness.training.profiled_job import PROFILED

pytestmark = pytest.mark.torch

PHASE = "phase"


class Scene:
    """A job, what it is told, and orders for it."""

    def __init__(self, ground: AgentGround, python: str, prelude: str, **environment: str) -> None:
        self.side = ground.side
        self._phase: Path = ground.scratch / PHASE
        self._numbers = count()
        self.tell("wait")
        self.job = ground.start(python, prelude + PROFILED, JOB_PHASE=str(self._phase), **environment)
        self.job.await_output("in wait NONE")

    def tell(self, phase: str) -> None:
        new = self._phase.with_suffix(".new")
        new.write_text(phase)
        new.rename(self._phase)

    def enter(self, phase: str) -> None:
        """Has the job go into a phase, and waits until it is there."""
        line = f"held in {phase}\n" if phase.startswith("exporting") else f"in {phase} "
        before = self.job.output.count(line)
        self.tell(phase)
        self.await_that(lambda: self.job.output.count(line) > before)

    def await_that(self, is_so: Callable[[], Any]) -> None:
        end = time.monotonic() + 60
        while not is_so():
            assert self.job.process.poll() is None, f"it died: {self.job.process.returncode}: {self.job.output[-2000:]}"
            assert time.monotonic() < end, f"never: {self.job.output[-2000:]}"
            time.sleep(0.01)

    def finish_cycle(self, phase: str = "") -> Any:
        """Lets the cycle be recorded and exported; what the job found in its own trace."""
        before = self.job.output.count("own [")
        self.tell(phase or f"active {next(self._numbers)}")
        self.await_that(lambda: self.job.output.count("own [") > before)
        self.tell("wait")
        self.await_that(lambda: self.job.output.splitlines()[-1] == "in wait NONE")
        return json.loads(self.job.output.split("own ")[-1].splitlines()[0])

    def arm(self, capture: str, *, ahead_ns: int = 0, steps: int = 100_000, collect: tuple[str, ...] = ()) -> int:
        """An order that Kineto has taken; its window's last step."""
        latest = len(self.side.of("steps"))
        self.await_that(lambda: len(self.side.of("steps")) > latest)
        now = self.side.of("steps")[-1]
        first = now["step"] + 3 + ahead_ns // max(1, now["iteration_ns"])
        last = int(first + steps - 1)
        until = time.time_ns() + 60 * 10**9
        self.side.command(
            "arm", capture=capture, first_step=first, last_step=last, sample_interval_ns=10**9, until_unix_ns=until
        )
        self.side.await_message("armed", lambda message: message["capture"] == capture)
        self.side.order(f"{capture}-r0", first, steps, collect)
        return last

    def record(self, capture: str) -> None:
        self.arm(capture)
        self.side.await_collecting(f"{capture}-r0")

    def cancel(self, capture: str) -> None:
        self.side.command("cancel", capture=capture)

    def is_cancelled(self, capture: str) -> bool:
        return any(message["capture"] == capture for message in self.side.of("cancelled"))


@pytest.mark.attack
def test_each_of_the_jobs_own_traces_is_what_it_is_without_us(ground: AgentGround, python: str, prelude: str) -> None:
    scene = Scene(ground, python, prelude)
    side = scene.side
    scene.enter("warmup")
    alone = scene.finish_cycle()  # nobody has ordered anything yet
    assert alone[0] == {"ProfilerStep": 3, "aten::linear": 3, "aten::addmm": 3, "Optimizer.step": 3}

    # Recording when the warm-up begins, which drops it; the cancel comes in the warm-up, and touches nothing.
    scene.record("recording")
    scene.enter("warmup")
    side.await_message("profile", lambda message: message["own_profile"] == "warmup")
    scene.cancel("recording")
    side.await_message("cancelled", lambda message: message["capture"] == "recording")
    assert scene.finish_cycle() == alone

    # The same without a word of ours in the warm-up, straight into the active phase.
    scene.record("taken")
    assert scene.finish_cycle() == alone
    scene.cancel("taken")
    side.await_message("cancelled", lambda message: message["capture"] == "taken")

    # Armed, not begun: cancelled in the warm-up. It can only be confirmed when the cycle is over.
    scene.arm("armed", ahead_ns=4 * 10**9)
    scene.enter("warmup")
    scene.cancel("armed")
    polled = len(side.polls)
    scene.await_that(lambda: len(side.polls) > polled + 1)
    assert not scene.is_cancelled("armed")
    assert not any(request.idle for _, request in side.polls[-1:])  # Kineto takes no order meanwhile
    assert scene.finish_cycle() == alone
    side.await_message("cancelled", lambda message: message["capture"] == "armed")

    # Cancelled while the job exports, which Kineto knows nothing of.
    scene.arm("export", ahead_ns=4 * 10**9)
    scene.enter("exporting 1")
    scene.cancel("export")
    assert scene.finish_cycle("wait") == alone
    side.await_message("cancelled", lambda message: message["capture"] == "export")

    # The window is over and its trace is not written yet: the warm-up begins when it is (kineto.py).
    last = scene.arm("ending", ahead_ns=3 * 10**9, steps=40, collect=("Shapes",))
    scene.await_that(lambda: side.of("steps")[-1]["step"] >= last)
    scene.enter("warmup")
    marks = read_marks(side.trace("ending-r0"))
    assert len(marks) >= 40
    side.command("done", capture="ending", after_ns=0)
    assert scene.finish_cycle() == alone

    # And orders work as before.
    scene.arm("after", steps=5)
    assert len(read_marks(side.trace("after-r0"))) >= 5
    side.command("done", capture="after", after_ns=0)
    assert scene.job.stop() == 0
    assert scene.job.output.endswith("torch's flag False\n")


@pytest.mark.attack
def test_nothing_of_ours_is_in_the_jobs_own_trace(ground: AgentGround, python: str, prelude: str) -> None:
    """Not even where it shows each Python function of each thread: our thread is at work when it begins."""
    options = '{"with_stack": true, "profile_memory": true, "record_shapes": true}'
    scene = Scene(ground, python, prelude, JOB_OPTIONS=options, JOB_COMPILES="eager", WITH_COMPILER="front")
    side = scene.side

    def finish_cycle() -> Any:
        scene.finish_cycle()
        return json.loads(scene.job.output.split("all ")[-1].splitlines()[0])

    finish_cycle()  # the first one has what is loaded and made once
    alone = finish_cycle()
    assert alone["Optimizer.step#SGD.step"] == 3
    assert not [name for name in alone if "fleetprof" in name]

    scene.record("recording")
    assert finish_cycle() == alone
    scene.cancel("recording")  # its thread goes on after the cycle
    side.await_message("cancelled", lambda message: message["capture"] == "recording")
    scene.arm("armed", ahead_ns=4 * 10**9)
    assert finish_cycle() == alone
    assert scene.job.stop() == 0


@pytest.mark.attack
@pytest.mark.parametrize("phase", ["warmup", "active"])
def test_exit_in_the_jobs_own_profile_keeps_the_exit_code(
    ground: AgentGround, python: str, prelude: str, phase: str
) -> None:
    """The interpreter ends while the job's own profile is prepared or records, and an order is armed or dropped."""
    script = """
from torch.profiler import ProfilerActivity, profile
model, optimizer = make()
while not os.path.exists(os.environ["PROFILE"]):
    iterate(model, optimizer)
own = profile(activities=[ProfilerActivity.CPU])
own.prepare_trace()
if os.environ["PHASE"] == "active":
    own.start_trace()
print("profiling", flush=True)
while not is_stopped():
    iterate(model, optimizer)
if os.environ["PHASE"] == "active":
    own.stop_trace()
    print(sum(event.name == "Optimizer.step#SGD.step" for event in own.events()) > 3)
sys.exit(3)
"""
    side, profile = ground.side, ground.scratch / "profile"
    job = ground.start(python, prelude + script, PROFILE=str(profile), PHASE=phase)
    now = side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    side.arm("exit")
    side.order("exit-r0", now["step"] + 3, 100_000)
    side.await_collecting("exit-r0")
    profile.touch()
    job.await_output("profiling\n")
    begun = side.await_message("steps", lambda message: message["own_profile"] == phase)
    side.command("cancel", capture="exit")
    side.await_message("steps", lambda message: message["step"] > begun["step"] + 60)
    assert job.stop() == 3
    assert job.output.splitlines()[1:] == (["True"] if phase == "active" else [])


def test_a_profile_in_another_thread_wins_as_well(ground: AgentGround, newest: str, prelude: str) -> None:
    """Many begins and ends in one thread, with drops of ours in another: neither meets the other."""
    script = """
import threading, time
from torch.profiler import ProfilerActivity, profile
model, optimizer = make()
counts = []
def profile_again_and_again():
    other, _ = make()
    while not is_stopped():
        with profile(activities=[ProfilerActivity.CPU]) as own:
            other(torch.randn(4, 8))
        counts.append(sum(event.name == "aten::linear" for event in own.events()))
        time.sleep(0.03)  # a gap about as long as the profile
thread = threading.Thread(target=profile_again_and_again)
iterate(model, optimizer)
thread.start()
while thread.is_alive():
    iterate(model, optimizer)
thread.join()
print(len(counts) > 20, set(counts))
"""
    side = ground.side
    job = ground.start(newest, prelude + script)
    side.await_message("steps", lambda message: message["iteration_ns"] > 0)
    for number in range(10):
        side.command("cancel", capture=f"c{number}", last_step=None, end_unix_ns=None)
        side.await_cancelled(f"c{number}")
    assert job.stop() == 0
    assert job.output == "True {1}\n"


def test_without_the_agent_each_poll_tells_of_the_jobs_own_profile(
    ground: AgentGround, python: str, prelude: str
) -> None:
    """In all phases but waiting and exporting: that is all a sidecar knows, and refuses by (process_records.py)."""
    scene = Scene(ground, python, prelude, FLEETPROF_AGENT="0")
    side = scene.side

    def idle_after(phase: str) -> bool:
        if not scene.job.output.splitlines()[-1].startswith(f"in {phase}"):
            scene.enter(phase)
        polled = len(side.polls)
        scene.await_that(lambda: len(side.polls) > polled + 1)
        return bool(side.polls[-1][1].idle)

    assert [idle_after(phase) for phase in ("wait", "warmup")] == [True, False]
    scene.finish_cycle()
    assert idle_after("exporting 1")
    scene.finish_cycle("wait")
    assert idle_after("wait")
    assert scene.job.stop() == 0
