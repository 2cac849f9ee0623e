"""The service's OpenAPI document: FastAPI's routes and parameters, and our types of answers.

Guarantees: depends on the code alone, so that `make lint` can hold the committed one to it.
"""

import inspect
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fleetprof_api.report.diff import Diff
from fleetprof_api.slices.table import SLICES

from fleetprof_webui.models import fleet, losses, opened, person, policies, report, requests, stacks, telemetry
from fleetprof_webui.models.model import Model
from fleetprof_webui.problems import MEDIA_TYPE

_MODULES: Final = (fleet, losses, telemetry, policies, requests, stacks, report, opened, person)
_REFERENCE: Final = "#/components/schemas/{name}"
_ERROR: Final = {
    "description": "The request cannot be answered",
    "content": {MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(name="ProblemDetails")}}},
}


def list_models() -> list[type[Model]]:
    """All types of answers, in the order of their modules."""
    return [
        model
        for module in _MODULES
        for _, model in inspect.getmembers(module, inspect.isclass)
        if issubclass(model, Model) and model.__module__ == module.__name__
    ]


def make_document(app: FastAPI) -> dict[str, Any]:
    """OpenAPI 3.1 of all routes."""
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    _, components = msgspec.json.schema_components(
        [*list_models(), *(kind.model for kind in SLICES.values()), Diff], ref_template=_REFERENCE
    )
    for schema in components.values():
        _require_all(schema)
    document["components"] = {"schemas": dict(sorted(components.items()))}
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _ERROR
    return document


def _require_all(schema: dict[str, Any]) -> None:
    """We encode every field, also those that readers of a report may find absent."""
    if schema.get("type") == "object" and "properties" in schema:
        schema["required"] = list(schema["properties"])
