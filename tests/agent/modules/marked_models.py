"""Modules of every kind under marks, in a real PyTorch: prints, as JSON, what was marked and what became of the job."""

import json
import os
import threading
import warnings
from pathlib import Path
from typing import Any

import torch
from agent.modules import marked_sizes
from agent.modules.written_marks import Marked, Pair, Range, X, columns_of, is_clean, log_of
from fleetprof_agent.modules import marks as marks_module
from torch import nn
from torch.utils.checkpoint import checkpoint


class Fails(nn.Module):
    """Raises what it is given."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise self.error


class Catches(nn.Module):
    """Goes on after an exception inside."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.inner, self.after = nn.Sequential(Fails(error)), nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            self.inner(x)
        except BaseException as error:
            self.caught = error
        return self.after(x)


class Counts(nn.Module):
    """Calls itself."""

    def forward(self, x: torch.Tensor, times: int = 2) -> torch.Tensor:
        return self(x, times - 1) if times else x


class Makes(nn.Module):
    """Makes a module for each call, and hides its own names."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.Sequential(nn.Identity())(x)

    def named_modules(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("of the job")


class Watches(torch.overrides.TorchFunctionMode):
    """A mode of the job: it sees each of its own calls."""

    calls = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


def caught(error: BaseException) -> list[str]:
    """The marks around an exception, which is what it was."""
    module = Catches(error)
    log = log_of(module)
    assert module.caught is error
    return log


def threads() -> Any:
    """Two threads at once."""
    pair = Pair()
    with Marked():
        running = [threading.Thread(target=pair, args=(X,)) for _ in range(2)]
        for one in running:
            one.start()
        for one in running:
            one.join()
    return sorted(Range.log[2:-2])


def directly() -> Any:
    """`forward` without a call."""
    pair = Pair()
    with Marked():
        pair.forward(X)
    return Range.log[2:-2]


def two_roots() -> Any:
    """Two models of one class, and a replica of the first."""
    one, other = nn.Linear(4, 4), nn.Linear(4, 4)
    with Marked():
        other(one(X))
        one(X)
    return Range.log[2:-2]


def replicas() -> Any:
    """The replicas that DataParallel runs on two devices."""
    model = nn.Sequential(nn.Identity())
    with Marked():
        for _ in range(2):
            model._replicate_for_data_parallel()(X)
    return Range.log[2:-2]


def again(reentrant: bool) -> Any:
    """Checkpointed, with gradients as without marks."""
    pair = nn.Sequential(Pair())

    def train() -> Any:
        pair.zero_grad()
        checkpoint(pair, X.clone().requires_grad_(), use_reentrant=reentrant).sum().backward()
        return [parameter.grad.tolist() for parameter in pair.parameters()]

    before = train()
    with Marked():
        assert train() == before
    log = Range.log[2:-2]
    assert sorted(one[1:] for one in log if one[0] == "+") == sorted(one[1:] for one in log if one[0] == "-")
    return log.count("+Sequential.0.a")


def train(marked: bool) -> Any:
    """A training with noise: bit for bit."""
    torch.manual_seed(1)
    model = nn.Sequential(Pair(), nn.Dropout(0.5), nn.BatchNorm1d(4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(4):
        marks = Marked() if marked and number == 2 else None
        if marks is not None:
            marks.__enter__()
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().sum().backward()
        optimizer.step()
        if marks is not None:
            marks.marks.read_optimizer(optimizer)
            marks.__exit__()
            marks.marks.weigh()
    return [value.tolist() for value in model.state_dict().values()]


def modes() -> Any:
    """A mode of the job sees no call of ours."""
    pair = Pair()
    with Watches() as bare:
        pair(X)
    with Marked(), Watches() as watched:
        pair(X)
    return watched.calls == bare.calls


def stopped() -> Any:
    """After the end of the capture, before the next step."""
    pair = Pair()
    with Marked() as marks:
        pair(X)
        count = len(Range.log)
        marks.stop()
        pair(X)
        return [len(Range.log) - count, is_clean()]


def forked() -> Any:
    """A child does nothing, and its parent goes on."""
    pair = Pair()
    with Marked() as marks:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            marks.stop()  # agent.abandon
            pair(X)
            os.write(write, json.dumps([Range.log[2:], is_clean()]).encode())
            os._exit(0)
        os.waitpid(child, 0)
        of_child = json.loads(os.read(read, 1000))
        pair(X)
        return [of_child, len(Range.log[2:])]


def broken() -> Any:
    """An error of ours."""
    pair = Pair()

    def fail(*_: Any) -> None:
        raise ValueError("ours")

    with Marked() as marks:
        marks.table.meet = fail  # type: ignore[assignment, method-assign]
        pair(X)
        pair(X)
        return [marks.is_on, is_clean()]


def compiled(backend: str = "eager") -> Any:
    """Compiled before: no graph is made again, and nobody is warned."""
    from torch._dynamo.utils import counters

    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = Pair(), Pair()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.one(x)
            torch._dynamo.graph_break()
            return self.two(x)

    whole, broken = torch.compile(Pair(), backend=backend), torch.compile(Broken(), backend=backend)
    for model in (whole, broken) * 2:
        model(X)
    before = dict(counters["stats"])
    with Marked() as marks:
        for model in (whole, broken):
            model(X)
        assert marks.is_on
    whole(X), broken(X)
    assert dict(counters["stats"]) == before, (before, counters["stats"])
    return [one for one in Range.log[2:-2] if one[0] == "+"]


def compiled_meanwhile() -> Any:
    """The first compilation ends the marks, so that it knows nothing of them."""

    class Fresh(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.a(x).relu()

    model = nn.Sequential(nn.Identity(), torch.compile(Fresh(), backend="eager", fullgraph=True))
    with Marked() as marks:
        result = model(X)
        is_on = marks.is_on
    assert torch.equal(result, model(X))
    return [is_on, list(Range.log)]


def described() -> Any:
    """The messages about the modules."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.cells = nn.LSTM(4, 4, batch_first=True)
            self.b = nn.Sequential(self.a)

        def forward(self, x: torch.Tensor) -> Any:
            return {"out": self.b(self.a(x)), "state": [self.cells(x[None]), 3, None]}

    model = Tied()
    with Marked() as marks:
        model(X)
    marks.weigh()
    columns = columns_of(marks)
    columns["file"] = [os.path.basename(file) for file in columns["file"]]
    columns["call_file"] = [os.path.basename(file) for file in columns["call_file"]]
    source = Path(__file__).read_text().splitlines()
    columns["call_text"] = [source[line - 1].strip() for line in columns.pop("call_line")]
    return {name: values for name, values in columns.items() if name in DESCRIBED}


