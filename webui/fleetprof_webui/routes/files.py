"""Objects of a capture as they lie in the store: streamed, whole or in part.

Guarantees: no more than a few pieces of a file are in memory at once; only names that the layout knows can be asked
for; what a browser shows of a file can run nothing and reach nothing; a pre-signed URL is given only to whoever may
read the trace, for `SIGNED_FOR_S` at most, and is in no log.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from fleetprof_store.base import NotFound, ObjectInfo, SigningStore, Store
from starlette.responses import RedirectResponse, StreamingResponse

from fleetprof_webui.access.viewer import CurrentViewer
from fleetprof_webui.problems import RequestRefused, not_found
from fleetprof_webui.reports.stored_files import Download, find_download, find_timeline_file
from fleetprof_webui.routes.parameters import Namespace, Uid
from fleetprof_webui.service import CurrentService

router = APIRouter(prefix="/reports/{namespace}/{uid}", tags=["files"])

SIGNED_FOR_S: Final = 300
_PIECE_BYTES: Final = 1 << 20
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
REVALIDATE: Final = "private, no-cache"
_FOR_EVER: Final = "private, max-age=31536000, immutable"
# The report's file holds its style. Its script does not run here: whoever wrote the object would run it as the service.
_PAGE_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox allow-popups allow-top-navigation-by-user-activation"
)
_BYTES: Final[dict[str, Any]] = {
    "response_model": None,
    "responses": {
        200: {
            "description": "The file",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
        206: {"description": "The part that `Range` asks for"},
        304: {"description": "It is what `If-None-Match` names"},
    },
}
_TRACES: Final[dict[str, Any]] = {
    **_BYTES,
    "responses": {
        **_BYTES["responses"],
        307: {"description": "A trace that the store hands out itself: a pre-signed URL, good for five minutes"},
    },
}
Name = Annotated[str, Path(min_length=1, max_length=200)]
Version = Annotated[str, Query(max_length=64, description="`version` of the report: lets the browser keep the file")]


Through = Annotated[
    Literal["", "service"],
    Query(description="`service`: does not lead to the store, which a script cannot read"),
]


@router.get("/files/{name:path}", **_TRACES)
def fetch_file(
    request: Request,
    service: CurrentService,
    viewer: CurrentViewer,
    namespace: Namespace,
    uid: Uid,
    name: Name,
    through: Through = "",
) -> Response:
    """report.json, report.html, ledger.json, request.json, ranks/N/trace.json.gz, samples.json.gz, summary.json.gz."""
    viewer.check_namespace(namespace, "file")
    download = find_download(namespace, uid, name)
    if download is None:
        raise not_found("file of this name", f"see what there is: /reports/{namespace}/{uid}")
    if download.is_trace and service.signs_traces and not through and isinstance(service.store, SigningStore):
        return _lead(service.store, download)
    page = download.media_type.startswith("text/html")
    headers = {
        "Content-Disposition": f'{"inline" if page else "attachment"}; filename="{download.file_name}"',
        **({"Content-Security-Policy": _PAGE_POLICY} if page else {}),
    }
    return send_object(request, service.store, download, headers, REVALIDATE)


@router.get("/timeline/{name}", **_BYTES)
def fetch_timeline(
    request: Request,
    service: CurrentService,
    viewer: CurrentViewer,
    namespace: Namespace,
    uid: Uid,
    name: Name,
    v: Version = "",
) -> Response:
    """A file of the timeline's pyramid; its tiles are fetched by `Range`. With `v` the browser keeps it."""
    viewer.check_namespace(namespace, "timeline")
    download = find_timeline_file(namespace, uid, name)
    if download is None:
        raise not_found("part of a timeline of this name", f"see the report: /reports/{namespace}/{uid}")
    return send_object(request, service.store, download, {}, _FOR_EVER if v else REVALIDATE)


@dataclass(frozen=True, slots=True)
class _Part:
    start: int
    length: int


def _lead(store: SigningStore, download: Download) -> Response:
    """To the store, which says itself that the trace is not there."""
    signed = store.sign_read(download.key, lifetime_s=SIGNED_FOR_S, saved_as=download.file_name)
    return RedirectResponse(signed.url, headers={"Cache-Control": "no-store"})


def send_object(request: Request, store: Store, download: Download, headers: dict[str, str], cache: str) -> Response:
    """An object as it is, whole or the part that is asked for, or that it is what the browser has."""
    try:
        info = store.head(download.key)
    except NotFound:
        raise not_found("file of this name", "it may not be made yet, or the store has deleted it") from None
    tag = f'"{info.version}"' if info.version else ""
    headers = {"Cache-Control": cache, "Accept-Ranges": "bytes", "Vary": "Cookie", **headers}
    if tag:
        headers["ETag"] = tag
        if tag in [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    part = _read_range(request, info, tag)
    if part is None:
        headers["Content-Length"] = str(info.size_bytes)
        body: Iterator[bytes] = _pieces(store, download.key)
        return StreamingResponse(body, media_type=download.media_type, headers=headers)
    headers["Content-Length"] = str(part.length)
    headers["Content-Range"] = f"bytes {part.start}-{part.start + part.length - 1}/{info.size_bytes}"
    body = _pieces_of_part(store, download.key, part)
    return StreamingResponse(
        body, status_code=HTTPStatus.PARTIAL_CONTENT, media_type=download.media_type, headers=headers
    )


def _read_range(request: Request, info: ObjectInfo, tag: str) -> _Part | None:
    """The part that is asked for; None for the whole. Several ranges get the whole, as RFC 9110 allows."""
    found = _RANGE.fullmatch(request.headers.get("range", "").replace(" ", ""))
    if found is None or found[0] == "bytes=-" or request.headers.get("if-range", tag) != tag:
        return None
    if not found[1]:
        start, end = max(0, info.size_bytes - int(found[2])), info.size_bytes
    else:
        start = int(found[1])
        end = min(info.size_bytes, int(found[2]) + 1) if found[2] else info.size_bytes
    if start >= end:
        raise RequestRefused(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            f"the file has {info.size_bytes} bytes, and none of them is in the range",
            "fetch the index again: the timeline may have been made anew",
        )
    return _Part(start, end - start)


def _pieces(store: Store, key: str) -> Iterator[bytes]:
    with store.open(key) as stream:
        while piece := stream.read(_PIECE_BYTES):
            yield piece


def _pieces_of_part(store: Store, key: str, part: _Part) -> Iterator[bytes]:
    at, end = part.start, part.start + part.length
    while at < end:
        piece = store.read_range(key, at, min(_PIECE_BYTES, end - at))
        if not piece:
            return
        yield piece
        at += len(piece)
