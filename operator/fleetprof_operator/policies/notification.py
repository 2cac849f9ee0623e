"""Tells a webhook of the administrator's what a policy's capture found: Slack-compatible, signed.

The folder is a Secret that the administrator mounts: `url`; optionally `key`, with which the body is signed, and
`template`, the message's text. Users choose none of them, so that no report of theirs can be sent elsewhere.
Guarantees: names and sentences cannot make links or mentions in Slack (its three characters are escaped); redirects are
not followed; an answer is not read; what cannot be delivered is tried again for a while and then given up, in the log.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import string
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import aiohttp

DEFAULT_TEMPLATE: Final = "$workload in $namespace was captured because $cause. $headline $link"
FIELDS: Final = ("namespace", "workload", "policy", "trigger", "cause", "result", "headline", "link", "request")
TRIES: Final = 5
_CALL_S: Final = 10.0
_MOST: Final = 3000

log = logging.getLogger(__name__)


def build_body(template: str, values: Mapping[str, str]) -> bytes:
    """The message: `{"text": …}` with the values put in for `$name`, escaped as Slack wants it; unknown names stay."""
    escaped = {name: _escape(value) for name, value in values.items()}
    return json.dumps({"text": string.Template(template).safe_substitute(escaped)[:_MOST]}).encode()


def sign(key: bytes, at_unix_s: int, body: bytes) -> str:
    """The signature's header: HMAC-SHA256 over `<time>.<body>`, so that an old message cannot be sent anew."""
    return "sha256=" + hmac.new(key, b"%d." % at_unix_s + body, hashlib.sha256).hexdigest()


class Notifier:
    """Sends messages to the address in `folder`; None: nobody is told."""

    def __init__(self, folder: Path | None, pause_s: float = 2.0) -> None:
        self._folder = folder
        self._pause_s = pause_s

    async def send(self, values: Mapping[str, str]) -> bool:
        """Whether it was delivered. False, after some tries, when it is given up, or there is nobody to tell."""
        if self._folder is None:
            return False
        try:
            url, key, template = self._read("url"), self._read("key"), self._read("template")
        except (OSError, UnicodeDecodeError) as problem:
            log.warning("nobody is notified, because the settings cannot be read: %s", problem)
            return False
        if not url.startswith(("https://", "http://")):
            log.warning("nobody is notified, because `url` in %s is no address of http or https", self._folder)
            return False
        body = build_body(template or DEFAULT_TEMPLATE, values)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_CALL_S)) as session:
            for tries in range(TRIES):
                if tries:
                    await asyncio.sleep(self._pause_s * 2**tries)
                if await self._post(session, url, key, body, values["request"]):
                    return True
        log.warning("the notification about request %s is given up after %d tries", values["request"], TRIES)
        return False

    async def _post(self, session: aiohttp.ClientSession, url: str, key: str, body: bytes, request: str) -> bool:
        at = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "X-Fleetprof-Delivery": request,
            "X-Fleetprof-Timestamp": str(at),
        }
        if key:
            headers["X-Fleetprof-Signature"] = sign(key.encode(), at, body)
        try:
            async with session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
                if answer.status < 300:
                    return True
                log.info("the notification about request %s was answered with status %d", request, answer.status)
        except (aiohttp.ClientError, TimeoutError, ValueError) as problem:
            # The address is a secret, and errors of aiohttp may hold it.
            log.info("the notification about request %s did not arrive: %s", request, type(problem).__name__)
        return False

    def _read(self, name: str) -> str:
        assert self._folder is not None
        path = self._folder / name
        return path.read_text().strip() if path.exists() else ""


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
