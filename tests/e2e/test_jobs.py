"""Jobs of every make: what is captured is whole iterations of the trainer, and nobody else is given a config."""

import sys

import pytest
from harness.training.local_system import Local, outcome

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("arguments", "iterations", "ranks"),
    [
        (("--optimizers", "2"), 3, 2),
        (("--optimizers", "3"), 2, 1),
        (("--accumulate", "4", "--pause", "0.05"), 3, 1),
        (("--workers", "fork"), 3, 1),
        (("--workers", "spawn"), 3, 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_whole_iterations(hub: Local, arguments: tuple[str, ...], iterations: int, ranks: int) -> None:
    job = hub.run("".join(filter(str.isalnum, "".join(arguments))), *arguments, ranks=ranks)
    job.await_steps()
    uid = hub.submit(job.name, iterations=iterations)

    status = hub.await_end(uid)

    assert outcome(status) == ("True", "Complete"), str(status)
    report = hub.report(uid)
    assert [len(rank.iterations) for rank in report.ranks] == [iterations] * ranks
    assert len({tuple(i.index for i in rank.iterations) for rank in report.ranks}) == 1
    assert job.stop() == 0


def test_two_optimizers_are_captured_from_their_first_iterations(hub: Local) -> None:
    """Their steps are close together and iterations are not: until that is known, nobody can foretell a step."""
    job = hub.run("fromthefirst", "--optimizers", "2", "--pause", "0.3", ranks=1)
    uid = hub.submit(job.name, iterations=2)

    status = hub.await_end(uid)

    assert outcome(status) == ("True", "Complete"), str(status)
    (rank,) = hub.report(uid).ranks
    assert len(rank.iterations) == 2
    assert job.stop() == 0


def test_no_optimizer_step_is_captured_by_a_window_in_time(hub: Local) -> None:
    job = hub.run("plain", "--no-optimizer", ranks=1)
    job.await_steps(agents=0)
    uid = hub.submit("plain", window={"durationMillis": 500})

    status = hub.await_end(uid)

    assert status.start_mode == "time"
    assert outcome(status)[0] == "True", str(status)
    assert job.stop() == 0


def test_isolated_python_is_captured_by_time(hub: Local) -> None:
    job = hub.run("isolated", ranks=1, python_flags=("-I",))
    job.await_steps(agents=0)
    uid = hub.submit("isolated", iterations=3)

    status = hub.await_end(uid)

    assert status.start_mode == "time"
    assert outcome(status)[0] == "True", str(status)
    assert job.stop() == 0


def test_a_command_without_torch_is_left_alone(hub: Local) -> None:
    result = hub.command("run", "--name", "other", "--", sys.executable, "-c", "raise SystemExit(23)")

    assert result.returncode == 23, result.stderr
