"""Two reports side by side: what `fleetprof diff` says, with significance."""

from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Response
from fleetprof_api.report.report import UnreadableReport
from fleetprof_store.base import NotFound

from fleetprof_webui.access.viewer import CurrentViewer, Viewer
from fleetprof_webui.problems import RequestRefused, not_found
from fleetprof_webui.reports.whole_reports import Reference
from fleetprof_webui.service import CurrentService

router = APIRouter(tags=["reports"])

_REFERENCE = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}/[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
ReportName = Annotated[str, Query(pattern=_REFERENCE, max_length=257, description="NAMESPACE/UID of a report")]
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
    base: ReportName,
    new: ReportName,
    order: Annotated[
        Literal["given", "time"], Query(description="time: from the earlier to the later, whichever was given first")
    ] = "given",
) -> Response:
    """The changes from the report `base` to the report `new`."""
    sides = (_check(viewer, base), _check(viewer, new))
    try:
        diff = service.reports.compare(*sides, by_time=order == "time")
    except NotFound:
        raise not_found("report of one of these names", "see what there is: /requests") from None
    except UnreadableReport as error:
        raise RequestRefused(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"a report cannot be read: {error}", "compare their files: fleetprof diff"
        ) from None
    return Response(
        diff,
        media_type="application/json",
        headers={"Cache-Control": "private, no-cache", "Vary": "Accept, Cookie"},
    )


def _check(viewer: Viewer, reference: str) -> Reference:
    namespace, _, uid = reference.partition("/")
    viewer.check_namespace(namespace, "report")
    if ".." in reference:
        raise RequestRefused(
            HTTPStatus.UNPROCESSABLE_ENTITY, "a name cannot hold '..'", "give NAMESPACE/UID of a report"
        )
    return namespace, uid
