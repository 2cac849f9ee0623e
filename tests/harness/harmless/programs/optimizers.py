"""Trainings whose optimizer, compiler, threads or workers are unusual."""

import copy
import io
import os
import pickle
import signal
import sys
import threading
import time
import tracemalloc

import torch
from torch.utils.data import DataLoader, TensorDataset
from training import LEAST, SteadyTraining, digest, run_one, tell, tell_ready


def ordinary() -> None:
    SteadyTraining(momentum=0.9).run()


def tracemalloc_5() -> None:
    # Under `-X tracemalloc` what is imported until then takes eight times as long, minutes on a busy machine.
    training = SteadyTraining(momentum=0.9)
    training.iterate()
    tracemalloc.start(5)
    training.run()
    tell(tracemalloc.get_traceback_limit())


def copied_and_pickled() -> None:
    training = SteadyTraining(torch.optim.AdamW)
    scheduler = torch.optim.lr_scheduler.StepLR(training.optimizer, 10)
    while training.goes_on():
        training.iterate()
        scheduler.step()
        if training.iterations % 7 == 0:
            copy.deepcopy((training.model, training.optimizer, scheduler))
            pickle.loads(pickle.dumps(training.optimizer))
            torch.save(training.optimizer, buffer := io.BytesIO())
            buffer.seek(0)
            torch.load(buffer, weights_only=False)
    tell(training.digest)


class OwnOptimizer(torch.optim.Optimizer):
    """A class of the job's."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.add_(parameter.grad, alpha=-group["lr"])


class Strange(OwnOptimizer):
    """It answers no question about itself."""

    def __eq__(self, other):
        raise RuntimeError("eq")

    def __hash__(self):
        raise RuntimeError("hash")

    def __bool__(self):
        raise RuntimeError("bool")

    def __repr__(self):
        raise RuntimeError("repr")

    def __getattribute__(self, name):
        if name in ("state_dict", "name"):
            raise RuntimeError(name)
        return super().__getattribute__(name)


def own_class() -> None:
    SteadyTraining(OwnOptimizer).run()


def answers_nothing() -> None:
    SteadyTraining(Strange).run()


def closures() -> None:
    training = SteadyTraining(torch.optim.LBFGS, lr=0.1, max_iter=4)
    batch = torch.randn(8, training.width)

    def evaluate():
        training.optimizer.zero_grad()
        loss = training.model(batch).sub(1).pow(2).mean()
        loss.backward()
        return loss

    while training.goes_on():
        training.optimizer.step(evaluate)
        training.count()
    tell(training.digest)


def _compile_step(whole: bool) -> None:
    training = SteadyTraining(lr=torch.tensor(0.01), momentum=0.9)
    step = torch.compile(training.optimizer.step, backend="eager", fullgraph=whole)
    while training.goes_on():
        training.iterate(step)
    tell(training.digest)


def compiled_step() -> None:
    _compile_step(False)


def compiled_step_in_one_graph() -> None:
    """Newer versions of PyTorch refuse it: then that must be all."""
    try:
        _compile_step(True)
    except Exception as refusal:
        tell_ready()
        tell(type(refusal).__name__)


def compiled_iteration() -> None:
    training = SteadyTraining(torch.optim.Adam)

    @torch.compile(backend="eager")
    def train(batch):
        training.model(batch).pow(2).mean().backward()
        training.optimizer.step()
        training.optimizer.zero_grad(set_to_none=True)

    while training.goes_on():
        train(torch.ones(4, training.width))
        training.count()
    tell(training.digest, torch._dynamo.utils.counters["stats"].get("unique_graphs"))


def threads() -> None:
    trainings = [SteadyTraining() for _ in range(4)]
    batch = torch.ones(4, 16)

    def work(training):
        while training.goes_on():
            training.model(batch).pow(2).mean().backward()
            training.optimizer.step()
            training.optimizer.zero_grad()
            training.count()

    workers = [threading.Thread(target=work, args=(training,)) for training in trainings]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    tell(*(training.digest for training in trainings))


def _end_child(kind: int, training: SteadyTraining) -> None:
    if kind == 0:
        os._exit(3)
    if kind == 1:
        sys.exit(4)
    if kind == 2:
        for _ in range(3):
            training.iterate()
        os._exit(5)
    if kind == 3:
        os.execv(sys.executable, [sys.executable, "-c", "import sys; sys.exit(6)"])
    os.kill(os.getpid(), signal.SIGKILL)


def forks() -> None:
    training = SteadyTraining()
    ends: dict[int, set[object]] = {}
    while training.goes_on():
        training.iterate()
        if training.iterations % 10 == 0:
            kind = training.iterations // 10 % 5
            if not (child := os.fork()):
                _end_child(kind, training)
            until = time.monotonic() + 20
            while not (found := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < until:
                time.sleep(0.01)
            ends.setdefault(kind, set()).add(found[1] if found[0] else "hangs")
            if not found[0]:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
    tell(training.digest, sorted((kind, sorted(map(str, found))) for kind, found in ends.items()))


def _load_with(start: str) -> None:
    training = SteadyTraining(least=12)  # workers that import PyTorch anew are slow
    while training.goes_on():
        data = TensorDataset(torch.ones(64, training.width))
        for (batch,) in DataLoader(data, batch_size=4, num_workers=1, timeout=60, multiprocessing_context=start):
            training.model(batch).pow(2).mean().backward()
            training.optimizer.step()
            training.optimizer.zero_grad()
            training.count()
    tell(training.digest)


def forked_workers() -> None:
    _load_with("fork")


def spawned_workers() -> None:
    _load_with("spawn")


def served_workers() -> None:
    _load_with("forkserver")


def error_in_the_closure() -> None:
    training = SteadyTraining()

    def fail():
        raise KeyError

    passed = 0
    while training.goes_on():
        training.iterate()
        if training.iterations % 5 == 0 and training.iterations <= LEAST:
            try:
                training.optimizer.step(fail)
            except KeyError:
                passed += 1
    tell(training.digest, passed)


def imported_in_a_thread() -> None:
    """This file has imported PyTorch already: a process of its own does it."""
    code = (
        "import threading, sys; t = threading.Thread(target=lambda: __import__('torch')); t.start(); t.join();"
        "sys.argv = ['', 'ordinary']; import optimizers; optimizers.ordinary()"
    )
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.dirname(__file__), os.environ.get("PYTHONPATH")]))
    os.execv(sys.executable, [sys.executable, "-c", code])


def deep_recursion() -> None:
    training = SteadyTraining()

    def descend(depth):
        if depth:
            return descend(depth - 1)
        return training.optimizer.step()

    training.backward()
    training.optimizer.step()
    deepest = 0
    while training.goes_on():
        training.iterate()
        if training.iterations == LEAST // 2:
            training.backward()
            deepest = 0
            for depth in range(900, 1000):
                try:
                    descend(depth)
                except RecursionError:
                    break
                deepest = depth
    tell(deepest > 0, digest(training.model) != "")


if __name__ == "__main__":
    run_one({name: value for name, value in list(globals().items()) if callable(value) and not name.startswith("_")})
