"""Python imports this at start-up because PYTHONPATH names its folder: it puts the agent in place, then steps aside.

Guarantees: imports nothing but what every interpreter has loaded by then, and torch never; does nothing unless the job
runs with Kineto's daemon mode in a socket directory, and with FLEETPROF_AGENT=0; whatever goes wrong in it is silent
(FLEETPROF_AGENT_DEBUG prints it). A `sitecustomize` further down sys.path is run as if it were the only one: it becomes
the module of that name, and its exceptions are Python's to report. Source: site.execsitecustomize (standard library).
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Optional


def _await_torch() -> None:
    environ = os.environ
    if environ.get("FLEETPROF_AGENT") == "0":
        return
    if not environ.get("KINETO_IPC_SOCKET_DIR") or not environ.get("KINETO_USE_DAEMON"):
        return
    try:
        from fleetprof_agent import arrival

        arrival.await_torch()
    except Exception:
        if environ.get("FLEETPROF_AGENT_DEBUG"):
            import traceback

            traceback.print_exc()


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
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_await_torch()
_run_next()
