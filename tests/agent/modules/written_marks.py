"""Marks that are written down: what modules of tests are marked with, in a real PyTorch.

A mark is written down instead of being recorded: `+NAME` when it is entered, `-NAME` when it is left.
"""

import sys
from typing import Any, ClassVar

import torch
import torch.nn.modules.module as hooked
from fleetprof_agent.modules.marks import ModuleMarks
from torch import nn


class Range:
    """Stands for PyTorch's own; writes down what it is told."""

    log: ClassVar[list[str]] = []

    def __init__(self, title: str) -> None:
        self.name = title.partition(" ")[2]

    def __enter__(self) -> None:
        self.log.append("+" + self.name)

    def __exit__(self, *_: object) -> None:
        self.log.append("-" + self.name)


class Marked:
    """`with` it modules are marked."""

    def __enter__(self) -> ModuleMarks:
        Range.log.clear()
        self.marks = ModuleMarks(torch)
        self.marks._range = Range
        self.marks.begin()
        return self.marks

    def __exit__(self, *_: object) -> None:
        self.marks.end()


def is_clean() -> bool:
    """Tells whether nothing of ours is left in PyTorch."""
    dicts = (hooked._global_forward_hooks, hooked._global_forward_pre_hooks, hooked._global_forward_hooks_always_called)
    callback = sys.modules.get("torch._dynamo.callback")
    callbacks = callback.callback_handler.start_callbacks if callback is not None else []
    return not any(dicts) and not callbacks and hooked._has_any_global_hook.__module__ == hooked.__name__


class Pair(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x).relu())


X = torch.ones(2, 4)


def log_of(module: nn.Module, *more: Any) -> list[str]:
    """The marks of one call."""
    with Marked():
        module(X, *more)
    return Range.log[2:-2]


def columns_of(marks: ModuleMarks) -> dict[str, Any]:
    """The one message about the modules."""
    messages: list[dict[str, Any]] = []

    def send(_kind: str, **fields: Any) -> bool:
        messages.append(fields)
        return True

    marks.table.flush(send)
    (columns,) = messages
    return columns
