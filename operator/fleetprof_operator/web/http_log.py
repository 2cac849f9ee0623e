"""The log of an HTTP server of ours about its peers: their faults in sum, ours in full.

aiohttp logs a traceback for each request that is malformed (a header that is too long, a second request that is
garbage), and anybody who reaches the port can send those.

Guarantees: what a peer does wrong grows the log by a line per half minute at most; an error of our own is logged whole.
"""

import logging
import time
from typing import Final

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import RequestPayloadError

from fleetprof_operator.web.refusals import Refusals

_OF_PEERS: Final = (HttpProcessingError, RequestPayloadError, ConnectionError)


class _Sum(logging.Filter):
    def __init__(self, logger: logging.Logger, what: str) -> None:
        super().__init__()
        self._refusals = Refusals(logger, what)

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, _OF_PEERS):
            return True
        self._refusals.note("malformed HTTP", time.monotonic())
        return False


def make_http_log(what: str) -> logging.Logger:
    """The logger for the server of `what`, for web.AppRunner."""
    logger = logging.getLogger(f"{__name__}.{what}")
    if not logger.filters:
        logger.addFilter(_Sum(logger, what))
    return logger
