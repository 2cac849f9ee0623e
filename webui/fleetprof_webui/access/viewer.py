"""The person who asks, as every route sees them.

Guarantees: a route learns of namespaces and rights from here alone, however the person was recognised.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Protocol, cast

from fastapi import Depends, Request

from fleetprof_webui.problems import Refused, not_found


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person and their rights. `namespaces` are those that they may read; None: all."""

    name: str
    groups: tuple[str, ...]
    mode: str
    namespaces: frozenset[str] | None
    may_capture: bool

    def check_namespace(self, namespace: str, what: str) -> None:
        """Raises Refused where they may not read it, as if it were not there."""
        if self.namespaces is not None and namespace not in self.namespaces:
            raise not_found(what)


class Access(Protocol):
    """Recognises people."""

    next_step: str
    """What somebody does who is not recognised."""

    def identify(self, request: Request) -> Viewer | None:
        """Who sent this request; None where that is not known."""


def find_viewer(request: Request) -> Viewer:
    """The person, for routes. Raises Refused (401)."""
    access = cast(Access, request.app.state.service.access)
    viewer = access.identify(request)
    if viewer is None:
        raise Refused(HTTPStatus.UNAUTHORIZED, "you are not signed in, or your session has ended", access.next_step)
    request.state.viewer = viewer
    return viewer


CurrentViewer = Annotated[Viewer, Depends(find_viewer)]
