"""Two reports side by side: what `fleetprof diff` says, with significance."""

from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

import msgspec
from fastapi import APIRouter, Query, Response
from fleetprof_analyzer.assembly.diff import compare
from fleetprof_api.report.report import Report

from fleetprof_webui.access.viewer import CurrentViewer, Viewer
from fleetprof_webui.problems import RequestRefused
from fleetprof_webui.routes.reports import read_report_of
from fleetprof_webui.service import CurrentService, Service

router = APIRouter(tags=["reports"])

_REFERENCE = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}/[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
Reference = Annotated[str, Query(pattern=_REFERENCE, max_length=257, description="NAMESPACE/UID of a report")]
_DIFF: Final[dict[str, Any]] = {
    "response_model": None,
    "responses": {
        200: {
            "description": "The comparison (docs/diff.md)",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Diff"}}},
        }
    },
}


@router.get("/diff", **_DIFF)
def compare_reports(
    service: CurrentService,
    viewer: CurrentViewer,
    base: Reference,
    new: Reference,
    order: Annotated[
        Literal["given", "time"], Query(description="time: from the earlier to the later, whichever was given first")
    ] = "given",
) -> Response:
    """The changes from the report `base` to the report `new`."""
    sides = [_read(service, viewer, base), _read(service, viewer, new)]
    times = [report.request.submitted_unix_ns if report.request is not None else 0 for report in sides]
    if order == "time" and all(times) and times[0] > times[1]:
        sides.reverse()
    diff = compare(*sides)
    return Response(
        msgspec.json.encode(diff),
        media_type="application/json",
        headers={"Cache-Control": "private, no-cache", "Vary": "Accept, Cookie"},
    )


def _read(service: Service, viewer: Viewer, reference: str) -> Report:
    namespace, _, uid = reference.partition("/")
    viewer.check_namespace(namespace, "report")
    if ".." in reference:
        raise RequestRefused(
            HTTPStatus.UNPROCESSABLE_ENTITY, "a name cannot hold '..'", "give NAMESPACE/UID of a report"
        )
    return read_report_of(service, namespace, uid).report
