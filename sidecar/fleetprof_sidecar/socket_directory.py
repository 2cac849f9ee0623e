"""The one directory that trainers and sidecar share: sockets, traces, Kineto's base configuration, the agent.

    <dir>/dynolog                  the sidecar's Kineto socket        <dir>/dynoconfigclient<uuid>   one per process
    <dir>/fleetprof                the sidecar's agent socket         <dir>/fleetprofagent<token>    one per agent
    <dir>/traces/                  Kineto writes here, the sidecar takes away
    <dir>/libkineto.conf           Kineto polls every second instead of every five
    <dir>/agent/                   what PYTHONPATH names: sitecustomize.py, fleetprof_agent/

Guarantees: a path that would crash a trainer is refused (libkineto copies it into 108 bytes unchecked, and terminates
the process when an answer's path does not begin with exactly the string it was given: so no trailing slash, no symlink,
no `..`, at most 54 characters). Every file appears whole or not at all. What belongs to a living process is never
removed. A directory that was there before keeps its permissions.
"""

import os
import shutil
import struct
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import fleetprof_agent
from fleetprof_agent import wire
from fleetprof_api.pods import KINETO_BASE_CONFIG, KINETO_CONFIG_FILE, kineto_variables

from fleetprof_sidecar.liveness import has_listener

MAX_PATH: Final = 54
KINETO_SOCKET: Final = "dynolog"
CLIENT_PREFIX: Final = "dynoconfigclient"
_ACL: Final = "system.posix_acl_default"


class UnusableDirectory(ValueError):
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


def trainer_environment(path: str, base_env: Mapping[str, str]) -> dict[str, str]:
    """`base_env` with what a trainer needs to be captured; a value that is there already is kept.

    PYTHONPATH gets `<dir>/agent` in front, unless FLEETPROF_AGENT=0 turns the agent off.
    Raises UnusableDirectory.
    """
    check_path(path)
    environment = {**kineto_variables(path, f"{path}/{KINETO_CONFIG_FILE}"), **base_env}
    if base_env.get("FLEETPROF_AGENT") != "0":
        agent = f"{path}/agent"
        given = base_env.get("PYTHONPATH", "")
        # An empty entry is the working directory; no value is none.
        others = [part for part in given.split(os.pathsep) if part != agent] if given else []
        environment["PYTHONPATH"] = os.pathsep.join([agent, *others])
    return environment


class SocketDirectory:
    """See the module. Raises UnusableDirectory for a path that no trainer should be given."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(check_path(str(path)))
        self.traces = self.path / "traces"
        self.agent = self.path / "agent"

    def prepare(self) -> None:
        """Makes everything but the sockets; may be repeated. Raises OSError when the volume cannot be written."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.traces.is_dir():
            self.traces.mkdir()
            # Trainers of other uids write here; sticky, so that only they and we (its owner) take their files away.
            self.traces.chmod(0o1777)
            _grant_ourselves(self.traces)
        _write_whole(self.path / KINETO_CONFIG_FILE, KINETO_BASE_CONFIG.encode())
        self._hand_over_agent()
        self.collect_garbage()

    def collect_garbage(self) -> int:
        """Removes the client sockets that dead processes left behind (Kineto never does); returns how many."""
        removed = 0
        for prefix in (CLIENT_PREFIX, wire.AGENT_SOCKET_PREFIX):
            for path in self.path.glob(f"{prefix}*"):
                if path.is_socket() and has_listener(str(path)) is False:
                    path.unlink(missing_ok=True)
                    removed += 1
        return removed

    def close(self) -> None:
        """Removes the sockets that nobody listens on, the sidecar's too: a stale one delays every trainer's exit."""
        self.collect_garbage()
        for name in (KINETO_SOCKET, wire.SIDECAR_SOCKET):
            path = self.path / name
            if path.is_socket() and not has_listener(str(path)):
                path.unlink(missing_ok=True)

    def _hand_over_agent(self) -> None:
        source = Path(fleetprof_agent.__file__).parent
        files = {Path("fleetprof_agent") / path.name: path for path in sorted(source.glob("*.py"))}
        pynvml = find_spec("pynvml")
        if pynvml is not None and pynvml.origin is not None:
            # Inside the package: beside it, it would stand before the job's own pynvml on PYTHONPATH.
            files[Path("fleetprof_agent/pynvml.py")] = Path(pynvml.origin)
        # Last: whoever finds it finds the rest.
        files[Path("sitecustomize.py")] = files.pop(Path("fleetprof_agent/sitecustomize.py"))
        for target, origin in files.items():
            path = self.agent / target
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            _write_whole(path, origin.read_bytes())
        for path in self.agent.rglob("*.py"):
            if path.relative_to(self.agent) not in files:
                path.unlink()  # of an older version; it could be imported in place of a new one
        for cache in self.agent.rglob("__pycache__"):
            shutil.rmtree(cache, ignore_errors=True)


def _write_whole(path: Path, data: bytes) -> None:
    if path.is_file() and path.read_bytes() == data:
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.chmod(0o644)
    temporary.replace(path)


def _grant_ourselves(path: Path) -> None:
    """A default ACL (acl(5)) that lets us read what a trainer with umask 077 writes; not every filesystem has it."""
    anyone = 0xFFFFFFFF
    entries = [(0x01, 7, anyone), (0x02, 7, os.getuid()), (0x04, 0, anyone), (0x10, 7, anyone), (0x20, 0, anyone)]
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(path, _ACL, value)
    except OSError:
        return
