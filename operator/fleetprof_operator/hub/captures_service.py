"""The command line's door to the hub, over gRPC: local mode only, where every token is a person's.

Guarantees: every error of the hub becomes the fitting status with its sentence. Source: grpc.aio, google.rpc.Code.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final, TypeVar

import grpc
import grpc.aio
import msgspec
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import CapturesServicer
from fleetprof_api.request import InvalidRequest, load_request
from fleetprof_store.base import StoreError

from fleetprof_operator.hub.access.call_authentication import CallAuthentication, Context
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.stack_questions import name_workload
from fleetprof_operator.hub.submission import CaptureRefused, UnknownCapture

MAX_REQUEST_CHARACTERS: Final = 1 << 16
_Result = TypeVar("_Result")


class CapturesService(CapturesServicer):
    """The calls of the command line."""

    def __init__(self, hub: Hub, authentication: CallAuthentication) -> None:
        self._hub = hub
        self._authentication = authentication

    async def Submit(self, request: pb.SubmitRequest, context: Context) -> pb.CaptureStatus:  # noqa: N802
        """Takes a request. INVALID_ARGUMENT with every problem; FAILED_PRECONDITION when it is refused."""
        await self._authentication.admit(context)

        async def submit() -> pb.CaptureStatus:
            if len(request.request_json) > MAX_REQUEST_CHARACTERS:
                raise InvalidRequest([f"request: at most {MAX_REQUEST_CHARACTERS} characters"])
            parsed = load_request(request.request_json)
            return await self._hub.submit(parsed, request.namespace, fail_fast=request.fail_fast)

        return await _answer(context, submit)

    async def Watch(self, request: pb.CaptureRef, context: Context) -> AsyncIterator[pb.CaptureStatus]:  # noqa: N802
        """The status now and after every change, up to the finished one."""
        await self._authentication.admit(context)
        try:
            async for status in self._hub.watch(request.uid):
                yield status
        except UnknownCapture as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, str(error))

    async def Cancel(self, request: pb.CaptureRef, context: Context) -> pb.CaptureStatus:  # noqa: N802
        """Takes a capture back as far as that goes."""
        await self._authentication.admit(context)
        return await _answer(context, lambda: self._hub.cancel(request.uid))

    async def List(self, request: pb.ListRequest, context: Context) -> pb.ListReply:  # noqa: N802
        """All captures, the newest first."""
        await self._authentication.admit(context)
        return pb.ListReply(captures=await self._hub.list())

    async def Fleet(self, request: pb.FleetRequest, context: Context) -> pb.FleetReply:  # noqa: N802
        """All sidecars and what they see."""
        await self._authentication.admit(context)
        return pb.FleetReply(sidecars=await self._hub.fleet())

    async def Telemetry(self, request: pb.TelemetryRequest, context: Context) -> pb.TelemetryReply:  # noqa: N802
        """The figures of what runs now."""
        await self._authentication.admit(context)
        figures = await self._hub.figures(request.namespace, request.workload)
        return pb.TelemetryReply(figures_json=msgspec.json.encode(figures).decode())

    async def Stacks(self, request: pb.StacksRequest, context: Context) -> AsyncIterator[pb.StacksReply]:  # noqa: N802
        """The stacks of a job's processes now; RESOURCE_EXHAUSTED when too many ask."""
        await self._authentication.admit(context)
        try:
            chosen = self._hub.stacks.choose(request.namespace, request.workload)
            async for record, process in self._hub.stacks.ask(chosen):
                text = msgspec.json.encode(process).decode()
                yield pb.StacksReply(stacks_json=text, workload=name_workload(record))
        except CaptureRefused as refusal:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(refusal))


async def _answer(context: Context, call: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
    """The call's result; its errors end the RPC with the fitting status."""
    try:
        return await call()
    except InvalidRequest as error:
        status, message = grpc.StatusCode.INVALID_ARGUMENT, str(error)
    except CaptureRefused as error:
        status, message = grpc.StatusCode.FAILED_PRECONDITION, f"{error.reason}: {error}"
    except UnknownCapture as error:
        status, message = grpc.StatusCode.NOT_FOUND, str(error)
    except StoreError as error:
        # Not UNAVAILABLE: that is what a client sees when the hub itself does not answer.
        code = grpc.StatusCode.ABORTED if error.retryable else grpc.StatusCode.FAILED_PRECONDITION
        status, message = code, f"the store did not take the request: {error}"
    await context.abort(status, message)
