"""One forward of a root while it is marked: the rows that it was given, and the bytes that it saved for backward.

Which module saved a tensor follows from the sequence numbers that autograd gave out while the module ran, and the graph
is read once, when the root returns. Guarantees: nothing is saved, hooked or unpacked here: what a hook of the job's
holds (activation checkpointing, offloading) is not looked at; each storage counts once, for the module that saved it
first; parameters, buffers and their views do not count. Where the graph is too large, or modules run on several
threads, nothing is told. Sources: torch.autograd.graph.Node, torch/csrc/autograd/saved_variable.h.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from typing import Any, Iterator

MOST_GRAPH_NODES = 100_000  # some hundred ms
MOST_VALUES = 64  # of what a module is given or returns
_SAVED = "_raw_saved_"


class ForwardPass:
    """From the call of a root to its return, on one thread; whoever calls modules notes each call and each return.

    `events`: (autograd's next number, the module whose operators take it). Raises AttributeError where PyTorch lacks
    what it needs.
    """

    __slots__ = ("_root", "_torch", "events", "next_number", "thread", "wants_rows")

    def __init__(self, torch: Any, root: Any) -> None:
        self._torch, self._root = torch, root
        self.next_number: Any = torch._C._autograd._get_sequence_nr
        self.events: list[tuple[int, Any]] = []
        self.wants_rows = True
        self.thread = threading.get_ident()

    def count_input(self, entry: Any, args: Any) -> None:
        """Counts rows for the root, by the first module that is given a tensor, and what an embedding looks up."""
        tensor = self._torch.Tensor
        for value in args:
            if type(value) is tensor:
                with self._torch._C.DisableTorchFunction():
                    shape = tuple(value.shape)
                    elements = value.numel()
                if shape:
                    if self.wants_rows:
                        self.wants_rows = False
                        self._root.rows = (self._root.rows or 0) + shape[0]
                    if entry.looks_up:
                        entry.indices = (entry.indices or 0) + elements
                return

    def read_saved(self, output: Any, held: set[int]) -> dict[Any, int] | None:
        """Bytes by entry; None where they cannot be told. `held`: storages that do not count."""
        saved: dict[Any, int] = {}
        numbers = [number for number, _ in self.events]
        first = numbers[0]
        with self._torch._C.DisableTorchFunction():
            waiting = [value.grad_fn for value in _find_tensors(self._torch.Tensor, output)]
            met: dict[int, Any] = {}
            names: dict[type, list[str]] = {}
            while waiting:
                node = waiting.pop()
                if node is None or id(node) in met:
                    continue
                number = node._sequence_nr()
                if number < first:
                    continue  # of an earlier graph
                met[id(node)] = node  # kept: another node would have its identity
                if len(met) > MOST_GRAPH_NODES:
                    return None
                waiting += [following for following, _ in node.next_functions]
            order = sorted(met.values(), key=lambda one: one._sequence_nr())
            for node in order:
                kind = type(node)
                if kind not in names:
                    names[kind] = [name for name in dir(node) if name.startswith(_SAVED)]
                if not names[kind]:
                    continue
                owner = self.events[bisect_right(numbers, node._sequence_nr()) - 1][1]
                for name in names[kind]:
                    count = self._count(getattr(node, name), held)
                    if count is None:
                        return None
                    saved[owner] = saved.get(owner, 0) + count
        return saved

    def _count(self, saved: Any, held: set[int]) -> int | None:
        total = 0
        for one in saved if isinstance(saved, (tuple, list)) else (saved,):
            if one is None or one.unpack_hook is not None:
                continue
            tensor = one.data
            if tensor is None:
                continue
            tensor = getattr(tensor, "_local_tensor", tensor)
            if type(tensor) not in (self._torch.Tensor, self._torch.nn.Parameter):
                return None
            around = tensor if tensor._base is None else tensor._base
            if around.is_leaf and around.requires_grad:
                continue
            if tensor.layout is not self._torch.strided:
                return None
            storage = tensor.untyped_storage()
            if storage.data_ptr() and storage.data_ptr() not in held:
                held.add(storage.data_ptr())
                total += storage.nbytes()
        return total


def _find_tensors(kind: Any, output: Any) -> Iterator[Any]:
    values = [output]
    for value in values:  # grows meanwhile
        if isinstance(value, kind):
            yield value
        elif isinstance(value, (tuple, list)) and len(values) < MOST_VALUES:
            values.extend(tuple.__iter__(value) if isinstance(value, tuple) else list.__iter__(value))
        elif isinstance(value, dict) and len(values) < MOST_VALUES:
            values.extend(dict.values(value))
