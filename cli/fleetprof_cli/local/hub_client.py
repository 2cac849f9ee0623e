"""The hub as a command sees it: gRPC calls whose failures are sentences with an exit code.

Guarantees: no call waits for ever for a hub that is not there; the token is shown to a hub that has proved to be ours
(`fleetprof_api.hub.local_hub`), and to nobody else.
"""

import asyncio
import shlex
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Self

import grpc
import grpc.aio
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import CapturesStub
from fleetprof_api.hub.local_hub import HubAway, find_hub
from fleetprof_store.local import usual_state_path

from fleetprof_cli.capture.seam import Away
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.local import hub_lock
from fleetprof_cli.local.state import ANOTHER, StateDirectory
from fleetprof_cli.messages import Failure

_CALL_S: Final = 20.0
_STARTS_WITHIN_S: Final = 20.0
_LOOK_EVERY_S: Final = 0.1
_CODES: Final = {
    grpc.StatusCode.INVALID_ARGUMENT: ExitCode.INVALID,
    grpc.StatusCode.NOT_FOUND: ExitCode.REFUSED,
    grpc.StatusCode.ALREADY_EXISTS: ExitCode.REFUSED,
    grpc.StatusCode.FAILED_PRECONDITION: ExitCode.REFUSED,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ExitCode.REFUSED,
}
_GONE: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_DENIED: Final = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)


class NoHub(Away):
    """No hub answers, or it does not accept the token."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message, next_step)


def advise_start(state: StateDirectory) -> str:
    """The next step where no hub answers: the command that starts the one of a state directory."""
    if obstacle := state.find_obstacle():
        return f"none can be started with it: {obstacle}; {ANOTHER}"
    chosen = "" if state.path == usual_state_path().absolute() else f" --state {shlex.quote(str(state.path))}"
    return f"it starts with a job, or in another terminal: fleetprof up{chosen}"


class HubClient:
    """An open connection; use it with `async with`. Raises NoHub when the state directory leads to no hub.

    One that starts is waited for.
    """

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._address = ""
        self._host_name = ""
        self._metadata: tuple[tuple[str, str], ...] = ()
        self._cleanup = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._await_start()
            way = self._cleanup.enter_context(find_hub(self._state.path))
        except HubAway as error:
            raise NoHub(str(error), advise_start(self._state)) from None
        except (OSError, ValueError) as error:
            step = f"is {self._state.path} yours, and readable? `fleetprof up` writes its hub.json and token anew"
            raise NoHub(f"the hub cannot be asked: {error}", step) from None
        self._address = way.record.address
        self._host_name = way.record.host_name
        self._metadata = (("authorization", f"Bearer {way.token}"),)
        self._stub = CapturesStub(await self._cleanup.enter_async_context(way.open_channel()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._cleanup.aclose()

    async def submit(self, request_json: str, namespace: str) -> pb.CaptureStatus:
        """Asks for a capture; refused when nothing matches now."""
        message = pb.SubmitRequest(namespace=namespace, request_json=request_json, fail_fast=True)
        try:
            return await self._stub.Submit(message, metadata=self._metadata, timeout=_CALL_S)
        except grpc.aio.AioRpcError as error:
            raise self._failure(error) from None

    async def watch(self, uid: str) -> AsyncIterator[pb.CaptureStatus]:
        """Every change of a capture until it is finished. Raises NoHub when the hub goes away meanwhile."""
        try:
            async for status in self._stub.Watch(pb.CaptureRef(uid=uid), metadata=self._metadata):
                yield status
        except grpc.aio.AioRpcError as error:
            raise self._failure(error) from None

    async def cancel(self, uid: str) -> pb.CaptureStatus:
        """Asks the hub to take a capture back."""
        try:
            return await self._stub.Cancel(pb.CaptureRef(uid=uid), metadata=self._metadata, timeout=_CALL_S)
        except grpc.aio.AioRpcError as error:
            raise self._failure(error) from None

    async def captures(self) -> list[pb.CaptureStatus]:
        """All captures the hub knows, as it orders them."""
        try:
            reply = await self._stub.List(pb.ListRequest(), metadata=self._metadata, timeout=_CALL_S)
        except grpc.aio.AioRpcError as error:
            raise self._failure(error) from None
        return list(reply.captures)

    async def fleet(self) -> list[pb.SidecarStatus]:
        """All sidecars and the processes they see."""
        try:
            reply = await self._stub.Fleet(pb.FleetRequest(), metadata=self._metadata, timeout=_CALL_S)
        except grpc.aio.AioRpcError as error:
            raise self._failure(error) from None
        return list(reply.sidecars)

    async def telemetry(self, workload: str) -> str:
        """The figures of what runs now, FleetFigures as JSON: all jobs, or one with its ranks."""
        try:
            reply = await self._stub.Telemetry(
                pb.TelemetryRequest(workload=workload), metadata=self._metadata, timeout=_CALL_S
            )
        except grpc.aio.AioRpcError as error:
            raise self._failure(error) from None
        return reply.figures_json

    async def stacks(self, workload: str) -> list[pb.StacksReply]:
        """The stacks of a job's processes now; of all jobs where it is empty."""
        request = pb.StacksRequest(workload=workload)
        try:
            return [reply async for reply in self._stub.Stacks(request, metadata=self._metadata, timeout=_CALL_S)]
        except grpc.aio.AioRpcError as error:
            raise self._failure(error) from None

    async def _await_start(self) -> None:
        end = time.monotonic() + _STARTS_WITHIN_S
        while self._state.hub() is None and hub_lock.is_held(self._state):
            if time.monotonic() > end:
                return
            await asyncio.sleep(_LOOK_EVERY_S)

    def _next_step(self) -> str:
        if self._host_name in ("", socket.gethostname()) or not self._address.startswith("unix:"):
            return advise_start(self._state)
        return (
            f"it was started on {self._host_name}, for jobs there; for other machines: fleetprof up --listen HOST:PORT"
        )

    def _failure(self, error: grpc.aio.AioRpcError) -> Failure:
        code, message = error.code(), error.details() or ""
        if code in _GONE:
            return NoHub(f"the hub at {self._address} does not answer", self._next_step())
        if code in _DENIED:
            return NoHub(
                f"the hub at {self._address} does not accept the token in {self._state.token_file}: {message}",
                "use the state directory that the hub uses (--state), or start it again",
            )
        first, *details = message.splitlines() or [code.name]
        return Failure(first, details=details, code=_CODES.get(code, ExitCode.FAILED))
