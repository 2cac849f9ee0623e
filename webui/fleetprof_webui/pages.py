"""The frontend's files: its index for every page, the rest as built.

Guarantees: an address answers a person with the page and a program with JSON, by `Accept`; without a built frontend the
page says how to build it, and the JSON is there all the same; no path leaves the folder of the built files; a file is
sent as the build compressed it to whoever takes that, and not again to whoever has it.
"""

import mimetypes
import re
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import NotModifiedResponse
from starlette.types import ASGIApp, Receive, Scope, Send

STATIC: Final = Path(__file__).parent / "static"
_PAGE: Final = re.compile(r"/(|(fleet|losses|policies|requests|reports|diff|opened|whoami)(/.*)?)")
_DATA: Final = re.compile(r"/(requests|reports)/[^/]+/[^/]+/(events|files/.+|timeline/.+)")
_NOT_BUILT: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>fleetprof</title>
<h1>The pages are not built</h1>
<p>This is a checkout of the source. Build the pages with <code>make webui</code> and load this one again.</p>
<p>The same addresses answer programs with JSON: <code>curl -H 'Accept: application/json'</code>;
what they answer stands in <a href="/openapi.json">/openapi.json</a>.</p>
"""
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_REVALIDATE: Final = "no-cache"
_ENCODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
"""What the build compresses a file with, the smallest first, and the ending of that file's name."""
_NEVER: Final = re.compile(r"q=0(\.0{0,3})?")


class Pages:
    """ASGI middleware that answers for pages and built files, and passes everything else on."""

    def __init__(self, app: ASGIApp, *, folder: Path = STATIC) -> None:
        self._app = app
        self._folder = folder.resolve()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or hands on to the application."""
        response = None
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            response = self._find(scope["path"], Headers(scope=scope))
        await (response or self._app)(scope, receive, send)

    def _find(self, path: str, request_headers: Headers) -> Response | None:
        if _PAGE.fullmatch(path):
            if "text/html" not in request_headers.get("accept", "") or _DATA.fullmatch(path):
                return None
            return send_index(self._folder, request_headers) or HTMLResponse(
                _NOT_BUILT, status_code=503, headers={"Cache-Control": _REVALIDATE, "Vary": "Accept"}
            )
        if "\0" in path:
            return None
        file = (self._folder / path.lstrip("/")).resolve()
        if not file.is_relative_to(self._folder) or not file.is_file():
            return None
        # Names of built assets hold a digest of what is in them.
        cache = _FOR_EVER if path.startswith("/assets/") else _REVALIDATE
        return _send(file, request_headers, {"Cache-Control": cache, "Vary": "Accept-Encoding"})


def send_index(folder: Path, request_headers: Headers) -> Response | None:
    """The page, which shows what its address asks for; None where the pages are not built."""
    index = folder / "index.html"
    if not index.is_file():
        return None
    return _send(index, request_headers, {"Cache-Control": _REVALIDATE, "Vary": "Accept, Accept-Encoding"})


def _send(file: Path, request_headers: Headers, headers: dict[str, str]) -> Response:
    """The file in the smallest form that there is and that is taken; 304 where `If-None-Match` names that form."""
    accepted = _read_accepted(request_headers.get("accept-encoding", ""))
    media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    sent = file
    for encoding, ending in _ENCODINGS:
        compressed = file.with_name(file.name + ending)
        if encoding in accepted and compressed.is_file():
            sent, headers = compressed, {**headers, "Content-Encoding": encoding}
            break
    response = FileResponse(sent, headers=headers, media_type=media_type, stat_result=sent.stat())
    known = [tag.strip().removeprefix("W/") for tag in request_headers.get("if-none-match", "").split(",")]
    return NotModifiedResponse(response.headers) if response.headers["etag"] in known else response


def _read_accepted(header: str) -> set[str]:
    """The encodings that a request takes: those that it names, with any weight but 0."""
    named = [each.replace(" ", "").lower().partition(";") for each in header[:1000].split(",")]
    return {name for name, _, weight in named if not _NEVER.fullmatch(weight)}
