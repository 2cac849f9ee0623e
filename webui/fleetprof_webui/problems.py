"""Errors as RFC 9457 has them: what is wrong, and what to do next.

Guarantees: no text of an exception of ours or of a library's reaches a person unless it was written for people.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

import msgspec
from fleetprof_api.errors import FleetprofError
from starlette.responses import Response

from fleetprof_webui.models.person import ProblemDetails

MEDIA_TYPE: Final = "application/problem+json"


class RequestRefused(FleetprofError):
    """A request that is answered with an error: its status, a sentence, and the next step."""

    def __init__(self, status: HTTPStatus, detail: str, next_step: str = "", *, fields: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.problem = ProblemDetails(
            type="about:blank",
            title=status.phrase,
            status=status,
            detail=detail,
            next_step=next_step,
            fields=list(fields),
        )


def say_problem(problem: ProblemDetails) -> Response:
    """Makes the problem document (RFC 9457) of an error."""
    return Response(msgspec.json.encode(problem), status_code=problem.status, media_type=MEDIA_TYPE)


def not_found(what: str, next_step: str = "see what there is: /requests") -> RequestRefused:
    """The same words whether it is not there or the person may not see it."""
    return RequestRefused(HTTPStatus.NOT_FOUND, f"there is no {what} here that you may see", next_step)
