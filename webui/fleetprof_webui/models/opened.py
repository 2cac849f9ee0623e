"""The traces and reports that a person opened with `fleetprof ui PATH…`, during and after reading."""

from typing import Annotated

from msgspec import Meta

from fleetprof_webui.models.model import Model


class OpenedCapture(Model):
    """A capture that was made of it."""

    namespace: str
    uid: str
    title: str


class Opened(Model):
    """One folder, one report, or all files that were given together."""

    what: str
    count: Annotated[int, Meta(description="traces that were read")]
    total: Annotated[int, Meta(description="traces in all; 0 while they are not counted, and of a report")]
    source: Annotated[str, Meta(description='the trace that was read last; ""')]
    captures: list[OpenedCapture]
    problem: Annotated[str, Meta(description='why nothing came of it; ""')]


class OpenedPage(Model):
    """`GET /opened`."""

    items: list[Opened]
    finished: bool
    seconds: Annotated[float, Meta(description="how long the analysis took, or takes until now")]
