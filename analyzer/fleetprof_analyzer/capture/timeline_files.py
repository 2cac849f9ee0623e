"""Writes the timeline of a capture into the store: a file per rank beside its summary, then the overview.

Guarantees: a timeline that cannot be made costs nobody the report: the rank is told as one without events; the overview
is written last, and names the files that are there; what an earlier analysis left of ranks that the report does not
have goes after it, where the store lets us delete (the operator's credential may not). Raises StoreError when the store
does not answer.
"""

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fleetprof_api import keys
from fleetprof_api.report.report import Report
from fleetprof_store.base import Store, StoreError

from fleetprof_analyzer.pyramid.fleet import write_fleet
from fleetprof_analyzer.pyramid.writer import MOST_FILE_BYTES, write_rank
from fleetprof_analyzer.rank.summary import TraceFindings

_OF_A_RANK: Final = re.compile(r"rank-(0|[1-9]\d{0,6})\.bin")

log = logging.getLogger(__name__)


class RankTimeline:
    """The file of one rank, between the reading of its trace and its writing."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._data = b""

    def make(self, found: TraceFindings) -> None:
        """Makes the file. Never raises: a fault of ours, or a lack of memory, is logged, and there is none."""
        try:
            self._data = write_rank(found, self._rank)
        except Exception:
            log.exception("no timeline of rank %d", self._rank)

    def keep(self, path: Path) -> None:
        """Writes what was made into a file, if anything was."""
        if self._data:
            path.write_bytes(self._data)

    def write(self, store: Store, namespace: str, uid: str) -> None:
        """Writes what was made, if anything was."""
        if 0 < len(self._data) <= MOST_FILE_BYTES:
            store.put(keys.rank_timeline_key(namespace, uid, self._rank), self._data)


def write_overview(store: Store, namespace: str, uid: str, report: Report, courses: Mapping[str, bytes]) -> None:
    """Writes the overview of the report's ranks, with the files that are in the store, and deletes those of others.

    `courses` holds what each source's iterations were made of, moment by moment.
    """
    prefix = keys.timeline_prefix(namespace, uid)
    files = {
        int(found[1]): info.size_bytes
        for info in store.list(prefix)
        if (found := _OF_A_RANK.fullmatch(info.key.removeprefix(prefix)))
    }
    store.put(keys.fleet_timeline_key(namespace, uid), write_fleet(report, files, courses))
    stale = sorted(files.keys() - {entry.rank for entry in report.ranks})
    try:
        store.delete([keys.rank_timeline_key(namespace, uid, rank) for rank in stale])
    except StoreError as error:
        log.warning("the timelines of ranks that are no longer in the report stay in the store: %s", error)
