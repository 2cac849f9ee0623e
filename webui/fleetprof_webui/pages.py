"""The frontend's files: its index for every page, the rest as built.

Guarantees: an address answers a person with the page and a program with JSON, by `Accept`; without a built frontend the
page says how to build it, and the JSON is there all the same; no path leaves the folder of the built files.
"""

import re
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import FileResponse, HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

STATIC: Final = Path(__file__).parent / "static"
_PAGE: Final = re.compile(r"/(|(fleet|requests|reports|diff|whoami)(/.*)?)")
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


class Pages:
    """ASGI middleware that answers for pages and built files, and passes everything else on."""

    def __init__(self, app: ASGIApp, *, folder: Path = STATIC) -> None:
        self._app = app
        self._folder = folder.resolve()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or hands on to the application."""
        response = None
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            response = self._find(scope["path"], Headers(scope=scope).get("accept", ""))
        await (response or self._app)(scope, receive, send)

    def _find(self, path: str, accept: str) -> HTMLResponse | FileResponse | None:
        if _PAGE.fullmatch(path):
            if "text/html" not in accept or _DATA.fullmatch(path):
                return None
            index = self._folder / "index.html"
            headers = {"Cache-Control": _REVALIDATE, "Vary": "Accept"}
            if index.is_file():
                return FileResponse(index, headers=headers)
            return HTMLResponse(_NOT_BUILT, status_code=503, headers=headers)
        if "\0" in path:
            return None
        file = (self._folder / path.lstrip("/")).resolve()
        if not file.is_relative_to(self._folder) or not file.is_file():
            return None
        # Names of built assets hold a digest of what is in them.
        cache = _FOR_EVER if path.startswith("/assets/") else _REVALIDATE
        return FileResponse(file, headers={"Cache-Control": cache})
