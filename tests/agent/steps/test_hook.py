"""An exception of the job's that is raised in the middle of the hook reaches the job; one of ours never does."""

import functools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fleetprof_agent import channel, wire
from fleetprof_agent.channel import Channel
from fleetprof_agent.process import identity
from fleetprof_agent.steps.hook import StepHook
from fleetprof_agent.steps.ring import StepRing


class Preempted(Exception):
    """An exception of the job."""


class Handlers:
    """Handlers of many makes, as jobs have them."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def method(self, _number: int, _frame: Any) -> None:
        raise self.error

    def any_arguments(self, *_arguments: Any) -> None:
        raise self.error

    def once(self, number: int, _frame: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise self.error

    def through_others(self, number: int, frame: Any) -> None:
        self.any_arguments(number, frame)

    def with_more(self, _word: str, number: int, frame: Any) -> None:
        self.method(number, frame)

    def all(self) -> dict[str, Callable[[int, Any], None]]:
        chained = lambda number, frame: self.method(number, frame)  # noqa: E731
        return {
            "method": self.method,
            "any arguments": self.any_arguments,
            "once": self.once,
            "through others": self.through_others,
            "partial": functools.partial(self.with_more, "word"),
            "lambda": chained,
        }


@pytest.fixture
def usual_handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGUSR1)
    yield
    signal.signal(signal.SIGUSR1, before)


def make_hook(serve: Callable[[], object], step: Callable[[], int] = lambda: 5) -> tuple[Any, list[str], StepHook]:
    failures: list[str] = []

    def serve_now(_optimizer: Any, _now: int) -> None:
        serve()

    hook = StepHook(StepRing(), step, serve_now, lambda: failures.append("failed"))
    return hook._record_step, failures, hook


def interrupt() -> int:
    signal.raise_signal(signal.SIGUSR1)
    return 5


def interrupt_as_system_call(*_arguments: Any) -> int:
    """Stands for a call that is a method in C: the handler runs right behind it."""
    return interrupt()


@pytest.mark.attack
@pytest.mark.usefixtures("usual_handler")
@pytest.mark.parametrize(
    "error", [Preempted, TimeoutError, ValueError, RuntimeError, AttributeError, KeyboardInterrupt]
)
@pytest.mark.parametrize("handler", Handlers(Preempted).all())
def test_what_a_signal_handler_raises_reaches_the_job(handler: str, error: type[BaseException], tmp_path: Path) -> None:
    signal.signal(signal.SIGUSR1, Handlers(error).all()[handler])
    ours = Channel(str(tmp_path))
    try:
        for where in ("in the step", "in the service", "in a call that may fail", "in a look at the job"):
            step, failures, _ = _interrupted(where, ours)
            signal.signal(signal.SIGUSR1, Handlers(error).all()[handler])
            with pytest.raises(error):
                step(object(), (), {})
            assert failures == [], where
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        ours.close()


def _interrupted(where: str, ours: Channel) -> tuple[Any, list[str], StepHook]:
    if where == "in the step":
        return make_hook(lambda: None, interrupt)
    if where == "in the service":
        return make_hook(interrupt)
    if where == "in a call that may fail":
        ours._socket.close()
        ours._socket = _Interrupted()  # type: ignore[assignment]
        ours._is_ours = lambda: True  # type: ignore[method-assign]
        return make_hook(lambda: ours.send("steps"))
    return make_hook(lambda: identity.read_device(_Torch(), object()))


class _Interrupted:
    def sendto(self, *_arguments: Any) -> int:
        return interrupt_as_system_call()

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        pass

    def detach(self) -> int:
        return -1


class _Torch:
    @property
    def cuda(self) -> Any:
        interrupt()
        return None


@pytest.mark.parametrize("error", [Preempted, TimeoutError, ValueError, AttributeError])
def test_what_we_call_keeps_its_errors_to_us(error: type[Exception]) -> None:
    """A clock that the job has replaced, say, and that raises an exception of the job's."""

    def fail() -> int:
        raise error

    for step, failures, _ in (make_hook(fail), make_hook(lambda: None, fail)):
        step(object(), (), {})
        assert failures == ["failed"]


def test_an_exception_that_is_set_from_outside_reaches_the_job() -> None:
    step, failures, _ = make_hook(lambda: None)
    code = step.__code__
    injected = Preempted()
    injected.__traceback__ = None
    from fleetprof_agent import errors

    with pytest.raises(Preempted):
        errors.pass_on(injected)
    errors.pass_on(ValueError())
    assert (failures, code.co_name) == ([], "record_step")


DAEMON = """
import os, socket, sys
from fleetprof_agent.channel import Channel
ours = Channel(sys.argv[1])
number = ours._socket.fileno()
os.closerange(3, 256)
kind = getattr(socket, sys.argv[2])
pairs = [socket.socketpair(socket.AF_UNIX, kind) for _ in range(8)]
assert number in [end.fileno() for pair in pairs for end in pair]
for end, _ in pairs:
    end.send(b"0123456789")
for _, end in pairs:
    end.send(b"0123456789")
ours.wait(0), ours.receive(), ours.send("steps"), ours.wake(), ours.close()
print([end.recv(100) == b"0123456789" for pair in pairs for end in pair])
"""


@pytest.mark.attack
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_SEQPACKET"])
def test_a_job_that_closes_all_descriptors_keeps_what_comes_in_on_its_own(kind: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", DAEMON, str(tmp_path), kind], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.stdout, ran.stderr) == (f"{[True] * 16}\n", "")


def test_the_socket_of_the_agent_is_heard_as_before(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sidecar:
        sidecar.bind(str(tmp_path / wire.SIDECAR_SOCKET))
        ours = Channel(str(tmp_path))
        sidecar.sendto(json.dumps({"v": wire.VERSION, "t": "query"}).encode(), ours.path)
        assert [command["t"] for command in ours.receive()] == ["query"]
        assert ours.send("bye", capture="", reason="exit")
        ours.close()
    assert not os.path.exists(ours.path)
    assert channel.MAX_COMMANDS == 16


def test_a_step_is_followed_until_nobody_follows_and_never_while_the_hook_rests() -> None:
    """The place where PyTorch holds the hook, and the agent's changes of it."""
    calls: list[str] = []
    hooks: dict[int, Any] = {}

    class Optimizers:
        _global_optimizer_post_hooks = hooks

        @staticmethod
        def register_optimizer_step_post_hook(hook: Any) -> Any:
            hooks[7] = hook
            return type("Handle", (), {"id": 7})

    _, failures, hook = make_hook(lambda: None)
    hook.register(Optimizers)

    def fail(_optimizer: object) -> None:
        calls.append("failed")
        raise ValueError

    def make_step() -> None:
        calls.append("step")
        hooks[7]("SGD", (), {})

    hook.follow(lambda optimizer: calls.append(f"observed {optimizer}"))
    make_step()
    hook.rest()
    hook.follow(lambda _: calls.append("observed after the rest"))
    assert hooks[7] is slice
    hook.resume()
    make_step()
    hook.follow(fail)
    make_step()
    make_step()  # what failed follows no more
    assert calls == ["step", "observed SGD", "step", "observed after the rest", "step", "failed", "step"]
    assert failures == []
    hook.give_up()
    hook.follow(lambda _: calls.append("after all"))
    make_step()
    assert calls[-1] == "step"
