"""The application: routes, errors, pages, and the look at the store that keeps the catalog fresh."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fleetprof_api import __version__
from fleetprof_api.keys import InvalidKeyPart
from fleetprof_store.base import StoreError
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from fleetprof_webui.access.guard import Guard
from fleetprof_webui.listener.turn_taking import TurnTaking
from fleetprof_webui.metrics import Metrics
from fleetprof_webui.openapi import make_document
from fleetprof_webui.pages import STATIC, Pages, send_index
from fleetprof_webui.problems import RequestRefused, not_found, say_problem
from fleetprof_webui.routes import (
    diff,
    files,
    fleet,
    health,
    losses,
    opened,
    policies,
    reports,
    requests,
    session,
    telemetry,
)
from fleetprof_webui.service import Service

_DESCRIPTION: Final = (
    "The fleet of captures, each request, each report. The same address answers a browser with a page. "
    "Writes need the header X-Fleetprof-Request and an Origin of this service."
)
_MOST_SHOWN: Final = 100

log = logging.getLogger(__name__)


def create_application(
    service: Service | None,
    *,
    hosts: Collection[str],
    look_every_s: float | None = None,
    metrics: bool = True,
    forwarded: bool = False,
    name_caller: Callable[[Request], str] | None = None,
    static: Path = STATIC,
) -> FastAPI:
    """The application for `service`; with None it can only be described.

    `hosts` are the values of the Host header that are ours, with their port. `look_every_s` None: the catalog stays as
    it is. `metrics`: whether they are at the same port. `forwarded`: people may come by a port that they forward.
    `name_caller`: whose turn a request is; without it all are worked on as they come.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        looking = asyncio.create_task(_look(service, look_every_s)) if service and look_every_s else None
        yield
        if looking is not None:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    app = FastAPI(
        title="fleetprof",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        separate_input_output_schemas=False,
    )
    app.state.service = service
    app.state.metrics = Metrics()
    app.state.static = static
    for module in (fleet, losses, telemetry, policies, requests, files, reports, diff, opened, session, health):
        # As they are: `include_router` would prepare each route anew at the first request, for 50 ms of an application.
        app.router.routes.extend(module.router.routes)
    if metrics:
        app.router.routes.extend(health.metrics_router.routes)
    app.add_api_route("/", _go_to_fleet, include_in_schema=False)
    _add_errors(app)
    app.openapi = lambda: make_document(app)  # type: ignore[method-assign]
    app.add_middleware(Pages, folder=static)
    if name_caller is not None:
        app.add_middleware(TurnTaking, name_caller=name_caller)
    app.add_middleware(Guard, hosts=hosts, metrics=app.state.metrics, forwarded=forwarded)
    return app


async def _go_to_fleet() -> RedirectResponse:
    return RedirectResponse("/fleet")


async def _look(service: Service, every_s: float) -> None:
    while True:
        try:
            await asyncio.to_thread(service.catalog.refresh)
        except Exception:  # the next look may go well
            log.exception("the catalog could not be brought to what the store holds")
        await asyncio.sleep(every_s)


def _add_errors(app: FastAPI) -> None:
    handlers: dict[Any, Any] = {
        RequestRefused: _say_refused,
        RequestValidationError: _say_invalid,
        InvalidKeyPart: _say_bad_key,
        StoreError: _say_store,
        SQLAlchemyError: _say_database,
        HTTPException: _say_http,
        Exception: _say_fault,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


async def _say_refused(_request: Request, error: RequestRefused) -> Response:
    return say_problem(error.problem)


async def _say_invalid(_request: Request, error: RequestValidationError) -> Response:
    fields = [f"{one['loc'][-1]}: {one['msg']}"[:_MOST_SHOWN] for one in error.errors()]
    refused = RequestRefused(
        HTTPStatus.UNPROCESSABLE_ENTITY, "parameters are not as they must be", "see /openapi.json", fields=fields
    )
    return say_problem(refused.problem)


async def _say_bad_key(_request: Request, _error: InvalidKeyPart) -> Response:
    return say_problem(not_found("capture").problem)


async def _say_store(_request: Request, error: StoreError) -> Response:
    log.warning("the store failed: %s", error)
    refused = RequestRefused(
        HTTPStatus.SERVICE_UNAVAILABLE, "the object store does not answer", "try again; the service's log says why"
    )
    return say_problem(refused.problem)


async def _say_database(_request: Request, error: SQLAlchemyError) -> Response:
    log.warning("the catalog's database failed: %s", error)
    refused = RequestRefused(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "the catalog's database does not answer",
        "reports can be read by their own address; the service's log says why",
    )
    return say_problem(refused.problem)


async def _say_http(request: Request, error: HTTPException) -> Response:
    if error.status_code == HTTPStatus.NOT_FOUND and "text/html" in request.headers.get("accept", ""):
        known = Headers({"accept-encoding": request.headers.get("accept-encoding", "")})
        page = send_index(request.app.state.static, known)
        if page is not None:  # it says that there is no such page
            page.status_code = HTTPStatus.NOT_FOUND
            return page
    refused = RequestRefused(HTTPStatus(error.status_code), str(error.detail), "see /openapi.json")
    response = say_problem(refused.problem)
    response.headers.update(error.headers or {})
    return response


async def _say_fault(_request: Request, error: Exception) -> Response:
    log.error("a request failed", exc_info=error)
    refused = RequestRefused(HTTPStatus.INTERNAL_SERVER_ERROR, "the service failed", "the service's log says where")
    return say_problem(refused.problem)
