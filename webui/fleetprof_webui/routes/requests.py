"""Requests: the list, one with its ledger, its changes as they come; asking for a capture and taking one back."""

import asyncio
from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse

from fleetprof_webui.access.viewer import CurrentViewer, Viewer
from fleetprof_webui.answers import answer, describes, takes
from fleetprof_webui.catalog.requests import RequestQuery
from fleetprof_webui.models.requests import (
    CaptureAnswer,
    CaptureCheck,
    LedgerChange,
    NewCapture,
    RequestDetail,
    RequestPage,
)
from fleetprof_webui.models.stacks import StacksPage
from fleetprof_webui.problems import RequestRefused
from fleetprof_webui.requests.detail import check_request, read_detail
from fleetprof_webui.requests.events import stream_changes
from fleetprof_webui.requests.stacks import read_stacks_page
from fleetprof_webui.routes.body import read_body
from fleetprof_webui.routes.parameters import After, Filter, Limit, Namespace, Sort, Text, Uid
from fleetprof_webui.service import CaptureCallRefused, CaptureRequests, CurrentService, Service
from fleetprof_webui.wanted import check_fields

router = APIRouter(tags=["requests"])


@router.get("/requests", **describes(RequestPage))
def list_requests(
    service: CurrentService,
    viewer: CurrentViewer,
    cluster: Filter = "",
    namespace: Filter = "",
    state: Filter = "",
    host: Filter = "",
    text: Text = "",
    sort: Sort = "-submitted",
    after: After = "",
    limit: Limit = 50,
) -> Response:
    """ProfileRequests, the latest first; `host`: those with a rank that ran there."""
    query = RequestQuery(cluster, namespace, state, host, text, sort, after, limit)
    return answer(service.catalog.requests(query, viewer.namespaces))


@router.get("/requests/{namespace}/{uid}", **describes(RequestDetail))
def show_request(
    request: Request, service: CurrentService, viewer: CurrentViewer, namespace: Namespace, uid: Uid
) -> Response:
    """One request: its YAML, its ledger with a line per rank, the times of its stages, and what to do next."""
    viewer.check_namespace(namespace, "request")
    may_cancel = service.find_captures(request, viewer) is not None
    return answer(read_detail(service.store, namespace, uid, is_local=viewer.mode == "local", may_cancel=may_cancel))


@router.get("/requests/{namespace}/{uid}/stacks", **describes(StacksPage))
def show_stacks(service: CurrentService, viewer: CurrentViewer, namespace: Namespace, uid: Uid) -> Response:
    """The places of the job's ranks, by groups of equal stacks: of a request that asked for it and has ended."""
    viewer.check_namespace(namespace, "request")
    return answer(read_stacks_page(service.store, namespace, uid))


@router.get("/requests/{namespace}/{uid}/events", **describes(LedgerChange, media_type="text/event-stream"))
async def follow_request(
    request: Request, service: CurrentService, viewer: CurrentViewer, namespace: Namespace, uid: Uid
) -> StreamingResponse:
    """The ledger's changes as server-sent events: `ledger` (LedgerChange), `finished` at the end, ids for resuming."""
    viewer.check_namespace(namespace, "request")
    await asyncio.to_thread(check_request, service.store, namespace, uid)
    last_event_id = request.headers.get("last-event-id", "")[:64]
    events = stream_changes(
        service.store, namespace, uid, last_event_id, lambda: _may_still_read(request, service, namespace)
    )
    return StreamingResponse(
        events,
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@router.post("/requests", status_code=HTTPStatus.OK, **describes(CaptureAnswer), openapi_extra=takes(NewCapture))
async def submit_request(request: Request, service: CurrentService, viewer: CurrentViewer) -> Response:
    """Asks for a capture, as `fleetprof capture -f` and kubectl do, in the person's own name."""
    captures = _find_captures(request, service, viewer)
    wanted = await read_body(request, NewCapture)
    try:
        return answer(await captures.submit(wanted.yaml, wanted.namespace))
    except CaptureCallRefused as error:
        raise _refuse(error) from None


@router.post("/requests/check", **describes(CaptureCheck), openapi_extra=takes(NewCapture))
async def check_capture(request: Request, service: CurrentService, viewer: CurrentViewer) -> Response:
    """Tells whether a capture would be taken: by the API server's dry run, else by the fields alone; makes none."""
    wanted = await read_body(request, NewCapture)
    captures = service.find_captures(request, viewer)
    try:
        if captures is not None:
            return answer(await captures.check(wanted.yaml, wanted.namespace))
        return answer(await asyncio.to_thread(check_fields, wanted.yaml, wanted.namespace))
    except CaptureCallRefused as error:
        raise _refuse(error) from None


@router.post("/requests/{namespace}/{uid}/cancel", **describes(CaptureAnswer))
async def cancel_request(
    request: Request, service: CurrentService, viewer: CurrentViewer, namespace: Namespace, uid: Uid
) -> Response:
    """Takes a capture back, as far as that is possible (docs/architecture.md#capture), in the person's own name."""
    viewer.check_namespace(namespace, "request")
    captures = _find_captures(request, service, viewer)
    try:
        return answer(await captures.cancel(uid))
    except CaptureCallRefused as error:
        raise _refuse(error) from None


async def _may_still_read(request: Request, service: Service, namespace: str) -> bool:
    viewer = await service.access.identify(request)
    return viewer is not None and (viewer.namespaces is None or namespace in viewer.namespaces)


def _find_captures(request: Request, service: Service, viewer: Viewer) -> CaptureRequests:
    captures = service.find_captures(request, viewer)
    if captures is None:
        raise RequestRefused(
            HTTPStatus.FORBIDDEN,
            "this service takes no captures",
            "start `fleetprof up` and use its address; on Kubernetes: kubectl apply -f REQUEST.yaml",
        )
    return captures


def _refuse(error: CaptureCallRefused) -> RequestRefused:
    status = HTTPStatus.UNPROCESSABLE_ENTITY if error.details else HTTPStatus.CONFLICT
    return RequestRefused(status, str(error), error.next_step, fields=error.details)
