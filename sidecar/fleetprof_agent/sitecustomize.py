"""Python imports this at start-up because PYTHONPATH names its folder: it awaits PyTorch, then loads the agent.

The agent (package `fleetprof_agent`) lies beside this file. It begins when the job itself has imported
`torch.profiler`: `import torch` does so, and the last act of that module is to register Kineto's own optimizer hook;
ours is registered right after, so that it sees the step count after Kineto has counted (PyTorch 2.13 and 2.15). That
PyTorch is on its way is said before `torch` itself runs, so before its libraries load.

Guarantees: imports nothing but what every interpreter has loaded by then, and torch never; does nothing unless the job
runs with Kineto's daemon mode in a socket directory, and with FLEETPROF_AGENT=0; whatever goes wrong in it is silent
(FLEETPROF_AGENT_DEBUG prints it). A PyTorch that the daemon mode could crash at start-up (before 2.10: pytorch#163545,
#112389) is spared: the mode is switched off before torch loads, the job cannot be captured, and the version that is the
reason is said. The awaited module, its spec and its loader are what they would be without us; other finders are asked
in their order. A `sitecustomize` further down sys.path is run as if it were the only one: it becomes the module of that
name, and its exceptions are Python's to report. Source: site.execsitecustomize (standard library).
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Optional

AWAITED = "torch.profiler"
OLDEST_TORCH = (2, 10)


def _await_torch() -> None:
    """Has the agent begin when PyTorch has been imported; at once when it is there already."""
    environ = os.environ
    if environ.get("FLEETPROF_AGENT") == "0":
        return
    if not environ.get("KINETO_IPC_SOCKET_DIR") or not environ.get("KINETO_USE_DAEMON"):
        return
    module = sys.modules.get(AWAITED)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        _tell("begin")
    elif not any(getattr(finder, "awaits_torch", False) for finder in sys.meta_path):
        sys.meta_path.insert(0, ModuleFinder())


def _spare_old_torch(init_file: str) -> str:
    """Switches Kineto's daemon mode off when the PyTorch of this `torch/__init__.py` is too old for it.

    Returns the version that is too old, "" for any other.
    """
    try:
        with open(os.path.dirname(init_file) + "/version.py") as file:
            text = file.read(4096)
        version = text.partition("__version__ = ")[2].partition("\n")[0].strip("'\"")
        if tuple(map(int, version.split(".")[:2])) < OLDEST_TORCH:
            os.environ.pop("KINETO_USE_DAEMON", None)
            return version
    except Exception:
        _report_error()  # a PyTorch that does not say which it is
    return ""


def _tell(what: str, *facts: str) -> None:
    """Calls this function of the agent's module `arrival`, wherever sys.path leads. Raises nothing of ours."""
    try:
        if "fleetprof_agent" not in sys.modules:
            from importlib.machinery import PathFinder
            from importlib.util import module_from_spec

            # Not from anywhere else on sys.path: on a machine with other users, what is here is the user's own.
            own = os.path.dirname(os.path.abspath(__file__))
            spec = PathFinder.find_spec("fleetprof_agent", [own]) if _is_closed(own) else None
            if spec is None or spec.loader is None:
                return  # somebody has taken it away: the job is traced without it
            sys.modules["fleetprof_agent"] = package = module_from_spec(spec)
            spec.loader.exec_module(package)
        from fleetprof_agent import arrival

        getattr(arrival, what)(*facts)
    except Exception as error:
        errors = sys.modules.get("fleetprof_agent.errors")
        if errors is not None:
            errors.pass_on(error)
        _report_error()


def _is_closed(folder: str) -> bool:
    """Tells whether only its owner can put anything there."""
    try:
        return not os.stat(folder).st_mode & 0o022
    except OSError:
        return False


def _report_error() -> None:
    if os.environ.get("FLEETPROF_AGENT_DEBUG"):
        import traceback

        traceback.print_exc()


class ModuleFinder:
    """A finder for sys.meta_path that finds nothing itself; it tells of PyTorch's import, its end and its failure."""

    awaits_torch = True  # a chain of sitecustomize may run this file twice: two finders would prime one loader
    _asking = False
    _too_old = ""  # the version of a PyTorch that is spared

    def find_spec(
        self, fullname: str, path: "Optional[Sequence[str]]" = None, target: "Optional[ModuleType]" = None
    ) -> "Optional[ModuleSpec]":
        """The spec that the other finders give for the two modules, its loader primed; None for all others.

        At `torch`, which comes first, its version is looked at as well.
        """
        if fullname not in ("torch", AWAITED) or self._asking:
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
                    if fullname == "torch" and spec.origin:
                        self._too_old = _spare_old_torch(spec.origin)
                    self._prime(spec.loader, fullname)
                    return spec
            return None
        finally:
            self._asking = False

    def _prime(self, loader: "Any", name: str) -> None:
        # An attribute of the loader's instance, gone before the module runs: a wrapping loader would stay in the
        # module's __loader__ and break those who ask it for source, resources or its type.
        try:
            exec_module = loader.exec_module

            def execute(module: "ModuleType") -> None:
                if module.__name__ != name:
                    exec_module(module)
                    return
                del loader.exec_module
                is_told = bool(os.environ.get("KINETO_USE_DAEMON") or self._too_old)
                if name == "torch" and is_told:
                    _tell("announce", self._too_old)
                try:
                    exec_module(module)
                except BaseException:
                    if is_told:
                        _tell("withdraw")
                    raise
                if name == AWAITED:
                    if self in sys.meta_path:
                        sys.meta_path.remove(self)
                    if os.environ.get("KINETO_USE_DAEMON"):
                        _tell("begin")

            loader.exec_module = execute
        except Exception:
            _report_error()


def _find_next() -> "Optional[ModuleSpec]":
    own = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if isinstance(entry, str)]
    for index in range(len(path) - 1, -1, -1):
        if os.path.abspath(path[index]) == own:
            path = path[index + 1 :]
            break
    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        spec: Optional[ModuleSpec] = None if find_spec is None else find_spec("sitecustomize", path)
        if spec is not None:
            return spec
    return None


def _run_next() -> None:
    spec = _find_next()
    if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
        return
    # Others chain as well: one that looks from the top again would find this file, and this file would find it again.
    ran = sys.__dict__.setdefault("_fleetprof_sitecustomize", set())
    if spec.origin in ran:
        return
    ran.add(spec.origin)
    # importlib.util has the same function, and would cost every interpreter its import: 2 ms.
    from _frozen_importlib import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _await_torch()
except Exception:
    _report_error()
_run_next()
