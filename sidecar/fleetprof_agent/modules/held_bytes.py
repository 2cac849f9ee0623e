"""The bytes of parameters, of their gradients and of the optimizer's state on this rank, for each module's own.

Guarantees: exact, of tensors whose bytes are at hand (a part of a DTensor is the rank's own); a parameter that modules
share counts in the first of them; gradients are those at the end of their optimizer's step. Nothing is made or kept.
Sources: torch.optim.Optimizer.state, torch.Tensor.grad.
"""

from __future__ import annotations

from typing import Any

MOST_VALUES = 64  # of the state of one parameter


class OptimizerBytes:
    """The bytes that optimizers hold, by the identity of their parameters: (gradient, state), or None."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._known: dict[int, tuple[int | None, int | None]] = {}

    def read(self, optimizer: Any) -> None:
        """Counts those of one optimizer, at the end of its step."""
        state: Any = getattr(optimizer, "state", None)
        is_known = isinstance(state, dict)
        with self._torch._C.DisableTorchFunction():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    own = dict.get(state, parameter) if is_known else None
                    self._known[id(parameter)] = self.gradient_of(parameter), self._add_up(own) if is_known else None

    def of(self, parameter: Any) -> tuple[int | None, int | None]:
        """(gradient, state) of a parameter; one that no optimizer has stepped has no state."""
        known = self._known.get(id(parameter))
        return (self.gradient_of(parameter), 0) if known is None else known

    def gradient_of(self, parameter: Any) -> int | None:
        """The bytes of its gradient, 0 where it has none."""
        return self._count(parameter.grad) if parameter.is_leaf and parameter.grad is not None else 0

    def _add_up(self, state: Any) -> int | None:
        total, values = 0, [state]
        for value in values:  # grows meanwhile
            if isinstance(value, self._torch.Tensor):
                count = self._count(value)
                if count is None:
                    return None
                total += count
            elif isinstance(value, dict) and len(values) < MOST_VALUES:
                values.extend(dict.values(value))
            elif isinstance(value, (tuple, list)) and len(values) < MOST_VALUES:
                values.extend(value)
            elif value is not None and type(value) not in (bool, int, float, str):
                return None
        return total

    def _count(self, tensor: Any) -> int | None:
        return count_bytes(self._torch, tensor)


def count_bytes(torch: Any, tensor: Any) -> int | None:
    """The bytes of a dense tensor on this rank, None for another kind."""
    local = getattr(tensor, "_local_tensor", tensor)
    if type(local) not in (torch.Tensor, torch.nn.Parameter) or local.layout is not torch.strided:
        return None
    return int(local.nbytes)


def add(one: int | None, other: int | None) -> int | None:
    """The sum, None where one is not known."""
    return None if one is None or other is None else one + other
