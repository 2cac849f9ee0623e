"""The holder of Kineto's slot, as told by the functions that PyTorch calls, on a module that stands for PyTorch's."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fleetprof_agent.profiler.own_profile import ACTIVE, IDLE, WARMUP, OwnProfile

KINETO = ("prepare", "start", "stop")
OTHER = ("start", "stop")  # nvtx, itt


class Pytorch(SimpleNamespace):
    """Stands for torch.autograd.profiler."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.fails = False
        self._prepare_profiler = self._prepare
        self._run_on_profiler_start: Callable[[], None] = lambda: self.calls.append("start")
        self._run_on_profiler_stop: Callable[[], None] = lambda: self.calls.append("stop")

    def _prepare(self, config: str, *, activity_filter: str = "") -> str:
        self.calls.append("prepare")
        if self.fails:
            raise RuntimeError("no")
        return config + activity_filter


class Profile:
    """Calls as PyTorch's own classes do: from a method."""

    def __init__(self, pytorch: Pytorch, *, with_stack: bool = False) -> None:
        self.pytorch = pytorch
        self.with_stack = with_stack

    def prepare(self) -> str:
        return str(self.pytorch._prepare_profiler("config", activity_filter="!"))

    def start(self) -> None:
        self.pytorch._run_on_profiler_start()

    def stop(self) -> None:
        self.pytorch._run_on_profiler_stop()


@pytest.fixture
def pytorch() -> Pytorch:
    return Pytorch()


@pytest.fixture
def own(pytorch: Pytorch) -> OwnProfile:
    made = OwnProfile()
    made.observe(pytorch)
    assert made.is_observed
    return made


@pytest.mark.parametrize(
    ("calls", "phases"),
    [
        ("A.prepare", [WARMUP]),
        ("A.prepare A.start", [WARMUP, ACTIVE]),
        ("A.prepare A.start A.stop", [WARMUP, ACTIVE, IDLE]),
        ("A.prepare A.start A.stop A.prepare", [WARMUP, ACTIVE, IDLE, WARMUP]),
        # nvtx and itt begin to record without Kineto, also beside one that uses it.
        ("N.start N.stop", [IDLE, IDLE]),
        ("A.prepare N.start N.stop", [WARMUP, WARMUP, WARMUP]),
        ("A.prepare A.start N.start N.stop", [WARMUP, ACTIVE, ACTIVE, ACTIVE]),
        ("N.start A.prepare N.stop A.start A.stop", [IDLE, WARMUP, WARMUP, ACTIVE, IDLE]),
        # The second takes the slot, and only its end frees it.
        ("A.prepare A.start B.prepare A.stop B.start B.stop", [WARMUP, ACTIVE, WARMUP, WARMUP, ACTIVE, IDLE]),
        ("A.prepare B.prepare B.start B.stop", [WARMUP, WARMUP, ACTIVE, IDLE]),
    ],
)
def test_phases(pytorch: Pytorch, own: OwnProfile, calls: str, phases: list[str]) -> None:
    profiles = {name: Profile(pytorch) for name in "ABN"}
    observed_phases = []
    for call in calls.split():
        name, _, method = call.partition(".")
        getattr(profiles[name], method)()
        observed_phases.append(own.phase)
    assert observed_phases == phases
    assert pytorch.calls == [call.partition(".")[2] for call in calls.split()]


@pytest.mark.parametrize(
    ("calls", "rests"),
    [
        ("S.prepare S.start S.stop", [False, True, False]),
        ("A.prepare A.start A.stop", [False, False, False]),
        ("S.prepare S.start N.start N.stop S.stop", [False, True, True, True, False]),
        ("S.prepare S.start A.prepare A.start A.stop", [False, True, False, False, False]),  # S is never stopped
    ],
)
def test_python_of_ours_rests_while_one_with_stacks_records(
    pytorch: Pytorch, own: OwnProfile, calls: str, rests: list[bool]
) -> None:
    profiles = {name: Profile(pytorch, with_stack=name == "S") for name in "SAN"}
    profiler_calls: list[bool] = []
    own.changed = lambda phase: profiler_calls.append(own.records_python)
    observed_rests = []
    for call in calls.split():
        name, _, method = call.partition(".")
        getattr(profiles[name], method)()
        observed_rests.append(own.records_python)
    assert observed_rests == rests
    assert profiler_calls == [rests[number] for number, call in enumerate(calls.split()) if not call.startswith("N")]


def test_what_pytorch_returns_and_raises_is_the_jobs(pytorch: Pytorch, own: OwnProfile) -> None:
    profile = Profile(pytorch)
    assert profile.prepare() == "config!"
    profile.start()
    profile.stop()
    pytorch.fails = True
    with pytest.raises(RuntimeError, match="no"):
        profile.prepare()
    assert own.phase == IDLE


def test_a_fault_of_ours_is_not_the_jobs(pytorch: Pytorch, own: OwnProfile) -> None:
    own.before_begin = own.changed = lambda *_: 1 / 0  # type: ignore[assignment]
    profile = Profile(pytorch)
    assert profile.prepare() == "config!"
    profile.start()
    profile.stop()
    assert own.phase == IDLE


def test_ours_runs_only_while_the_jobs_does_not_and_leaves_no_mark(pytorch: Pytorch, own: OwnProfile) -> None:
    calls: list[str] = []
    own.changed = calls.append
    ours, theirs = Profile(pytorch), Profile(pytorch)

    def run() -> bool:
        for method in KINETO:
            getattr(ours, method)()
        return True

    assert own.run_alone(run)
    # That a profile is on or off is what the job's code asks: of its own alone.
    assert (pytorch.calls, own.phase, calls) == (["prepare"], IDLE, [])
    for method, is_free in zip(KINETO, (False, False, True), strict=True):
        getattr(theirs, method)()
        assert own.run_alone(lambda: True) is is_free
    assert calls == [WARMUP, ACTIVE, IDLE]


def test_a_profile_of_the_jobs_waits_for_ours(pytorch: Pytorch, own: OwnProfile) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def run() -> bool:
        inside.set()
        assert go_on.wait(30)
        pytorch.calls.append("ours is over")
        return True

    ours = threading.Thread(target=own.run_alone, args=(run,))
    ours.start()
    assert inside.wait(30)
    attempt = threading.Event()
    own.before_begin = attempt.set
    theirs = threading.Thread(target=Profile(pytorch).prepare)
    theirs.start()
    assert attempt.wait(30)
    go_on.set()
    ours.join()
    theirs.join()
    assert pytorch.calls == ["ours is over", "prepare"]
    assert own.phase == WARMUP


def test_a_forked_child_does_not_wait_for_what_its_parent_held(pytorch: Pytorch, own: OwnProfile) -> None:
    def fork() -> bool:
        own.abandon()
        child = threading.Thread(target=Profile(pytorch).prepare)
        child.start()
        child.join(30)
        return not child.is_alive()

    assert own.run_alone(fork)


def test_a_pytorch_of_another_make_is_left_as_it_is() -> None:
    other: Any = SimpleNamespace(_prepare_profiler=print)
    own = OwnProfile()
    own.observe(other)
    assert not own.is_observed
    assert vars(other) == {"_prepare_profiler": print}
