"""The body of a write: JSON of a model, within a limit."""

from http import HTTPStatus
from typing import Final, TypeVar

import msgspec
from fastapi import Request

from fleetprof_webui.models.model import Model
from fleetprof_webui.problems import RequestRefused

_MOST_BYTES: Final = 128 << 10
_Body = TypeVar("_Body", bound=Model)


async def read_body(request: Request, kind: type[_Body]) -> _Body:
    """The body. Raises RequestRefused where it is too long or not as the model says."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > _MOST_BYTES:
            raise RequestRefused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is longer than {_MOST_BYTES >> 10} KiB", "send less"
            )
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRefused(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"the body is no {kind.__name__}: {error}", "see /openapi.json"
        ) from None
