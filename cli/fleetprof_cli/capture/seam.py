"""The door to captures: the seam between what commands do and who does it.

Two implementations: `hub_captures` (gRPC to the hub of local mode) and `cluster.requests` (ProfileRequests on
Kubernetes). `State` is what each of them knows of a capture.
"""

from collections.abc import AsyncIterator
from typing import Protocol, TypeVar

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure
from fleetprof_cli.terminal.capture_view import CaptureView

State = TypeVar("State")


class Away(Failure):
    """Nobody answers at the moment; it may be worth waiting."""

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message, next_step=next_step, code=ExitCode.NO_HUB)


class Captures(Protocol[State]):
    """Follows and takes back captures that were asked for."""

    whereabouts: str
    """The one that goes on with a capture when the command leaves: "the hub"."""

    server: str
    """The one that is asked: "the hub", or "the API server"."""

    def watch(self, state: State) -> AsyncIterator[State]:
        """Follows a capture, until it is finished or the connection ends. Raises Away, Failure."""

    async def cancel(self, state: State) -> None:
        """Has it taken back. Raises Away, Failure."""

    def view(self, state: State) -> CaptureView:
        """The capture as the progress display shows it."""