DESCRIBED = {
    "first",
    "name",
    "class_name",
    "file",
    "call_file",
    "call_text",
    "calls",
    "parameter_bytes",
    "output_bytes",
}


def scripted() -> Any:
    """A ScriptModule is calls from outside."""
    return log_of(nn.Sequential(torch.jit.script(nn.Linear(4, 4))))


CASES = {
    "nested": lambda: log_of(Pair()),
    "exception": lambda: caught(ValueError("of the job")),
    "interrupted": lambda: caught(KeyboardInterrupt()),
    "recursion": lambda: log_of(Counts()),
    "made meanwhile": lambda: log_of(Makes()),
    "threads": threads,
    "directly": directly,
    "two roots": two_roots,
    "data parallel": lambda: log_of(nn.DataParallel(nn.Linear(4, 4))),
    "replicas": replicas,
    "checkpoint": lambda: again(False),
    "reentrant": lambda: again(True),
    "same numbers": lambda: train(True) == train(False),
    "modes": modes,
    "stopped": stopped,
    "forked": forked,
    "broken": broken,
    "compiled": compiled,
    "compiled meanwhile": compiled_meanwhile,
    "described": described,
    "scripted": scripted,
    **marked_sizes.CASES,
}


def main() -> None:
    """Runs every case."""
    warnings.filterwarnings("error", message="Using .torch.compile")
    torch.set_num_threads(1)
    found = {}
    for name, case in CASES.items():
        found[name] = case()
        assert is_clean(), name
        assert all(not stack for stack in marks_module._NEVER_ENDED), name
    print("FOUND " + json.dumps(found))


if __name__ == "__main__":
    main()
