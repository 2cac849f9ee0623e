"""The import path of our own processes: the current folder is not on it, because others may put modules there.

Guarantees: the folder in which a command is called, such as a folder of traces or /tmp, gives no code to any process of
ours. A job that `fleetprof run` starts gets nothing from here: its path is its own.
Source: python(1), -P and PYTHONPATH, in which an empty entry is the current folder.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_SAFE: Final = "PYTHONSAFEPATH"

FORGET_THE_FOLDER: Final = "import sys; sys.path[:] = [entry for entry in sys.path if entry]\n"
"""The first line of a program for `python -c` of any version: -P is younger than some that train."""


def module_command(module: str, *arguments: str) -> list[str]:
    """The argument list that runs a module of ours, in an environment that `own_environment` gives."""
    return [sys.executable, "-P", "-m", module, *arguments]


def own_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for a process of ours: entries of PYTHONPATH are absolute, and none is the current folder."""
    own = dict(environment)
    if "PYTHONPATH" in own:
        kept = _leave_out_the_folder(own.pop("PYTHONPATH").split(os.pathsep))
        if kept:
            own["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in kept)
    return own


def leave_current_folder_out() -> None:
    """Modules that this process loads from now on do not come from the current folder."""
    sys.path[:] = _leave_out_the_folder(sys.path)


def _leave_out_the_folder(entries: Sequence[str]) -> list[str]:
    try:
        here = os.path.realpath(".")
    except OSError:  # it was removed
        return [entry for entry in entries if entry.startswith("/")]
    return [entry for entry in entries if os.path.realpath(entry) != here]


@contextmanager
def safe_starts() -> Iterator[None]:
    """Pythons that are started within it do not look into the current folder, whoever writes their command line.

    For multiprocessing, which passes -P on only where this process has it, as a console script has not.
    """
    before = {name: os.environ.get(name) for name in (_SAFE, "PYTHONPATH")}
    os.environ[_SAFE] = "1"
    own = own_environment()
    if "PYTHONPATH" not in own:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = own["PYTHONPATH"]
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
