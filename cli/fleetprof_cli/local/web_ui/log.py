"""The terminal's lines about a local web UI: the lines of its audit log as sentences for the person who sits there.

Guarantees: a line that this module does not know is shown as it is; nothing is shown about somebody who is not signed
in, because each open page of a browser asks again and again after the service has restarted.
"""

import logging
from http import HTTPStatus

import msgspec

_WRITES = {
    ("POST", "/session"): "a browser has signed in",
    ("DELETE", "/session"): "a browser has signed out",
    ("POST", "/requests"): "a capture was asked for in the web UI",
}


def log_to_terminal() -> None:
    """Shows this process's log on stderr in words."""
    logging.basicConfig(level=logging.INFO, handlers=[make_handler()])


def make_handler() -> logging.Handler:
    """Writes to stderr; leaves out who is not signed in."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Sentences("fleetprof: %(message)s"))
    handler.addFilter(_concerns_people)
    return handler


class _Answer(msgspec.Struct):
    method: str
    path: str
    status: int


class _Sentences(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        if (line := _read_answer(record)) is not None:
            record.message = _describe(line.method, line.path, line.status)
        return super().formatMessage(record)


def _describe(method: str, path: str, status: int) -> str:
    if status >= HTTPStatus.BAD_REQUEST:
        return f"the web UI refused {method} {path}: {status} {HTTPStatus(status).phrase}"
    if method == "POST" and path.endswith("/cancel"):
        return f"a capture was cancelled in the web UI: {path.removesuffix('/cancel').removeprefix('/requests/')}"
    return _WRITES.get((method, path), f"the web UI answered {method} {path}: {status}")


def _concerns_people(record: logging.LogRecord) -> bool:
    line = _read_answer(record)
    return line is None or line.status != HTTPStatus.UNAUTHORIZED


def _read_answer(record: logging.LogRecord) -> _Answer | None:
    if record.name != "fleetprof.audit":
        return None
    try:
        return msgspec.json.decode(record.getMessage(), type=_Answer)
    except msgspec.DecodeError:
        return None
