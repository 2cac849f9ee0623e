"""The downloads of a capture's folder in the store, and what a name below `files/` means.

Guarantees: a name is matched as a whole against what the layout knows; nothing else of the store can be named.
"""

import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Final

from fleetprof_api import keys
from fleetprof_store.base import NotFound, Store

from fleetprof_webui.models.report import File, ReportFiles

_OF_REPORT: Final = ("report.json", "report.html", "ledger.json", "request.json")
_TRACE: Final = "trace.json.gz"
_OF_RANK: Final = (_TRACE, "samples.json.gz", "summary.json.gz")
_RANK_FILE: Final = re.compile(r"ranks/(0|[1-9][0-9]{0,8})/([a-z.]+)")
_TIMELINE_FILE: Final = re.compile(r"[a-z][a-z0-9-]{0,63}(\.[a-z0-9]{1,8}){1,3}")
_MOST_RANKS: Final = 16


@dataclass(frozen=True, slots=True)
class Download:
    """An object as it is sent: its key, its type, the name that a browser saves it under; whether it is a trace."""

    key: str
    media_type: str
    file_name: str
    is_trace: bool = False


def list_files(store: Store, namespace: str, uid: str) -> ReportFiles:
    """The report's files, and those of the first ranks that have any. Raises StoreError."""
    prefix = keys.request_prefix(namespace, uid)
    sizes = {info.key.removeprefix(prefix): info.size_bytes for info in store.list(prefix)}
    of_ranks = [
        (int(found[1]), name) for name in sizes if (found := _RANK_FILE.fullmatch(name)) and found[2] in _OF_RANK
    ]
    shown = set(sorted({rank for rank, _ in of_ranks})[:_MOST_RANKS])
    names: list[str] = [name for name in _OF_REPORT if name in sizes]
    names += [name for rank, name in sorted(of_ranks) if rank in shown]
    files = [File(name=name, size_bytes=sizes[name]) for name in names]
    # Written after all other files of the timeline.
    has_timeline = keys.fleet_timeline_key(namespace, uid).removeprefix(prefix) in sizes
    return ReportFiles(
        namespace=namespace,
        uid=uid,
        files=files,
        has_timeline=has_timeline,
        has_tables=can_write_tables(),
    )


@cache
def can_write_tables() -> bool:
    """Tells whether this service has what Parquet files need: pyarrow, which is no dependency of it."""
    return find_spec("pyarrow") is not None


def find_download(namespace: str, uid: str, name: str) -> Download | None:
    """The meaning of a name below `files/`; None where it means nothing."""
    prefix = keys.request_prefix(namespace, uid)
    rank = _RANK_FILE.fullmatch(name)
    if name not in _OF_REPORT and not (rank and rank[2] in _OF_RANK):
        return None
    plain = name.rpartition("/")[2]
    ending = plain.partition(".")[2]
    media_type = {"json": "application/json", "html": "text/html; charset=utf-8", "json.gz": "application/gzip"}[ending]
    file_name = f"{uid}-rank{rank[1]}-{plain}" if rank else f"{uid}-{plain}"
    return Download(prefix + name, media_type, file_name, is_trace=plain == _TRACE)


def find_timeline_file(namespace: str, uid: str, name: str) -> Download | None:
    """The meaning of a name below `timeline/`; None where it means nothing."""
    if not _TIMELINE_FILE.fullmatch(name):
        return None
    return Download(keys.timeline_prefix(namespace, uid) + name, "application/octet-stream", name)


def has_report(store: Store, namespace: str, uid: str) -> bool:
    """Tells whether there is a report. Raises StoreError."""
    try:
        store.head(keys.report_key(namespace, uid))
    except NotFound:
        return False
    return True
