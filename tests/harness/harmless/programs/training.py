"""A small training that the programs of this folder change; the same result alone and with captures.

It goes on until its test says stop, and prints a result of its first iterations, which no capture may change.
"""

import hashlib
import os
import sys
import time
from collections.abc import Callable

import torch

LEAST = 100


class SteadyTraining:
    """A model, its optimizer and what has been done with them."""

    def __init__(
        self,
        make: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
        width: int = 16,
        least: int = LEAST,
        **options: object,
    ) -> None:
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.model = torch.nn.Linear(width, width)
        self.optimizer = make(self.model.parameters(), **({"lr": 1e-3} | options))
        self.width = width
        self.least = least
        self.iterations = 0
        self.digest = ""

    def backward(self) -> torch.Tensor:
        """Gradients of a random batch."""
        loss = self.model(torch.randn(4, self.width)).pow(2).mean()
        loss.backward()
        return loss

    def iterate(self, step: Callable[[], object] | None = None) -> None:
        """One iteration; `step` in place of the optimizer's."""
        self.backward()
        (step or self.optimizer.step)()
        self.optimizer.zero_grad()
        self.count()

    def count(self) -> None:
        """Notes that an iteration is over, and rests."""
        self.iterations += 1
        if self.iterations == self.least:
            self.digest = digest(self.model)
        if self.iterations == 5:
            tell_ready()
        time.sleep(0.01)

    def goes_on(self) -> bool:
        """Tells whether there is more to do."""
        return self.iterations < self.least or not is_stopped()

    def run(self) -> None:
        """All of it."""
        while self.goes_on():
            self.iterate()
        tell(self.digest)


def digest(model: torch.nn.Module) -> str:
    """Its parameters, to the last bit."""
    found = hashlib.sha256()
    for parameter in model.parameters():
        found.update(parameter.detach().numpy().tobytes())
    return found.hexdigest()[:16]


def is_stopped() -> bool:
    """Tells whether the test has seen enough; alone, a job is stopped from the beginning."""
    return os.path.exists(STOP)


def tell_ready() -> None:
    """Trains since some iterations."""
    open(READY, "w").close()


def tell(*values: object) -> None:
    """A line that has to be the same with captures and alone."""
    line = " ".join(["result", *map(str, values)])
    os.write(1, f"{line}\n".encode())  # at once: ranks share the stream


# Kept, because a program may empty its environment.
STOP, READY = os.environ["JOB_STOP"], os.environ["JOB_READY"]
BESIDE = "KINETO_IPC_SOCKET_DIR" in os.environ


def run_one(programs: dict[str, Callable[[], None]]) -> None:
    """The program that the command line names."""
    programs[sys.argv[1]]()
