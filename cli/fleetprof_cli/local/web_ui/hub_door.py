"""Captures that people ask for in the web UI of local mode: taken by the hub, as `fleetprof capture -f` has them taken.

Guarantees: the request passes the same checks in the same words; the hub is looked up for each call, because it may
have been restarted.
"""

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.plain_text import make_printable
from fleetprof_webui.models.requests import CaptureAnswer, CaptureCheck
from fleetprof_webui.service import CaptureCallRefused
from fleetprof_webui.wanted import check_fields, read_capture

from fleetprof_cli.local.capture import DEFAULT_NAMESPACE
from fleetprof_cli.local.hub_client import HubClient
from fleetprof_cli.local.state import StateDirectory
from fleetprof_cli.messages import Failure
from fleetprof_cli.terminal.status_text import sentence, succeeded


class HubDoor:
    """The way from the web UI to the hub of a state directory."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state

    async def check(self, yaml: str, namespace: str) -> CaptureCheck:
        """By the fields alone, because the hub has no dry run, but only if a hub answers. Raises CaptureCallRefused."""
        checked = check_fields(yaml, namespace or DEFAULT_NAMESPACE)
        try:
            async with HubClient(self._state) as hub:
                await hub.captures()
        except Failure as error:
            raise _refuse(error) from None
        return checked

    async def submit(self, yaml: str, namespace: str) -> CaptureAnswer:
        """Asks for the capture of a ProfileRequest. Raises CaptureCallRefused."""
        request = read_capture(yaml)
        try:
            async with HubClient(self._state) as hub:
                status = await hub.submit(
                    request.to_json(), namespace or request.metadata.namespace or DEFAULT_NAMESPACE
                )
        except Failure as error:
            raise _refuse(error) from None
        return _answer(status)

    async def cancel(self, uid: str) -> CaptureAnswer:
        """Takes a capture back. Raises CaptureCallRefused."""
        try:
            async with HubClient(self._state) as hub:
                return _answer(await hub.cancel(uid))
        except Failure as error:
            raise _refuse(error) from None


def _answer(status: pb.CaptureStatus) -> CaptureAnswer:
    return CaptureAnswer(
        namespace=status.namespace,
        uid=status.uid,
        state=succeeded(status).reason or "Running",
        message=make_printable(sentence(status)),
    )


def _refuse(error: Failure) -> CaptureCallRefused:
    return CaptureCallRefused(error.message, error.next_step, tuple(error.details))
