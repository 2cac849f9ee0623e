"""Posts to an address of the administrator's until it is taken, or given up.

Guarantees: redirects are not followed; an answer is not read; after some tries it is given up, with a line in the log,
which never holds the address: it may be a secret.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import aiohttp

TRIES: Final = 5
_CALL_S: Final = 10.0

log = logging.getLogger(__name__)


class Delivery:
    """`pause_s` is doubled after each try."""

    def __init__(self, pause_s: float = 2.0) -> None:
        self._pause_s = pause_s

    async def post(
        self,
        url: str,
        body: bytes,
        make_headers: Callable[[], Mapping[str, str]],
        what: str,
        context: ssl.SSLContext | None = None,
    ) -> bool:
        """Tells whether it was taken. `make_headers` is asked at each try; `what` names it in the log."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_CALL_S)) as session:
            for tries in range(TRIES):
                if tries:
                    await asyncio.sleep(self._pause_s * 2**tries)
                headers = {"Content-Type": "application/json", **make_headers()}
                try:
                    async with session.post(
                        url, data=body, headers=headers, allow_redirects=False, ssl=context or True
                    ) as answer:
                        if answer.status < 300:
                            return True
                        log.info("%s was answered with status %d", what, answer.status)
                except (aiohttp.ClientError, TimeoutError, ValueError) as problem:
                    log.info("%s did not arrive: %s", what, type(problem).__name__)
        log.warning("%s is given up after %d tries", what, TRIES)
        return False


def read_key(folder: Path, name: str) -> str:
    """One key of a mounted Secret; "" where it is not there. Raises OSError, UnicodeDecodeError."""
    path = folder / name
    return path.read_text().strip() if path.exists() else ""


def is_address(url: str) -> bool:
    """Tells whether it can be posted to."""
    return url.startswith(("https://", "http://"))
