"""An agent's words while PyTorch is being imported: nobody is to take its process for one without an agent."""

import subprocess
import sys
from pathlib import Path

import pytest
from fleetprof_sidecar.children.compress import TraceCheck, UnusableTrace
from harness.training import held_import
from harness.training.agent_ground import AgentGround
from harness.training.fake_torch import FAKE_TORCH, put

HELD = f"""
import os, sys
sys.path.append({str(Path(held_import.__file__).parent)!r})
import held_import
held_import.hold(os.environ["GO_ON"])
"""


@pytest.mark.torch
def test_a_process_says_that_it_imports_pytorch_before_kineto_asks_for_orders(
    ground: AgentGround, python: str, prelude: str, tmp_path: Path
) -> None:
    script = HELD + prelude + "model, optimizer = make()\nwhile not is_stopped(): iterate(model, optimizer)\n"
    job = ground.start(python, script, GO_ON=str(tmp_path / "go"), RANK="3", WORLD_SIZE="4")
    first = ground.side.await_message("hello")
    assert (first["role"], first["torch"], first["kineto"]) == ("waiting", "", "")
    assert (first["pid"], first["rank"], first["world_size"]) == (job.process.pid, 3, 4)
    assert ground.side.polls == []

    trace = TraceCheck()
    trace.feed(ground.side.order_soon("cap", duration_ms=100).read_bytes())  # in the middle of the import
    with pytest.raises(UnusableTrace) as refused:
        trace.finish()
    assert refused.value.reason == "EmptyTrace"
    assert len(ground.side.messages) == 1
    (tmp_path / "go").touch()

    loaded = ground.side.await_message("hello", lambda message: message["torch"])
    assert (loaded["role"], loaded["address"]) == ("waiting", first["address"])
    assert loaded["kineto"]
    assert ground.side.await_trainer()["address"] == first["address"]
    assert job.stop() == 0
    assert ground.agent_sockets() == []


LEFT = "import glob, os; print(len(glob.glob(os.environ['KINETO_IPC_SOCKET_DIR'] + '/fleetprofagent*')))"
FORK = "import os\nif not os.fork(): os._exit(0)\nos.wait()\n"


@pytest.mark.parametrize(
    ("changed", "code", "left"),
    [
        ({}, f"import torch; {LEFT}", 0),  # no Kineto: no orders reach it
        ({"torch/profiler.py": "raise OSError('libcudart')"}, f"try: import torch\nexcept OSError: {LEFT}", 0),
        ({"torch/__init__.py": "raise OSError('libtorch')"}, f"try: import torch\nexcept OSError: {LEFT}", 0),
        ({"torch/profiler.py": f"{FORK}{LEFT}\n"}, "import torch", 1),
        ({"torch/profiler.py": f"{LEFT}\nimport sys; sys.exit()"}, "import torch", 1),
        ({}, f"import importlib.util; importlib.util.find_spec('torch'); {LEFT}", 0),
        (
            {"torch/version.py": "__version__ = '2.7.1'\n", "torch/profiler.py": "raise OSError('libcudart')"},
            f"try: import torch\nexcept OSError: {LEFT}",
            0,
        ),
    ],
    ids=[
        "no Kineto",
        "an import fails late",
        "an import fails early",
        "a fork meanwhile",
        "an exit meanwhile",
        "only a look",
        "the import of a PyTorch that is too old fails",
    ],
)
def test_nobody_waits_for_an_agent_that_does_not_come(
    ground: AgentGround, changed: dict[str, str], code: str, left: int
) -> None:
    torch = put(ground.scratch / "fake", {**FAKE_TORCH, **changed})
    environment = ground.environment()
    environment["PYTHONPATH"] = f"{ground.directory}/agent:{torch}"
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert (result.stdout, result.stderr) == (f"{left}\n", "")
    assert ground.agent_sockets() == []


def test_a_pytorch_that_is_too_old_is_named(ground: AgentGround) -> None:
    version = "2.9.1+cu128"
    files = {"torch/version.py": f"__version__ = '{version}'\n", "torch/profiler.py": LEFT}
    environment = ground.environment()
    environment["PYTHONPATH"] = f"{ground.directory}/agent:{put(ground.scratch / 'fake', {**FAKE_TORCH, **files})}"
    code = "import importlib.util; importlib.util.find_spec('torch'); import torch"
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert (result.stdout, result.stderr) == ("1\n", "")
    hello = ground.side.await_message("hello")
    assert (hello["role"], hello["torch"], hello["kineto"]) == ("waiting", version, "")
    assert ground.agent_sockets() == []
