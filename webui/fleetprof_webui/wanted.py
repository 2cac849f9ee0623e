"""A capture that a person wants: the YAML of their form, read as every other way of asking reads it."""

from fleetprof_api.request import InvalidRequest, ProfileRequest, load_request

from fleetprof_webui.models.requests import CaptureCheck
from fleetprof_webui.service import CaptureCallRefused


def read_capture(yaml: str) -> ProfileRequest:
    """The request. Raises CaptureCallRefused with every field that is wrong."""
    try:
        return load_request(yaml)
    except (InvalidRequest, RecursionError) as error:
        problems = tuple(error.problems) if isinstance(error, InvalidRequest) else ()
        raise CaptureCallRefused(
            "this is not a valid ProfileRequest", "docs/request.md describes every field", problems
        ) from None


def check_fields(yaml: str, namespace: str) -> CaptureCheck:
    """The request by its fields alone, where nobody else can be asked; `namespace` "" is that of the document.

    Raises CaptureCallRefused.
    """
    request = read_capture(yaml)
    return CaptureCheck(
        namespace=namespace or request.metadata.namespace or "",
        checked_by="this service",
        message="every field is valid; whether the capture is taken is decided when it is asked for",
    )
