"""The CustomResourceDefinition of one of our kinds: Kubernetes' names, columns and selectable fields around the schema.

Guarantees: each column and each selectable field is one of the schema.
"""

import re
from typing import Any

from fleetprof_api.request import API_VERSION, Metadata
from fleetprof_api.request.fields import list_fields
from fleetprof_api.request.rules import CEL, Cel

from fleetprof_crds.explanation import add_rules
from fleetprof_crds.kinds import CustomResourceKind
from fleetprof_crds.structural_schema import Schema, make_schema

_GROUP, _VERSION = API_VERSION.split("/")


def make_definition(kind: CustomResourceKind) -> dict[str, Any]:
    """The CRD as a document."""
    schema = _make_schema_of_objects(kind)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short],
                "categories": ["fleetprof"],
            },
            "versions": [
                {
                    "name": _VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "selectableFields": [{"jsonPath": f".{path}"} for path in kind.selectable if _find(schema, path)],
                    "additionalPrinterColumns": [
                        *(_make_column(schema, *column) for column in kind.columns),
                        *(_make_column(schema, *column, priority=1) for column in kind.wide),
                    ],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def find_schema(definition: dict[str, Any]) -> Schema:
    """The schema within a CRD of one version."""
    (version,) = definition["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema


def _make_schema_of_objects(kind: CustomResourceKind) -> Schema:
    """The schema of the kind's objects as they are stored, with the status, and with the rules about metadata."""
    schema = make_schema(kind.document)
    add_rules(schema, (row for row in list_fields(kind.document) if row.path.startswith("spec.")))
    fields = schema["properties"]
    fields["apiVersion"] = {"description": fields["apiVersion"]["description"], "type": "string", "maxLength": 317}
    fields["kind"] = {"description": fields["kind"]["description"], "type": "string", "maxLength": 63}
    # The API server lets a CRD say of metadata only which fields the root's rules read.
    fields["metadata"] = {"type": "object", "properties": {"name": {"type": "string"}}}
    fields["status"] = make_schema(kind.status) | {"description": fields["status"]["description"]}
    longest = make_schema(Metadata)["properties"]["name"]["maxLength"]
    rule = Cel(
        f"size(self.metadata.name) <= {longest}",
        f"metadata.name must have at most {longest} characters, so that names and labels can be made from it",
        "metadata.name",
    )
    return {
        "description": schema["description"],
        "type": "object",
        "required": ["spec"],
        CEL: [rule.to_schema()],
        "properties": fields,
    }


def _make_column(schema: Schema, name: str, path: str, description: str, **more: int) -> dict[str, Any]:
    return {"name": name, "type": _find_type(schema, path), "jsonPath": f".{path}", **more, "description": description}


def _find_type(schema: Schema, path: str) -> str:
    if path == "metadata.creationTimestamp":
        return "date"
    field = _find(schema, path)
    found: str = "date" if field.get("format") == "date-time" else field["type"]
    return found


def _find(schema: Schema, path: str) -> Schema:
    """The schema of the field at a path. Raises KeyError where there is none."""
    for part in re.findall(r"(\w+)(?:\[[^]]*\])?[.]?", path):
        schema = schema["properties"][part]
        schema = schema.get("items", schema)
    return schema
