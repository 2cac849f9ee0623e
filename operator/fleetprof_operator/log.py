"""The additions of the operator's processes to the log that all our processes write (fleetprof_api.process.log).

Guarantees: kopf's own lines name the request that they are about, with the same keys as ours; the audit log is written
whatever the level; other people's loggers say only what is wrong.
"""

import logging
from typing import Final

from fleetprof_api.process import log

AUDIT: Final = "fleetprof.audit"
_QUIET: Final = ("kopf", "aiohttp", "botocore", "boto3", "urllib3")


def set_up_logging(level: str) -> None:
    """Logs as JSON lines on stderr."""
    log.set_up_logging(level)
    for handler in logging.getLogger().handlers:
        handler.addFilter(name_request)
    logging.getLogger(AUDIT).setLevel(logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def name_request(record: logging.LogRecord) -> bool:
    """Gives a record of kopf's the keys of the request that it is about. Keeps every record."""
    ref = getattr(record, "k8s_ref", None)
    if isinstance(ref, dict):
        known = {"capture": ref.get("uid"), "namespace": ref.get("namespace"), "name": ref.get("name")}
        record.fields = {key: str(value) for key, value in known.items() if value} | getattr(record, "fields", {})
    return True
