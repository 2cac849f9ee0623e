"""The losses of jobs in the last day, as a list and as a file for a spreadsheet."""

import csv
import io
from typing import Final

from fastapi import APIRouter, Response

from fleetprof_webui.access.viewer import CurrentViewer, Viewer
from fleetprof_webui.answers import answer, describes
from fleetprof_webui.models.losses import LossPage, LossRow
from fleetprof_webui.service import CurrentService, Service

router = APIRouter(tags=["fleet"])

_FORMULA: Final = tuple("=+-@\t\r")


@router.get("/losses", **describes(LossPage))
def list_losses(service: CurrentService, viewer: CurrentViewer) -> Response:
    """Captured jobs and those that only told anything, by the GPU-hours that the first finding cost in the last day."""
    return answer(_find(service, viewer))


@router.get("/losses.csv", response_model=None, responses={200: {"content": {"text/csv": {}}}})
def download_losses(service: CurrentService, viewer: CurrentViewer) -> Response:
    """The same as CSV, a line for each job; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = LossRow.__struct_fields__
    writer.writerow(columns)
    for row in _find(service, viewer).items:
        writer.writerow(_cell(getattr(row, column)) for column in columns)
    return Response(
        text.getvalue(),
        media_type="text/csv; charset=utf-8",
        headers={"Cache-Control": "no-store", "Content-Disposition": 'attachment; filename="losses.csv"'},
    )


def _find(service: Service, viewer: Viewer) -> LossPage:
    stored = service.catalog.telemetry_namespaces(viewer.namespaces)
    return service.catalog.losses(stored, viewer.namespaces)


def _cell(value: object) -> str:
    """A value as a cell. A text that a spreadsheet would run as a formula is marked as a text."""
    text = "" if value is None else " ".join(value) if isinstance(value, list) else str(value)
    return f"'{text}" if isinstance(value, str | list) and text.startswith(_FORMULA) else text
