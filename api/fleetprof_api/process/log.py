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

REPEAT_S: Final = 300.0
_MOST_REMEMBERED: Final = 1000
_OURS: Final = (
    "fleetprof", "fleetprof_agent", "fleetprof_analyzer", "fleetprof_api", "fleetprof_cli", "fleetprof_operator",
    "fleetprof_sidecar", "fleetprof_store", "fleetprof_webui",
)  # fmt: skip
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


class Repetitions(logging.Filter):
    """Lets a warning pass once in a while: an outage is one line, however often it is met.

    The line after a while says how often it came meanwhile.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, str], tuple[float, int]] = {}  # when it passed, and how often it did not since

    def filter(self, record: logging.LogRecord) -> bool:
        """Tells whether to write it."""
        if record.levelno != logging.WARNING:
            return True
        text = record.getMessage()
        passed, held_back = self._last.get((record.name, text), (0.0, 0))
        if passed and record.created - passed < REPEAT_S:
            self._last[record.name, text] = passed, held_back + 1
            return False
        if held_back:
            record.msg, record.args = f"{text} (and {held_back} times since it was said last)", ()
        if len(self._last) >= _MOST_REMEMBERED:
            self._last.clear()
        self._last[record.name, text] = record.created, 0
        return True


def set_up_logging(level: str) -> None:
    """Sends everything of ours at or above `level` to stderr; at `debug`, of other people's code from `info` on.

    What libraries say at `debug` drowns our own lines, and has headers and signatures in it.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(Repetitions())
    logging.basicConfig(level="INFO" if level == "debug" else level.upper(), handlers=[handler], force=True)
    for package in _OURS:
        logging.getLogger(package).setLevel(logging.DEBUG if level == "debug" else logging.NOTSET)
