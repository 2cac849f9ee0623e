"""The sizes that marked modules are told with: parameters, gradients, what is saved for backward, rows."""

import threading
from typing import Any

import torch
from agent.modules.written_marks import Marked, Pair, X, columns_of
from torch import nn
from torch.utils.checkpoint import checkpoint

SIZES = ("name", "calls", "parameter_bytes", "gradient_bytes", "optimizer_bytes", "saved_bytes", "rows", "indices")


class Words(nn.Module):
    """Tied weights, a parameter outside of any call, a layer that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.layer, self.frozen = nn.Linear(4, 4), nn.Linear(4, 4).requires_grad_(False)
        self.norm = nn.BatchNorm1d(4)
        self.scales = nn.ParameterList([torch.ones(4)])
        self.out = nn.Linear(4, 10, bias=False)
        self.out.weight = self.table.weight

    def forward(self, *, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        values = self.table(ids).mean(1) * self.scales[0]
        return {"loss": self.out(self.norm(self.frozen(self.layer(values))).exp()).sum()}


def sizes_of(step: Any, *optimizers: torch.optim.Optimizer) -> Any:
    """The words of an iteration: a row for each module, sizes as in SIZES."""
    with Marked() as marks:
        step()
    for optimizer in optimizers:
        optimizer.step()
        marks.read_optimizer(optimizer)
    marks.weigh()
    columns = columns_of(marks)
    return [[columns[name][at] for name in SIZES] for at in range(len(columns["name"]))]


def weighed() -> Any:
    """Two forwards before the step, of which the second has more rows."""
    model = Words()
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        for rows in (2, 3):
            model(ids=torch.zeros(rows, 5, dtype=torch.int64))["loss"].backward()

    return sizes_of(step, optimizer)


def weighed_again() -> Any:
    """The hooks of the job hide what they hold: a checkpoint's inside is computed again."""
    pair = Pair()
    values = X.clone().requires_grad_()

    class Holds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pair = pair

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.pair, x.exp(), use_reentrant=False)

    model = Holds()
    return sizes_of(lambda: model(values).sum().backward(), torch.optim.SGD(pair.parameters(), lr=0.1))


class Keeps(torch.autograd.Function):
    """Needs the very parameter that it saved, as fused gradients do."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        x, weight = ctx.saved_tensors
        weight.main_grad += x.T @ gradient
        return gradient @ weight.T, None


class Fuses(nn.Module):
    """Adds gradients into a buffer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))
        self.weight.main_grad = torch.zeros(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Keeps.apply(x, self.weight)


def fused() -> Any:
    """A Function of the job gets what it saved; so do its own hooks and transforms."""
    model = Fuses()
    packed: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> int:
        packed.append(tensor)
        return len(packed) - 1

    def step() -> None:
        values = X.clone().requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(pack, packed.__getitem__):
            model.weight.sum().exp()
        model(values * 1).sum().backward()
        torch.func.grad(lambda x: x.exp().sum())(X)

    rows = sizes_of(step)
    return [rows, len(packed) > 0, model.weight.main_grad.sum().item()]


def unknown() -> Any:
    """On two threads nobody can tell which of them saved."""
    pair = Pair()

    def step() -> None:
        one = threading.Thread(target=lambda: pair(X))
        one.start()
        one.join()
        pair(X)

    return sizes_of(step)


CASES = {"weighed": weighed, "weighed again": weighed_again, "fused": fused, "unknown": unknown}
