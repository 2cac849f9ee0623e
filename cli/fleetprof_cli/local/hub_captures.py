"""Captures that the hub of local mode takes."""

from collections.abc import AsyncIterator

from fleetprof_api.hub import hub_pb2 as pb

from fleetprof_cli.local.hub_client import HubClient
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.terminal.capture_view import CaptureView
from fleetprof_cli.terminal.status_text import view


class HubCaptures:
    """The hub of a state directory, looked up again for each call, because it may have been restarted."""

    whereabouts = "the hub"
    server = "the hub"

    def __init__(self, state: StateDirectory) -> None:
        self._state = state

    async def watch(self, state: pb.CaptureStatus) -> AsyncIterator[pb.CaptureStatus]:
        """Every change until the capture is finished."""
        async with HubClient(self._state) as hub:
            async for latest in hub.watch(state.uid):
                yield latest

    async def cancel(self, state: pb.CaptureStatus) -> None:
        """Asks the hub to take it back."""
        async with HubClient(self._state) as hub:
            await hub.cancel(state.uid)

    def view(self, state: pb.CaptureStatus) -> CaptureView:
        """The capture as the progress display shows it."""
        return view(state)
