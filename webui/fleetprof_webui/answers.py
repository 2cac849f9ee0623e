"""Answers as JSON: encoded by msgspec, described in OpenAPI by the same types.

Guarantees: an answer is made of `models` and leaves as it was encoded; the service's document names every type.
"""

from typing import Any

import msgspec
from starlette.responses import Response

from fleetprof_webui.models.model import Model


def answer(model: Model, *, cache: str = "no-store") -> Response:
    """200 with this document; it differs by `Accept` from the page of the same address."""
    return Response(
        msgspec.json.encode(model),
        media_type="application/json",
        headers={"Cache-Control": cache, "Vary": "Accept, Cookie"},
    )


def describes(model: type[Model], *, media_type: str = "application/json") -> dict[str, Any]:
    """The arguments of a route's decorator, so that OpenAPI says what it answers."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {
        "response_model": None,
        "responses": {200: {"description": summary(model), "content": {media_type: {"schema": schema}}}},
    }


def takes(model: type[Model]) -> dict[str, Any]:
    """The same for a body."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def summary(model: type[Model]) -> str:
    """The first line of its docstring."""
    return (model.__doc__ or "").strip().splitlines()[0]
