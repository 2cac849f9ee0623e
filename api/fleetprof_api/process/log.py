"""Logs as JSON lines on stderr, with the same keys in every process, so that one query finds a capture in all of them.

==============  ================================================================================
`time`          RFC 3339, UTC, with milliseconds
`level`         debug, info, warning, error, critical
`logger`        the Python module; `fleetprof.audit` for the audit log
`message`       one sentence
`capture`       the capture's id: in Kubernetes the uid of its ProfileRequest
`namespace`     the ProfileRequest's
`name`          the ProfileRequest's
`process_id`    the rank's process, within its sidecar
`exception`     the traceback of an error
==============  ================================================================================

The last five stand only where they are known. A record may bring more keys as `extra={"fields": {...}}`.
Guarantees: a line is one JSON object in ASCII, so that nothing that it holds can split it or steer a terminal.
"""

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

_ABOUT: Final[ContextVar[dict[str, str] | None]] = ContextVar("about", default=None)


@contextmanager
def about(**keys: str) -> Iterator[None]:
    """This task, and those that it starts, log these keys meanwhile, e.g. `capture`, `namespace` and `name`."""
    token = _ABOUT.set(keys)
    try:
        yield
    finally:
        _ABOUT.reset(token)


class JsonLines(logging.Formatter):
    """A record as one line. `capture` and `process_id` may also come as the record's own attributes (`extra`)."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= _ABOUT.get() or {}
        line |= {key: str(record.__dict__[key]) for key in ("capture", "process_id") if key in record.__dict__}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def set_up_logging(level: str) -> None:
    """Sends everything at or above `level` to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
