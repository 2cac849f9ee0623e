"""The one directory that trainers and sidecar share: sockets, traces, Kineto's base configuration, the agent.

    <dir>/dynolog                  the sidecar's Kineto socket        <dir>/dynoconfigclient<uuid>   one per process
    <dir>/fleetprof                the sidecar's agent socket         <dir>/fleetprofagent<token>    one per agent
                                                                  <dir>/fleetproflisten<token>   its listener
    <dir>/traces/                  Kineto writes here, the sidecar takes away
    <dir>/libkineto.conf           Kineto polls every second instead of every five
    <dir>/agent/                   what PYTHONPATH names: sitecustomize.py, fleetprof_agent/ (local mode: elsewhere)

Guarantees: a path that would crash a trainer is refused (libkineto copies it into 108 bytes unchecked, and terminates
the process when an answer's path does not begin with exactly the string it was given: so no trailing slash, no symlink,
no `..`, at most 54 characters). Every file appears whole or not at all, and nothing is written, changed or removed
through a link that a trainer has put there (shared_files.py). What belongs to a living process is never removed. A
directory that was there before keeps its permissions.
"""

import os
import shutil
import stat
import struct
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import fleetprof_agent
from fleetprof_agent import wire
from fleetprof_api.errors import FleetprofError
from fleetprof_api.pods import AGENT_FOLDER, KINETO_BASE_CONFIG, KINETO_CONFIG_FILE, kineto_variables

from fleetprof_sidecar.sockets.liveness import has_listener
from fleetprof_sidecar.sockets.shared_files import make_folder, open_folder, write_whole

MAX_PATH: Final = 54
KINETO_SOCKET: Final = "dynolog"
MOST_LISTENERS: Final = 1024
CLIENT_PREFIX: Final = "dynoconfigclient"
_ACL: Final = "system.posix_acl_default"


class UnusableDirectory(FleetprofError, ValueError):
    """The path cannot be the socket directory; the message says why and what to do."""


def check_path(path: str) -> str:
    """Returns `path` when it is fit to be KINETO_IPC_SOCKET_DIR, else raises UnusableDirectory."""
    rule = ""
    if len(path) > MAX_PATH:
        rule = f"has {len(path)} characters, at most {MAX_PATH} fit into a socket address beside Kineto's names"
    elif not path.startswith("/") or path.startswith("//") or os.path.normpath(path) != path or path == "/":
        rule = "must be absolute, without a trailing slash, '//', '.' or '..'"
    elif not path.isascii() or not path.isprintable() or any(character in path for character in "=# ,:"):
        rule = "must be plain ASCII without spaces and = # , :"
    elif os.path.realpath(path) != path:
        rule = f"goes through a symbolic link; use {os.path.realpath(path)!r}"
    if rule:
        raise UnusableDirectory(f"directory {path!r} {rule}")
    return path


def trainer_environment(path: str, base_env: Mapping[str, str], *, agent: str = "") -> dict[str, str]:
    """`base_env` with what a trainer needs to be captured; a value that is there already is kept.

    PYTHONPATH gets `agent` (`<dir>/agent`) in front, unless FLEETPROF_AGENT=0 turns the agent off.
    Raises UnusableDirectory.
    """
    check_path(path)
    agent = agent or f"{path}/{AGENT_FOLDER}"
    if os.pathsep in agent:
        raise UnusableDirectory(f"directory {agent!r} cannot be on PYTHONPATH: it has a {os.pathsep!r} in its name")
    environment = {**kineto_variables(path, f"{path}/{KINETO_CONFIG_FILE}"), **base_env}
    if base_env.get("FLEETPROF_AGENT") != "0":
        given = base_env.get("PYTHONPATH", "")
        # An empty entry is the working directory; no value is none.
        others = [part for part in given.split(os.pathsep) if part != agent] if given else []
        environment["PYTHONPATH"] = os.pathsep.join([agent, *others])
    return environment


