"""Captures in the object store, for commands: what goes wrong ends the command with a sentence."""

from fleetprof_store import captures as stored
from fleetprof_store.base import Store, StoreError
from fleetprof_store.captures import LATEST, NoSuchCapture, StoredCapture

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure

__all__ = ["LATEST", "StoredCapture", "find_capture", "read_captures"]


def read_captures(store: Store) -> list[StoredCapture]:
    """All captures, the latest first. Raises Failure when the store cannot be read."""
    try:
        return stored.read_captures(store)
    except StoreError as error:
        raise Failure(
            f"cannot read the object store: {error}", next_step="see what is wrong: fleetprof doctor"
        ) from None


def find_capture(captures: list[StoredCapture], reference: str) -> StoredCapture:
    """The one that is meant: uid, the beginning of one, name, or `latest`. Raises Failure."""
    try:
        return stored.find_capture(captures, reference)
    except NoSuchCapture as error:
        raise Failure(str(error), next_step=error.next_step, code=ExitCode.REFUSED) from None
