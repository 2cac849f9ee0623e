"""The place of local mode's results: the part of the state directory that whoever reads reports needs to know.

Guarantees: only reads; a state directory that is not there, or whose `store.json` is damaged, has the default store.
"""

import os
from pathlib import Path

import msgspec

from fleetprof_store.location import StoreLocation


def default_state_path() -> Path:
    """$FLEETPROF_STATE, else the usual one."""
    if chosen := os.environ.get("FLEETPROF_STATE"):
        return Path(chosen)
    return usual_state_path()


def usual_state_path() -> Path:
    """fleetprof below $XDG_STATE_HOME (default ~/.local/state), which a command uses that was told of no other."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "fleetprof"


def default_store(state: Path) -> Path:
    """The default place of captures."""
    return state / "store"


def record(state: Path) -> Path:
    """The file that names the object store of the last `fleetprof up`."""
    return state / "store.json"


def read_location(state: Path) -> StoreLocation:
    """The object store of the last `fleetprof up`, the default one when there was none."""
    try:
        return msgspec.json.decode(record(state).read_bytes(), type=StoreLocation)
    except (OSError, msgspec.DecodeError):
        return StoreLocation(directory=str(default_store(state)))
