"""One report: its answer, and the tables behind it."""

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from fleetprof_api import keys
from fleetprof_api.report.report import UnreadableReport
from fleetprof_api.report.report_tables import WorkClassName
from fleetprof_store.base import NotFound

from fleetprof_webui.access.viewer import CurrentViewer, Viewer
from fleetprof_webui.answers import answer, describes
from fleetprof_webui.models.report import BoxPage, ReportPage, StragglerPage
from fleetprof_webui.models.tables import (
    CommunicationPage,
    IterationPage,
    KernelPage,
    KernelSpread,
    LaunchPage,
    RankColumns,
    SamplePage,
)
from fleetprof_webui.problems import RequestRefused, not_found
from fleetprof_webui.reports.boxes import list_boxes
from fleetprof_webui.reports.iterations import list_iterations
from fleetprof_webui.reports.kernel_spread import find_spread
from fleetprof_webui.reports.kernels import KernelQuery, find_kernels
from fleetprof_webui.reports.overview import make_overview, show_stragglers
from fleetprof_webui.reports.ranks import list_ranks
from fleetprof_webui.reports.reading import StoredReport
from fleetprof_webui.reports.samples import find_samples
from fleetprof_webui.reports.stored_files import list_files
from fleetprof_webui.reports.table_files import pack_tables
from fleetprof_webui.reports.tables import list_communication, list_launches
from fleetprof_webui.routes.parameters import After, Limit, Namespace, RankNumber, Text, Uid
from fleetprof_webui.service import CurrentService, Service

router = APIRouter(prefix="/reports/{namespace}/{uid}", tags=["reports"])

_REVALIDATE = "private, no-cache"
Measures = Annotated[list[str], Query(max_length=32, description="names of measures; none: all")]
KernelSort = Literal[
    "total", "-total", "count", "-count", "mean", "-mean", "max", "-max", "p99", "-p99", "name", "-name"
]


@router.get("", **describes(ReportPage))
def show_report(service: CurrentService, viewer: CurrentViewer, namespace: Namespace, uid: Uid) -> Response:
    """The answer, the findings, and what the report is made of: small, whatever the number of ranks."""
    stored = _read(service, viewer, namespace, uid)
    return answer(make_overview(stored, namespace, uid, list_files(service.store, namespace, uid)), cache=_REVALIDATE)


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
    packed = pack_tables(_read(service, viewer, namespace, uid).report)
    headers = {"Content-Disposition": f'attachment; filename="{uid}-tables.zip"', "Cache-Control": _REVALIDATE}
    return Response(packed, media_type="application/zip", headers=headers)


@router.get("/ranks", **describes(RankColumns))
def show_ranks(service: CurrentService, viewer: CurrentViewer, namespace: Namespace, uid: Uid) -> Response:
    """One array per measure over all ranks."""
    return answer(list_ranks(_read(service, viewer, namespace, uid).report), cache=_REVALIDATE)


@router.get("/iterations", **describes(IterationPage))
def show_iterations(
    service: CurrentService,
    viewer: CurrentViewer,
    namespace: Namespace,
    uid: Uid,
    measure: Measures = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Rank × iteration × measures."""
    return answer(list_iterations(_read(service, viewer, namespace, uid).report, measure), cache=_REVALIDATE)


@router.get("/boxes", **describes(BoxPage))
def show_boxes(service: CurrentService, viewer: CurrentViewer, namespace: Namespace, uid: Uid) -> Response:
    """A box plot over ranks for each measure."""
    return answer(list_boxes(_read(service, viewer, namespace, uid).report), cache=_REVALIDATE)


@router.get("/stragglers", **describes(StragglerPage))
def list_stragglers(service: CurrentService, viewer: CurrentViewer, namespace: Namespace, uid: Uid) -> Response:
    """Who is late, by how much, why, and what mending it is worth."""
    page = show_stragglers(_read(service, viewer, namespace, uid).report)
    if page is None:
        raise not_found("verdict on stragglers in this report", "capture two ranks or more")
    return answer(page, cache=_REVALIDATE)


@router.get("/kernels", **describes(KernelPage))
def list_kernels(
    service: CurrentService,
    viewer: CurrentViewer,
    namespace: Namespace,
    uid: Uid,
    rank: RankNumber = None,
    text: Text = "",
    sort: KernelSort = "-total",
    after: After = "",
    limit: Limit = 100,
) -> Response:
    """Device work by name: over all ranks, or on one."""
    query = KernelQuery(rank, text, sort, after, limit)
    return answer(find_kernels(_read(service, viewer, namespace, uid).report, query), cache=_REVALIDATE)


@router.get("/kernels/spread", **describes(KernelSpread))
def show_kernel_spread(
    service: CurrentService,
    viewer: CurrentViewer,
    namespace: Namespace,
    uid: Uid,
    name: Annotated[str, Query(max_length=200, description="as /kernels has it")],
    work_class: Annotated[WorkClassName, Query(description="as /kernels has it")],
) -> Response:
    """One kernel by rank and by stream, for box plots."""
    report = _read(service, viewer, namespace, uid).report
    return answer(find_spread(report, name, work_class), cache=_REVALIDATE)


@router.get("/communication", **describes(CommunicationPage))
def show_communication(service: CurrentService, viewer: CurrentViewer, namespace: Namespace, uid: Uid) -> Response:
    """Collectives by process group, kind and size, with bandwidth."""
    return answer(list_communication(_read(service, viewer, namespace, uid).report), cache=_REVALIDATE)


@router.get("/launches", **describes(LaunchPage))
def show_launches(service: CurrentService, viewer: CurrentViewer, namespace: Namespace, uid: Uid) -> Response:
    """The launches of each rank's host, and the operators that launch most."""
    return answer(list_launches(_read(service, viewer, namespace, uid).report), cache=_REVALIDATE)


@router.get("/samples", **describes(SamplePage))
def show_samples(
    service: CurrentService,
    viewer: CurrentViewer,
    namespace: Namespace,
    uid: Uid,
    rank: Annotated[list[int], Query(max_length=16, description="ranks; none: the first 8 with samples")] = [],  # noqa: B006
) -> Response:
    """Device and host samples over time."""
    return answer(find_samples(_read(service, viewer, namespace, uid).report, rank), cache=_REVALIDATE)


def _read(service: Service, viewer: Viewer, namespace: str, uid: str) -> StoredReport:
    """The report. Raises RequestRefused where it is not there, not yet, or cannot be read."""
    viewer.check_namespace(namespace, "report")
    return read_report_of(service, namespace, uid)


def read_report_of(service: Service, namespace: str, uid: str) -> StoredReport:
    """The same where the right to read was checked before."""
    try:
        version = service.store.head(keys.report_key(namespace, uid)).version
        return service.reports.read(namespace, uid, version)
    except NotFound:
        raise not_found("report", f"see how far its capture is: /requests/{namespace}/{uid}") from None
    except UnreadableReport as error:
        raise RequestRefused(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"the report cannot be read: {error}",
            f"fetch it as it is: /reports/{namespace}/{uid}/files/report.json",
        ) from None