class SocketDirectory:
    """See the module. Raises UnusableDirectory for a path that no trainer should be given."""

    def __init__(self, path: str | Path, agent: Path | None = None) -> None:
        self.path = Path(check_path(str(path)))
        self.traces = self.path / "traces"
        self.agent = agent or self.path / AGENT_FOLDER

    def prepare(self) -> None:
        """Makes everything but the sockets; may be repeated. Raises OSError when the volume cannot be written."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open_folder(self.path) as folder:
            if make_folder(self.traces.name, folder, 0o700):
                with open_folder(self.traces.name, within=folder) as traces:
                    # Trainers of other uids write here; sticky, so that only they and we (its owner) take their files.
                    os.fchmod(traces, 0o1777)
                    _grant_ourselves(traces)
            write_whole(KINETO_CONFIG_FILE, folder, KINETO_BASE_CONFIG.encode())
        self.agent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open_folder(self.agent.parent) as folder:
            make_folder(self.agent.name, folder, 0o755)
            with open_folder(self.agent.name, within=folder) as agent:
                _hand_over_agent(agent)
        self.collect_garbage()

    def collect_garbage(self) -> int:
        """Removes the client sockets that dead processes left behind (Kineto never does); returns how many."""
        removed = 0
        for prefix in (CLIENT_PREFIX, wire.AGENT_SOCKET_PREFIX, wire.LISTENER_SOCKET_PREFIX):
            for path in self.path.glob(f"{prefix}*"):
                if _is_socket(path) and has_listener(str(path)) is False:
                    path.unlink(missing_ok=True)
                    removed += 1
        return removed

    def find_listeners(self) -> list[str]:
        """The addresses of the agents' listeners, at most MOST_LISTENERS."""
        found = sorted(str(path) for path in self.path.glob(f"{wire.LISTENER_SOCKET_PREFIX}*") if _is_socket(path))
        return found[:MOST_LISTENERS]

    def close(self) -> None:
        """Removes the sockets that nobody listens on, the sidecar's too: a stale one delays every trainer's exit."""
        self.collect_garbage()
        for name in (KINETO_SOCKET, wire.SIDECAR_SOCKET):
            path = self.path / name
            if _is_socket(path) and not has_listener(str(path)):
                path.unlink(missing_ok=True)


def _hand_over_agent(folder: int) -> None:
    """Writes the agent into the open folder, and takes away what else lies there."""
    source = Path(fleetprof_agent.__file__).parent
    boot = source / "sitecustomize.py"
    pynvml = find_spec("pynvml")
    # Inside the package: beside it, it would stand before the job's own pynvml on PYTHONPATH.
    more = {"pynvml.py": Path(pynvml.origin)} if pynvml is not None and pynvml.origin is not None else {}
    _copy_package(source, folder, more, without=boot.name)
    # Last: whoever finds it finds the rest.
    write_whole(boot.name, folder, boot.read_bytes())
    _remove_others(folder, {boot.name, source.name})


def _copy_package(source: Path, within: int, more: Mapping[str, Path] | None = None, *, without: str = "") -> None:
    """Writes a package with the packages in it, and `more` modules."""
    modules = {path.name: path for path in sorted(source.glob("*.py")) if path.name != without} | dict(more or {})
    rooms = [path.parent for path in sorted(source.glob("*/__init__.py"))]
    make_folder(source.name, within, 0o755)
    with open_folder(source.name, within=within) as folder:
        for room in rooms:
            _copy_package(room, folder)
        for name, origin in modules.items():
            write_whole(name, folder, origin.read_bytes())
        _remove_others(folder, {*modules, *(room.name for room in rooms)})


def _remove_others(folder: int, names: set[str]) -> None:
    """Removes an older version: a module or a package could be imported in place of a new one, also a compiled one."""
    for name in os.listdir(folder):
        if name in names or name.startswith("."):  # hidden: a file that is being written
            continue
        try:
            os.unlink(name, dir_fd=folder)
        except IsADirectoryError:
            shutil.rmtree(name, ignore_errors=True, dir_fd=folder)


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return False


def _grant_ourselves(folder: int) -> None:
    """A default ACL (acl(5)) that lets us read what a trainer with umask 077 writes; not every filesystem has it."""
    anyone = 0xFFFFFFFF
    entries = [(0x01, 7, anyone), (0x02, 7, os.getuid()), (0x04, 0, anyone), (0x10, 7, anyone), (0x20, 0, anyone)]
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(folder, _ACL, value)
    except OSError:
        return
