"""Jobs in real interpreters that are started in a prepared socket directory, the agent in them."""

import os
import subprocess
import time
from pathlib import Path

from fleetprof_agent import wire
from fleetprof_sidecar.sockets.directory import trainer_environment

from harness.sidecar.agent_side import PATIENCE_S, SidecarSide
from harness.training.local_job import NO_COMPILER

PRELUDE = f"""\
import os, sys, time
sys.path.append({str(NO_COMPILER.parent)!r})
if os.environ.get("WITH_COMPILER") != "whole":
    import no_compiler
import torch

def is_stopped():
    return os.path.exists(os.environ["JOB_STOP"])

def iterate(model, *optimizers):
    for optimizer in optimizers:
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    time.sleep(0.02)

def make(kind=torch.optim.SGD):
    model = torch.nn.Linear(8, 8)
    return model, kind(model.parameters(), lr=0.01)

"""


class AgentProcess:
    """One started interpreter."""

    def __init__(self, process: "subprocess.Popen[str]", stop: Path, output: Path) -> None:
        self.process = process
        self._stop = stop
        self._output = output

    @property
    def output(self) -> str:
        """The text that it has written to stdout and stderr."""
        return self._output.read_text()

    def await_output(self, text: str) -> None:
        """Waits until `text` is in what it has written."""
        end = time.monotonic() + PATIENCE_S
        while text not in self.output:
            assert self.process.poll() is None, f"it ended: {self.output[-2000:]}"
            assert time.monotonic() < end, f"never wrote {text!r}: {self.output[-2000:]}"
            time.sleep(0.02)

    def stop(self) -> int:
        """Tells it to end as it means to, and returns its exit code."""
        self._stop.touch()
        return self.wait()

    def wait(self) -> int:
        """Its exit code."""
        return self.process.wait(PATIENCE_S)


class AgentGround:
    """A prepared socket directory in which jobs are started."""

    def __init__(self, directory: str, side: SidecarSide, scratch: Path) -> None:
        self.directory = directory
        self.side = side
        self.scratch = scratch
        self.jobs: list[AgentProcess] = []

    def environment(self, **more: str) -> dict[str, str]:
        """A trainer's, without what the tests' own environment would add."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "FLEETPROF", "KINETO", "COV_"))
            and name not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")
        }
        return trainer_environment(
            self.directory, inherited | {"OMP_NUM_THREADS": "1", "KINETO_LOG_LEVEL": "99"} | more
        )

    def start(self, python: str, script: str, *options: str, **environment: str) -> AgentProcess:
        """Starts `python [options] script`, the script's text given."""
        number = len(self.jobs)
        path = self.scratch / f"job{number}.py"
        path.write_text(script)
        stop, output = self.scratch / f"stop{number}", self.scratch / f"output{number}"
        with output.open("w") as log:
            process = subprocess.Popen(
                [python, *options, str(path)],
                env=self.environment(JOB_STOP=str(stop), **environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self.scratch,
                start_new_session=True,  # so that its children end with it, whatever happens
            )
        job = AgentProcess(process, stop, output)
        self.jobs.append(job)
        return job

    def agent_sockets(self) -> list[str]:
        """The agents' socket files that lie in the directory."""
        return sorted(path.name for path in Path(self.directory).glob(wire.AGENT_SOCKET_PREFIX + "*"))
