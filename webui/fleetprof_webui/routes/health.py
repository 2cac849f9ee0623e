"""Tells if the service lives and is ready; and its metrics, at a port of their own in a cluster: counts, no names."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import PlainTextResponse

from fleetprof_webui.service import CurrentService

router = APIRouter(tags=["health"])
metrics_router = APIRouter(tags=["health"])


@router.get("/healthz", response_class=PlainTextResponse)
def show_health() -> str:
    """The process answers; nothing else is looked at."""
    return "ok\n"


@router.get("/readyz", response_class=PlainTextResponse)
def show_readiness(service: CurrentService) -> Response:
    """It has looked at the store, and store and database answered the last time; else 503 with the reason."""
    problem = service.catalog.problem
    status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
    return PlainTextResponse(f"{problem or 'ok'}\n", status_code=status)


@metrics_router.get("/metrics", response_class=PlainTextResponse)
def show_metrics(request: Request, service: CurrentService) -> Response:
    """The metrics in Prometheus' text format."""
    metrics = request.app.state.metrics
    metrics.looked.set(service.catalog.looked_unix_ns / 1e9)
    return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)
