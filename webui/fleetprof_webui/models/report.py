"""The files of one report; what they say is in its slices (`fleetprof_api.slices`), which pass as they are."""

from typing import Annotated

from msgspec import Meta

from fleetprof_webui.models.model import Model


class File(Model):
    """Something to download."""

    name: Annotated[str, Meta(description="below files/")]
    size_bytes: int


class ReportFiles(Model):
    """`GET /reports/{namespace}/{uid}`."""

    namespace: str
    uid: str
    files: Annotated[list[File], Meta(description="of the report and of the first 16 ranks")]
    has_timeline: bool
    has_tables: Annotated[bool, Meta(description="this service can write tables.zip")]
