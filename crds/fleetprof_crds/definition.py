"""The CustomResourceDefinition of ProfileRequests: Kubernetes' names, columns and selectable fields around the schema.

Guarantees: each column and each selectable field is one of the schema.
"""

import re
from typing import Any, Final

from fleetprof_api.request import API_VERSION, KIND, Metadata, ProfileRequest, Status
from fleetprof_api.request.rules import CEL, Cel

from fleetprof_crds.structural_schema import Schema, make_schema

_GROUP, _VERSION = API_VERSION.split("/")
_PLURAL: Final = "profilerequests"
_SELECTABLE: Final = ("spec.target.workload.kind", "spec.target.workload.name", "spec.traces", "spec.suspend")
# name, field, what it says; the others are shown by `-o wide`
_COLUMNS: Final = (
    ("Target", "status.target", "What is profiled, as kind/name or as a label selector."),
    ("Captured", "status.ranks.captured", "Ranks whose trace is complete."),
    ("Ranks", "status.ranks.targeted", "Ranks that are to be captured."),
    (
        "State",
        'status.conditions[?(@.type=="Succeeded")].reason',
        "How the request stands, which is the reason of its Succeeded condition.",
    ),
    ("Age", "metadata.creationTimestamp", "Time since the request was made."),
)
_WIDE_COLUMNS: Final = (
    (
        "Busy-Permille",
        "status.headline.busyPermille",
        "Share of the window in which the GPUs were busy, or the hosts where there is none, in permille.",
    ),
    ("Straggler", "status.headline.straggler", "The rank that holds the others back."),
    ("Requester", "status.requester", "Who made the request, by admission's word."),
    ("Report", "status.reportURL", "Where the report is."),
)


def make_definition() -> dict[str, Any]:
    """The CRD as a document."""
    schema = _make_request_schema()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{_PLURAL}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": _PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["profreq"],
                "categories": ["fleetprof"],
            },
            "versions": [
                {
                    "name": _VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "selectableFields": [{"jsonPath": f".{path}"} for path in _SELECTABLE if _find(schema, path)],
                    "additionalPrinterColumns": [
                        *(_make_column(schema, *column) for column in _COLUMNS),
                        *(_make_column(schema, *column, priority=1) for column in _WIDE_COLUMNS),
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


def _make_request_schema() -> Schema:
    """The schema of a request as Kubernetes stores it, with the status, and with what it checks of metadata itself."""
    schema = make_schema(ProfileRequest)
    fields = schema["properties"]
    fields["apiVersion"] = {"description": fields["apiVersion"]["description"], "type": "string", "maxLength": 317}
    fields["kind"] = {"description": fields["kind"]["description"], "type": "string", "maxLength": 63}
    # The API server lets a CRD say of metadata only which fields the root's rules read.
    fields["metadata"] = {"type": "object", "properties": {"name": {"type": "string"}}}
    fields["status"] = make_schema(Status) | {"description": fields["status"]["description"]}
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
    kind = "date" if path == "metadata.creationTimestamp" else _find(schema, path)["type"]
    return {"name": name, "type": kind, "jsonPath": f".{path}", **more, "description": description}


def _find(schema: Schema, path: str) -> Schema:
    """The schema of the field at a path. Raises KeyError where there is none."""
    for part in re.findall(r"(\w+)(?:\[[^]]*\])?[.]?", path):
        schema = schema["properties"][part]
        schema = schema.get("items", schema)
    return schema
