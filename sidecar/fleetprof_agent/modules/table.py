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
import weakref
from typing import Any, Callable, Iterator

from fleetprof_agent.samples.cells import name_cell

MARK_PREFIX = "fleetprof."
MOST_MODULES = 4096
NAME_CHARACTERS = 160  # the end of a longer one
FILE_CHARACTERS = 160
MODULES_PER_CHUNK = 40  # of at most 700 bytes: below 32 KiB
DEEPEST_CALL = 80  # frames from a module to the line of the job that called it
MOST_VALUES = 64  # of what a module returns
COLUMNS = ("name", "class_name", "file", "line", "call_file", "call_line", "calls", "parameter_bytes", "output_bytes")
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class ModuleEntry:
    """One module of the job. `title`: the name of its ranges."""

    __slots__ = ("call_file", "call_line", "calls", "module", "name", "output_bytes", "title")

    def __init__(self, number: int, name: str, module: Callable[[], Any]) -> None:
        self.module = module
        self.name = name
        self.title = "%smodule:%d %s" % (MARK_PREFIX, number, name)
        self.call_file, self.call_line = "", 0
        self.calls = 0
        self.output_bytes: int | None = 0


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
            called = [entry for entry in self._named.values() if entry.calls]
            self._rows = [self._describe(entry) for entry in called]
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
                entry = self._named[name] = ModuleEntry(len(self._named), name, reference)
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
        kind, file, line, parameter_bytes = "", "", 0, None
        if module is not None:
            kind = _clean(type(module).__name__)
            file, line = _find_definition(type(module))
            parameter_bytes = self._count_parameters(module)
        places = file, line, entry.call_file, entry.call_line
        return entry.name, kind, *places, entry.calls, parameter_bytes, entry.output_bytes

    def _count_parameters(self, module: Any) -> int | None:
        """The bytes of its own parameters on this rank, without those of modules in it."""
        total = 0
        for parameter in list((module.__dict__.get("_parameters") or {}).values()):
            if parameter is None:
                continue
            local = getattr(parameter, "_local_tensor", parameter)
            if type(local) not in (self._torch.Tensor, self._torch.nn.Parameter):
                return None
            total += local.nbytes
        return total


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
