"""Waits for PyTorch without importing it: the agent begins when the job itself has imported `torch.profiler`.

`import torch` imports `torch.profiler`, whose last act is to register Kineto's own optimizer hook; ours is registered
right after, so that it sees the step count after Kineto has counted (PyTorch 2.13 and 2.15).
Guarantees: the module, its spec and its loader are what they would be without us; other finders are asked in their
order; an error of ours leaves the import as it was. Imports nothing but `sys`.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Optional

AWAITED = "torch.profiler"


def await_torch() -> None:
    """Has `begin` called when PyTorch has been imported; at once when it is there already. May be repeated."""
    module = sys.modules.get(AWAITED)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        begin()
    elif not any(isinstance(finder, ModuleFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, ModuleFinder(AWAITED, begin))


def begin() -> None:
    """Starts the agent. Never raises."""
    try:
        from fleetprof_agent import agent

        agent.start()
    except Exception:
        report_error()


def report_error() -> None:
    """Prints the exception that is being handled when FLEETPROF_AGENT_DEBUG asks for it; else nothing."""
    import os

    if os.environ.get("FLEETPROF_AGENT_DEBUG"):
        import traceback

        traceback.print_exc()


class ModuleFinder:
    """A finder for sys.meta_path that finds nothing itself, and calls `then` once `name` has been executed."""

    def __init__(self, name: str, then: "Callable[[], None]") -> None:
        self._name = name
        self._then = then
        self._asking = False

    def find_spec(
        self, fullname: str, path: "Optional[Sequence[str]]" = None, target: "Optional[ModuleType]" = None
    ) -> "Optional[ModuleSpec]":
        """The spec that the other finders give for the awaited module, its loader primed; None for all others."""
        if fullname != self._name or self._asking:
            return None
        self._asking = True
        try:
            # Those before us have been asked.
            for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
                find_spec = getattr(finder, "find_spec", None)
                if find_spec is None:
                    continue
                spec: Optional[ModuleSpec] = find_spec(fullname, path, target)
                if spec is not None:
                    self._prime(spec.loader)
                    return spec
            return None
        finally:
            self._asking = False

    def _prime(self, loader: "Any") -> None:
        # An attribute of the loader's instance, gone before the module runs: a wrapping loader would stay in the
        # module's __loader__ and break those who ask it for source, resources or its type.
        try:
            exec_module = loader.exec_module

            def execute(module: "ModuleType") -> None:
                if module.__name__ != self._name:
                    exec_module(module)
                    return
                del loader.exec_module
                exec_module(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                self._then()

            loader.exec_module = execute
        except Exception:
            report_error()
