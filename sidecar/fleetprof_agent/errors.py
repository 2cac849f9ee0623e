"""Handles an exception inside our code: ours goes no further, one of the job's passes.

A signal handler of the job may run between any two instructions of its main thread, ours included, and raise: a time
limit, a pre-emption. So may whoever raises in a thread from outside (PyThreadState_SetAsyncExc).

Guarantees: every clause of ours that keeps an exception in a thread of the job asks `pass_on` first; what a handler
raised goes on to the job, and the agent goes on working. What cannot be told apart: a built-in exception, set from
outside, in a line of ours; that one is taken for ours.
"""

from __future__ import annotations

import os
import sys
from typing import Any


class AgentError(Exception):
    """The root of the agent's exceptions, which knows no other code of ours."""


def report_error() -> None:
    """Prints the exception that is being handled when FLEETPROF_AGENT_DEBUG asks for it; else nothing."""
    if os.environ.get("FLEETPROF_AGENT_DEBUG"):
        import traceback

        traceback.print_exc()


def pass_on(error: BaseException) -> None:
    """Raises it again where it is the job's; returns where it is ours, or of something that we called."""
    traceback = error.__traceback__
    interrupted: Any = None
    is_alone = True  # nothing but ours and Python's was called
    while traceback is not None:
        frame = traceback.tb_frame
        if interrupted is not None and _is_handler(frame, interrupted):
            raise error
        is_alone = is_alone and _is_known(frame.f_code.co_filename)
        interrupted, traceback = frame, traceback.tb_next
    if is_alone and _is_of_the_job(type(error).__module__):
        raise error  # nothing of the job was called that could have raised it here


def _is_handler(frame: Any, interrupted: Any) -> bool:
    """Tells whether it was called as handlers are: with the frame that it interrupted."""
    code = frame.f_code
    count = code.co_argcount + bool(code.co_flags & 0x04)  # inspect.CO_VARARGS
    # Keyword-only arguments stand between the others and *args.
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    for name in names:
        value = frame.f_locals.get(name)
        if value is interrupted or (type(value) is tuple and any(part is interrupted for part in value)):
            return True
    return False


def _is_of_the_job(module: str) -> bool:
    if module == "__main__":
        return True
    path = getattr(sys.modules.get(module), "__file__", None)
    return path is not None and not _is_known(path) and module.partition(".")[0] not in ("torch", "pynvml")


def _is_known(path: str) -> bool:
    """Tells whether it is a file of ours, or of Python's own library."""
    return path.startswith(_OURS) or (path.startswith(_PYTHONS) and "-packages" not in path)


_OURS = (os.path.dirname(os.path.abspath(__file__)), "<frozen ")
_PYTHONS = os.path.dirname(os.__file__)
