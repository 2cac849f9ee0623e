"""The objects that the routes work with: the store, the catalog, who may, and the door to captures."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Protocol, cast

from fastapi import Depends, Request
from fleetprof_api.errors import FleetprofError
from fleetprof_store.base import Store

from fleetprof_webui.access.viewer import Access, Viewer
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.models.opened import OpenedPage
from fleetprof_webui.models.requests import CaptureAnswer, CaptureCheck
from fleetprof_webui.reports.whole_reports import WholeReports


class CaptureCallRefused(FleetprofError):
    """A capture was not taken, or not cancelled; it says why and the `next_step`; `details` name wrong fields."""

    def __init__(self, message: str, next_step: str = "", details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.next_step = next_step
        self.details = details


class CaptureRequests(Protocol):
    """Asks for captures in the person's name. All raise CaptureCallRefused."""

    async def check(self, yaml: str, namespace: str) -> CaptureCheck:
        """Tells whether a ProfileRequest would be taken, as far as can be known; asks for nothing."""

    async def submit(self, yaml: str, namespace: str) -> CaptureAnswer:
        """Asks for the capture of a ProfileRequest; `namespace` "" is that of the document."""

    async def cancel(self, uid: str) -> CaptureAnswer:
        """Takes a capture back."""


class PersonalCaptures(Protocol):
    """Captures of a service that many people use."""

    def open_door(self, request: Request, viewer: Viewer) -> CaptureRequests | None:
        """The door for this person, who sent this request; None where they have none."""


@dataclass(frozen=True, slots=True)
class Service:
    """All parts of one service. `captures` is None where it takes none, or where people have `personal` doors.

    `opened` tells how far what `fleetprof ui PATH…` was given is. `signs_traces`: browsers fetch traces from
    the store itself, where that signs addresses.
    """

    store: Store
    catalog: Catalog
    access: Access
    reports: WholeReports
    captures: CaptureRequests | None
    personal: PersonalCaptures | None = None
    signs_traces: bool = False
    opened: Callable[[], OpenedPage] | None = None

    def find_captures(self, request: Request, viewer: Viewer) -> CaptureRequests | None:
        """The door to captures for this person."""
        if not viewer.may_capture:
            return None
        return self.personal.open_door(request, viewer) if self.personal else self.captures


def find_service(request: Request) -> Service:
    """The service of the application that answers this request."""
    return cast(Service, request.app.state.service)


CurrentService = Annotated[Service, Depends(find_service)]
