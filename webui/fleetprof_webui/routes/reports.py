"""One report: its files, and its slices as they lie in the store.

Guarantees: whoever asks may read the report; a slice passes as its bytes, compressed, and is never decoded here.
"""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fleetprof_api import keys
from fleetprof_api.report.report import UnreadableReport
from fleetprof_api.slices.table import SLICES
from fleetprof_store.base import NotFound

from fleetprof_webui.access.viewer import CurrentViewer
from fleetprof_webui.answers import answer, describes
from fleetprof_webui.models.report import ReportFiles
from fleetprof_webui.problems import RequestRefused, not_found
from fleetprof_webui.reports.stored_files import Download, can_write_tables, has_report, list_files
from fleetprof_webui.routes.files import REVALIDATE, send_object
from fleetprof_webui.routes.parameters import Namespace, Uid
from fleetprof_webui.service import CurrentService, Service

router = APIRouter(prefix="/reports/{namespace}/{uid}", tags=["reports"])

_JSON = "application/json"


def _describe_slices() -> dict[str, Any]:
    schemas = [{"$ref": f"#/components/schemas/{kind.model.__name__}"} for kind in SLICES.values()]
    content = {_JSON: {"schema": {"anyOf": schemas}}}
    return {
        "response_model": None,
        "responses": {200: {"description": "The slice of this name, as gzip", "content": content}},
    }


@router.get("", **describes(ReportFiles))
def show_report(service: CurrentService, viewer: CurrentViewer, namespace: Namespace, uid: Uid) -> Response:
    """The files of a report; its answer is in the slice `overview`."""
    viewer.check_namespace(namespace, "report")
    if not has_report(service.store, namespace, uid):
        raise absent(namespace, uid)
    return answer(list_files(service.store, namespace, uid), cache=REVALIDATE)


@router.get("/slices/{name}", **_describe_slices())
def fetch_slice(
    request: Request,
    service: CurrentService,
    viewer: CurrentViewer,
    namespace: Namespace,
    uid: Uid,
    name: Annotated[str, Path(pattern="^[a-z_]{1,40}$", description=", ".join(SLICES))],
) -> Response:
    """One part of the report's page."""
    viewer.check_namespace(namespace, "report")
    kind = SLICES.get(name)
    if kind is None:
        raise not_found("slice of this name", f"take one of {', '.join(SLICES)}")
    headers = {"Content-Encoding": "gzip"}
    key = keys.slice_key(namespace, uid, name)
    try:
        if service.store.head(key).size_bytes > kind.most_bytes:
            raise _refuse(namespace, uid, f"its slice {name} is larger than {kind.most_bytes:,} bytes")
        return send_object(request, service.store, Download(key, _JSON, name), headers, REVALIDATE)
    except NotFound:
        data = _make_slice(service, namespace, uid, name)
    return Response(data, media_type=_JSON, headers={**headers, "Cache-Control": REVALIDATE, "Vary": "Cookie"})


@router.get(
    "/tables.zip",
    response_model=None,
    responses={
        200: {
            "description": "The report's tables, a Parquet file each",
            "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
def fetch_tables(service: CurrentService, viewer: CurrentViewer, namespace: Namespace, uid: Uid) -> Response:
    """The tables of docs/tables.md as Parquet files in one archive."""
    viewer.check_namespace(namespace, "report")
    if not can_write_tables():
        raise RequestRefused(
            HTTPStatus.NOT_IMPLEMENTED,
            "Parquet files need pyarrow, which this service does not have",
            "install it beside the service, or run `fleetprof report --tables DIR` where it is",
        )
    try:
        packed = service.reports.pack_tables(namespace, uid)
    except NotFound:
        raise absent(namespace, uid) from None
    except UnreadableReport as error:
        raise _refuse(namespace, uid, str(error)) from None
    headers = {"Content-Disposition": f'attachment; filename="{uid}-tables.zip"', "Cache-Control": REVALIDATE}
    return Response(packed, media_type="application/zip", headers=headers)


def absent(namespace: str, uid: str) -> RequestRefused:
    """There is no such report, or not yet."""
    return not_found("report", f"see how far its capture is: /requests/{namespace}/{uid}")


def _make_slice(service: Service, namespace: str, uid: str, name: str) -> bytes:
    try:
        return service.reports.slice(namespace, uid, name)
    except NotFound:
        raise absent(namespace, uid) from None
    except UnreadableReport as error:
        raise _refuse(namespace, uid, str(error)) from None


def _refuse(namespace: str, uid: str, why: str) -> RequestRefused:
    return RequestRefused(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        f"the report cannot be read: {why}",
        f"fetch it as it is: /reports/{namespace}/{uid}/files/report.json",
    )
