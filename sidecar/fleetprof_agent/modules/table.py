"""The table of the modules that were called: names, classes, lines of code, sizes; each is sent once.

Guarantees: a module's name is that of `named_modules()` of its root, behind the root's class; a root is what was called
while no other module ran on its thread. One that no root names has its caller's name and its own class; one that two
parents share has its first name; replicas of DataParallel have one entry. Names are printable ASCII and bounded, as are
the modules; nothing of the job is kept alive, and none of its code is called. A size that PyTorch does not tell at once
is None. Sources: torch.nn.Module, torch.Tensor.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Any, Callable, Iterator

from fleetprof_agent.modules.forward_pass import ForwardPass
from fleetprof_agent.modules.held_bytes import OptimizerBytes, add, count_bytes
from fleetprof_agent.samples.cells import name_cell

MARK_PREFIX = "fleetprof."
MOST_MODULES = 4096
NAME_CHARACTERS = 160  # the end of a longer one
FILE_CHARACTERS = 160
MODULES_PER_CHUNK = 40  # of at most 800 bytes: below 32 KiB
DEEPEST_CALL = 80  # frames from a module to the line of the job that called it
MOST_VALUES = 64  # of what a module returns
COLUMNS = (
    "name", "class_name", "file", "line", "call_file", "call_line", "calls", "parameter_bytes", "gradient_bytes",
    "optimizer_bytes", "output_bytes", "saved_bytes", "rows", "indices",
)  # fmt: skip
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class ModuleEntry:
    """One module of the job. `title`: the name of its ranges."""

    __slots__ = (
        "call_file", "call_line", "calls", "held_bytes", "indices", "looks_up", "module", "name", "output_bytes",
        "rows", "saved_bytes", "title",
    )  # fmt: skip

    def __init__(self, number: int, name: str, module: Callable[[], Any], looks_up: bool) -> None:
        self.module = module
        self.name = name
        self.title = "%smodule:%d %s" % (MARK_PREFIX, number, name)
        self.call_file, self.call_line = "", 0
        self.calls = 0
        self.output_bytes: int | None = 0
        self.held_bytes: tuple[int | None, ...] = (None, None, None)  # parameters, gradients, optimizer's state
        self.saved_bytes = 0  # in the forward in which it saved most
        self.looks_up = looks_up  # it is an embedding
        self.rows: int | None = None  # of what a root was given, over all its forwards
        self.indices: int | None = None  # elements that an embedding was given


class ModuleTable:
    """By the module's identity, with a reference that says whether it is still this module's."""

    def __init__(self, torch: Any) -> None:
        self.entries: dict[int, tuple[Callable[[], Any], ModuleEntry]] = {}
        self._torch = torch
        self._graphs: Any = getattr(sys.modules.get("torch.fx.graph_module"), "GraphModule", ())
        self._named: dict[str, ModuleEntry] = {}
        self._torch_folder = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self._rows: list[tuple[Any, ...]] | None = None
        self._sent = 0
        self.optimizers = OptimizerBytes(torch)
        self._embedding: Any = torch.nn.Embedding
        self._knows_saved = True
        self._threads: set[int] = set()

    def begin_pass(self, root: ModuleEntry) -> ForwardPass | None:
        """A root is called; None in backward, where it runs again."""
        if self._torch._C._current_graph_task_id() != -1:
            return None
        self._threads.add(threading.get_ident())
        return ForwardPass(self._torch, root)

    def end_pass(self, current: ForwardPass, output: Any) -> None:
        """It has returned: counts what is saved for backward, where it is this thread's alone."""
        self._knows_saved = self._knows_saved and self._threads == {current.thread}
        if not self._knows_saved:
            return
        saved = current.read_saved(output, self._list_storages())
        self._knows_saved = saved is not None
        for entry, count in (saved or {}).items():
            entry.saved_bytes = max(entry.saved_bytes, count)

    def forget_saved(self) -> None:
        """The bytes that are saved for backward cannot be known."""
        self._knows_saved = False

    def weigh(self) -> None:
        """Counts what each module's own parameters hold."""
        counted: set[int] = set()
        with self._torch._C.DisableTorchFunction():
            for entry in self._named.values():
                module = entry.module()
                if module is not None:
                    entry.held_bytes = self._weigh(module, counted)

    def _weigh(self, module: Any, counted: set[int]) -> tuple[int | None, ...]:
        parameters: int | None = 0
        gradients: int | None = 0
        state: int | None = 0
        for parameter in list((module.__dict__.get("_parameters") or {}).values()):
            if parameter is None or id(parameter) in counted:
                continue
            counted.add(id(parameter))
            gradient, of_optimizer = self.optimizers.of(parameter)
            parameters = add(parameters, count_bytes(self._torch, parameter))
            gradients, state = add(gradients, gradient), add(state, of_optimizer)
        return parameters, gradients, state

    def _list_storages(self) -> set[int]:
        """The bytes of all parameters and buffers, by their address."""
        storages = set()
        with self._torch._C.DisableTorchFunction():
            for reference, _ in list(self.entries.values()):
                module = reference()
                for name in ("_parameters", "_buffers"):
                    for tensor in list(({} if module is None else module.__dict__.get(name) or {}).values()):
                        if tensor is not None and count_bytes(self._torch, tensor):
                            storages.add(getattr(tensor, "_local_tensor", tensor).untyped_storage().data_ptr())
        return storages

    def meet(self, module: Any, caller: ModuleEntry | None) -> ModuleEntry | None:
        """The entry of a module that is not known, or is called for the first time; None where there are too many."""
        known = self.entries.get(id(module))
        if known is None or known[0]() is not module:
            self._add(module, caller)
            known = self.entries.get(id(module))
            if known is None or known[0]() is not module:
                return None
        entry = known[1]
        if not entry.call_line:
            entry.call_file, entry.call_line = self._find_caller()
        return entry

    def add_output(self, entry: ModuleEntry, output: Any) -> None:
        """Counts the bytes of what a module returned."""
        if entry.output_bytes is None:
            return
        tensor, total, values = self._torch.Tensor, 0, [output]
        with self._torch._C.DisableTorchFunction():
            for value in values:  # grows meanwhile
                if type(value) is tensor:
                    total += value.nbytes
                elif isinstance(value, (tuple, list)) and len(values) < MOST_VALUES:
                    values.extend(tuple.__iter__(value) if isinstance(value, tuple) else list.__iter__(value))
                elif isinstance(value, dict) and len(values) < MOST_VALUES:
                    values.extend(dict.values(value))
                elif value is not None and type(value) not in (bool, int, float, str):
                    entry.output_bytes = None  # another kind of tensor, or of structure
                    return
        entry.output_bytes += total

    def flush(self, send: Callable[..., bool]) -> bool:
        """Sends what has not been sent as "modules"; False when something is left. Outside the job's steps."""
        if self._rows is None:
            listed = [entry for entry in self._named.values() if entry.calls or any(entry.held_bytes)]
            self._rows = [self._describe(entry) for entry in listed]
        while self._sent < len(self._rows):
            some = self._rows[self._sent : self._sent + MODULES_PER_CHUNK]
            columns = {name: [row[at] for row in some] for at, name in enumerate(COLUMNS)}
            if not send("modules", first=self._sent, **columns):
                return False
            self._sent += len(some)
        return True

    def _add(self, module: Any, caller: ModuleEntry | None) -> None:
        kind = type(module).__name__
        if caller is not None and isinstance(module, self._graphs):
            return  # compiled code, as a module that no model has
        if caller is not None:
            root = caller.name + ".(" + kind + ")"
        elif module.__dict__.get("_is_replica") is True:
            root = kind
        else:
            root = kind
            number = 2
            while _clean(root) in self._named:
                root = "%s#%d" % (kind, number)
                number += 1
        for path, part in _walk(module):
            if len(self.entries) >= MOST_MODULES:
                return
            known = self.entries.get(id(part))
            if known is not None and known[0]() is part:
                continue
            reference = weakref.ref(part)
            name = _clean(root + "." + path if path else root)
            entry = self._named.get(name)
            if entry is None:
                entry = ModuleEntry(len(self._named), name, reference, isinstance(part, self._embedding))
                self._named[name] = entry
            self.entries[id(part)] = reference, entry

    def _find_caller(self) -> tuple[str, int]:
        frame: Any = sys._getframe(1)
        for _ in range(DEEPEST_CALL):
            frame = frame.f_back
            if frame is None:
                break
            file = frame.f_code.co_filename
            if not file.startswith((_OURS, self._torch_folder)):
                return _name_file(file), frame.f_lineno or 0
        return "", 0

    def _describe(self, entry: ModuleEntry) -> tuple[Any, ...]:
        module = entry.module()
        kind, file, line = "", "", 0
        if module is not None:
            kind = _clean(type(module).__name__)
            file, line = _find_definition(type(module))
        places = file, line, entry.call_file, entry.call_line
        saved_bytes = entry.saved_bytes if self._knows_saved else None
        sizes = *entry.held_bytes, entry.output_bytes, saved_bytes
        return (entry.name, kind, *places, entry.calls, *sizes, entry.rows, entry.indices)


def _walk(root: Any) -> Iterator[tuple[str, Any]]:
    """Names and modules, a module before those in it; as `named_modules`, which a job may have made its own."""
    waiting = [("", root)]
    seen: set[int] = set()
    while waiting:
        path, module = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield path, module
        # A ScriptModule has none there.
        parts = module.__dict__.get("_modules") or {}
        named = [(path + "." + name if path else name, part) for name, part in parts.items() if part is not None]
        waiting.extend(reversed(named))


def _find_definition(kind: type) -> tuple[str, int]:
    """File and line of the class's `forward`."""
    code = getattr(getattr(kind, "forward", None), "__code__", None)
    return ("", 0) if code is None else (_name_file(code.co_filename), code.co_firstlineno)


def _name_file(file: str) -> str:
    return _clean(name_cell(file) or file[-FILE_CHARACTERS:])


def _clean(text: str) -> str:
    """Printable ASCII that no version of PyTorch has to escape."""
    safe = "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in text)
    return safe[-NAME_CHARACTERS:]
