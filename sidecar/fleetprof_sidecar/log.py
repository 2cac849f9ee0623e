"""Logs as JSON lines on stderr, one object each, with the capture's id where there is one."""

import json
import logging
import sys
import time


class JsonLines(logging.Formatter):
    """`time`, `level`, `logger`, `message`, and `capture`, `process_id` where the record carries them."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in ("capture", "process_id"):
            if name in record.__dict__:
                line[name] = str(record.__dict__[name])
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def set_up_logging(level: str) -> None:
    """Sends everything at or above `level` to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
