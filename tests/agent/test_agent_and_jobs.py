"""Jobs of every make: the agent is silent where it should be, and what goes wrong in it is not theirs."""

import pytest
from fleetprof_agent import wire
from harness.training.agent_ground import AgentGround

pytestmark = pytest.mark.torch


WORKERS = """
from torch.optim.optimizer import _global_optimizer_post_hooks

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000
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
            if is_stopped():
                break
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
def test_workers_are_silent(ground: AgentGround, python: str, prelude: str, method: str) -> None:
    side = ground.side
    job = ground.start(python, prelude + WORKERS, METHOD=method)
    side.await_message("steps", lambda message: message["step"] > 10)
    assert job.stop() == 0
    bye = side.await_message("bye")
    # A spawned worker imports PyTorch for itself.
    messages = [message for message in side.messages if method == "fork" or message.get("role") != wire.WAITING]
    assert {message["pid"] for message in messages} == {bye["pid"]} == {job.process.pid}
    assert len(side.of("bye")) == 1
    assert ground.agent_sockets() == []


@pytest.mark.parametrize("compiled", ["optimizer.step", "whole"])
def test_compiled_training_is_counted_once_and_not_recompiled(
    ground: AgentGround, python: str, prelude: str, compiled: str
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
print("compiled", torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0)
"""
    job = ground.start(python, prelude + script, COMPILED=compiled, TORCH_LOGS="recompiles", WITH_COMPILER="front")
    assert job.wait() == 0
    assert "steps 40" in job.output
    assert "compiled True" in job.output
    assert "fleetprof_agent" not in job.output
    assert ground.side.await_message("bye")


def test_error_of_ours_ends_the_agent_not_the_job(ground: AgentGround, newest: str, prelude: str) -> None:
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
    assert [message["role"] for message in ground.side.messages] == [wire.WAITING] * 2


def test_directory_that_takes_no_socket_of_ours_leaves_the_job_alone(
    ground: AgentGround, newest: str, prelude: str
) -> None:
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


def test_isolated_interpreter_trains_without_the_agent(ground: AgentGround, newest: str, prelude: str) -> None:
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
