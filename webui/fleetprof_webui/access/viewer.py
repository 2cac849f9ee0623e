"""The person who asks, as every route sees them.

Guarantees: a route learns of namespaces and rights from here alone, however the person was recognised.
"""

import json
import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Protocol, cast

from fastapi import Depends, Request, Response

from fleetprof_webui.problems import RequestRefused, not_found

audit = logging.getLogger("fleetprof.audit")


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person and their rights. `namespaces` are those that they may read; None: all.

    In a cluster only those are asked about that matter to the request: the one that its address names, or for lists
    all that have captures.
    """

    name: str
    groups: tuple[str, ...]
    mode: str
    namespaces: frozenset[str] | None
    may_capture: bool

    def check_namespace(self, namespace: str, what: str) -> None:
        """Raises RequestRefused where they may not read it, as if it were not there."""
        if self.namespaces is not None and namespace not in self.namespaces:
            audit.info("%s", json.dumps({"who": self.name, "may_not_read": namespace, "what": what}))
            raise not_found(what)


@dataclass(frozen=True, slots=True)
class SeenSubject:
    """The person as they are known. `source` says to whom; `problem` "" where there is none."""

    name: str
    groups: tuple[str, ...]
    source: str
    problem: str


class Access(Protocol):
    """Recognises people."""

    next_step: str
    """What somebody does who is not recognised."""

    async def identify(self, request: Request) -> Viewer | None:
        """The sender of this request; None where that is not known. Raises RequestRefused."""

    async def see_subject(self, request: Request, viewer: Viewer) -> SeenSubject:
        """As the API server sees the person, where it can be asked."""

    def exchange(self, token: str, request: Request, response: Response) -> bool:
        """Opens a session for a one-time token; False where the token is worth nothing."""

    def end(self, request: Request, response: Response) -> None:
        """Ends the session of this request."""

    async def find_way_out(self) -> str:
        """The address at which people end their session at whoever signed them in; "" where there is none."""


async def find_viewer(request: Request) -> Viewer:
    """The person, for routes. Raises RequestRefused (401)."""
    access = cast(Access, request.app.state.service.access)
    viewer = await access.identify(request)
    if viewer is None:
        raise RequestRefused(
            HTTPStatus.UNAUTHORIZED, "you are not signed in, or your session has ended", access.next_step
        )
    request.state.viewer = viewer
    return viewer


CurrentViewer = Annotated[Viewer, Depends(find_viewer)]
