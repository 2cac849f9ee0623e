"""Structured logs: one JSON object per line on stderr, with the request that a line is about.

Guarantees: a line is never split and never fails for what it holds; `request`, `namespace` and `name` come from the
task that logs (`about`), or from kopf's own records.
"""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

_ABOUT: Final[ContextVar[dict[str, str] | None]] = ContextVar("about", default=None)
AUDIT: Final = "fleetprof.audit"
_QUIET: Final = ("kopf", "aiohttp", "botocore", "boto3", "urllib3")


@contextmanager
def about(*, uid: str, namespace: str, name: str) -> Iterator[None]:
    """What this task, and those that it starts, log meanwhile is about that request."""
    token = _ABOUT.set({"request": uid, "namespace": namespace, "name": name})
    try:
        yield
    finally:
        _ABOUT.reset(token)


class JsonLines(logging.Formatter):
    """A record as a JSON object: time, level, logger, message, error, the request, and the record's own `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": at, "level": record.levelname.lower(), "logger": record.name}
        line["message"] = record.getMessage()
        line |= _ABOUT.get() or _from_kopf(record)
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def set_up_logging(level: str) -> None:
    """Logs as JSON lines on stderr. Other people's loggers say only what is wrong, unless at `debug`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger(AUDIT).setLevel(logging.INFO)
    if level != "debug":
        for name in _QUIET:
            logging.getLogger(name).setLevel(logging.WARNING)


def _from_kopf(record: logging.LogRecord) -> dict[str, str]:
    ref = getattr(record, "k8s_ref", None)
    if not isinstance(ref, dict):
        return {}
    known = {"request": ref.get("uid"), "namespace": ref.get("namespace"), "name": ref.get("name")}
    return {field: str(value) for field, value in known.items() if value}
