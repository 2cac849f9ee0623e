"""The agent in real PyTorch processes: what it says of them, and when."""

import os

import pytest
from harness.training.agent_ground import AgentGround
from harness.training.agent_job import TRAIN

pytestmark = pytest.mark.torch


def test_first_step_says_who_steps_and_so_does_a_query(ground: AgentGround, newest: str, prelude: str) -> None:
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
    hellos = len(ground.side.of("hello"))
    ground.side.command("query")
    ground.side.await_message("hello", lambda _: len(ground.side.of("hello")) > hellos)
    assert job.stop() == 0
    assert ground.side.await_message("bye")["capture"] == ""
    assert ground.agent_sockets() == []
    assert job.output == ""


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
def test_steps_per_iteration(ground: AgentGround, newest: str, prelude: str, loop: str, per_iteration: int) -> None:
    script = f"""
model, optimizer = make()
other = torch.optim.Adam(model.parameters())
while not is_stopped():
    {loop}
"""
    job = ground.start(newest, prelude + script)
    message = ground.side.await_message("steps", lambda message: message["step"] > 80)
    assert message["per_iteration"] == per_iteration
    assert message["iteration_ns"] > 4_000_000
    assert job.stop() == 0


def test_job_without_an_optimizer_step_says_that_the_agent_is_there_and_no_more(
    ground: AgentGround, python: str, prelude: str
) -> None:
    script = "model, optimizer = make()\nmodel(torch.randn(4, 8)).sum().backward()\n"
    job = ground.start(python, prelude + script, RANK="3", LOCAL_RANK="1", WORLD_SIZE="4")
    assert job.wait() == 0
    _, hello = ground.side.messages  # before PyTorch's import and after it
    assert (hello["t"], hello["role"], hello["pid"]) == ("hello", "waiting", job.process.pid)
    assert (hello["rank"], hello["local_rank"], hello["world_size"], hello["restart_count"]) == (3, 1, 4, 0)
    assert hello["torch"].startswith("2.")
    (polled,) = {address for address, _ in ground.side.polls}
    assert polled == f"{ground.directory}/{hello['kineto']}"
    assert ground.agent_sockets() == []
    assert job.output == ""


@pytest.mark.parametrize(("steps", "sockets"), [(1, 0), (0, 1)], ids=["a step", "no step"])
def test_what_a_trainer_does_at_its_exit_comes_before_what_others_do(
    ground: AgentGround, newest: str, prelude: str, steps: int, sockets: int
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


def test_process_group_knows_the_rank_better_than_the_environment(
    ground: AgentGround, python: str, prelude: str
) -> None:
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
