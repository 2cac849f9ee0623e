"""A ledger's lines: found, counted and grouped without going through all of them.

Ten thousand ranks report one by one. What each message costs must not grow with their number, so
what every message asks for (whose line is it, is any still open, how many ranks are where) is kept up to date here.

Guarantees: pure; the answers are those that going through `ledger.entries` would give; lines are in rank order after
`settle`, which is to be called before they are shown or written.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from fleetprof_api.ledger import Ledger, LedgerEntry, RankState, Reason, is_final

from fleetprof_operator.hub.planning.rank_targets import RankTarget


def open_line(target: RankTarget, now_unix_ns: int) -> LedgerEntry:
    """The line of a rank that is asked now."""
    return LedgerEntry(
        rank=target.rank,
        process_id=target.process.process_id,
        sidecar_id=target.sidecar_id,
        pod_name=target.pod_name,
        pod_uid=target.pod_uid,
        node_name=target.node_name,
        pid=target.process.pid,
        rank_source=target.rank_source,
        asked_unix_ns=now_unix_ns,
    )


def fail_line(entry: LedgerEntry, reason: Reason, message: str, now_unix_ns: int) -> LedgerEntry:
    """The line of a rank that ends without a trace in the store."""
    return msgspec.structs.replace(
        entry, state=RankState.FAILED, reason=reason, message=message, failed_unix_ns=now_unix_ns
    )


class Lines:
    """The lines of one ledger. Its book alone adds, replaces and removes them, and nobody else touches `entries`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._places: dict[tuple[str, str], int] = {}
        self._open: dict[str, set[str]] = {}  # sidecar → its processes whose line is not final
        self._sorted = True
        self._stands = Counter[tuple[RankState, bool, Reason | None]]()
        self._sidecars = Counter[str]()
        self.open_count = 0
        entries, ledger.entries = ledger.entries, []
        self.add(entries)
        self.settle()

    def find(self, sidecar_id: str, process_id: str) -> LedgerEntry | None:
        """The line of this process of this sidecar, None: it was not asked."""
        place = self._places.get((sidecar_id, process_id))
        return None if place is None else self._ledger.entries[place]

    def add(self, entries: Iterable[LedgerEntry]) -> None:
        """Opens lines; each for a (sidecar, process) of its own, but for ranks that nobody sees."""
        for entry in entries:
            self._places[entry.sidecar_id, entry.process_id] = len(self._ledger.entries)
            self._ledger.entries.append(entry)
            self._count(entry, 1)
            if entry.sidecar_id:
                self._sidecars[entry.sidecar_id] += 1
        self._sorted = False

    def replace(self, known: LedgerEntry, fresh: LedgerEntry) -> None:
        """Puts a line into another's place; both are of the same process."""
        self._ledger.entries[self._places[known.sidecar_id, known.process_id]] = fresh
        if _standing(known) != _standing(fresh):
            self._count(known, -1)
            self._count(fresh, 1)

    def clear(self) -> None:
        """Forgets all lines."""
        self._ledger.entries = []
        self._places.clear()
        self._open.clear()
        self._stands.clear()
        self._sidecars.clear()
        self.open_count = 0

    def settle(self) -> None:
        """Brings the lines into rank order."""
        if self._sorted:
            return
        self._ledger.entries.sort(key=lambda e: (e.rank, e.sidecar_id, e.process_id))
        self._places = {(e.sidecar_id, e.process_id): place for place, e in enumerate(self._ledger.entries)}
        self._sorted = True

    def open_entries(self) -> list[LedgerEntry]:
        """Lines that can still change."""
        return [entry for entry in self._ledger.entries if not is_final(entry)]

    def open_of(self, sidecar_id: str) -> list[LedgerEntry]:
        """The open lines of one sidecar, in rank order."""
        processes = self._open.get(sidecar_id, ())
        places = sorted(self._places[sidecar_id, process_id] for process_id in processes)
        return [self._ledger.entries[place] for place in places]

    def is_open(self, sidecar_id: str, process_id: str) -> bool:
        """Tells whether that process has a line that can still change."""
        return process_id in self._open.get(sidecar_id, ())

    def open_sidecars(self) -> list[str]:
        """Sidecars with a line that can still change."""
        return list(self._open)

    def sidecars(self) -> list[str]:
        """All sidecars that have a line."""
        return sorted(self._sidecars)

    def count_of(self, sidecar_id: str) -> int:
        """The number of a sidecar's lines."""
        return self._sidecars[sidecar_id]

    def count(self, *states: RankState) -> int:
        """The number of lines in one of these states."""
        return sum(number for (state, _, _), number in self._stands.items() if state in states)

    def count_written(self) -> int:
        """The number of ranks whose traces were complete once, whatever became of them."""
        return sum(number for (_, written, _), number in self._stands.items() if written)

    def failures(self) -> Mapping[Reason, int]:
        """The number of ranks that failed, by reason."""
        counts = Counter[Reason]()
        for (state, _, reason), number in self._stands.items():
            if state is RankState.FAILED:
                counts[reason or Reason.INTERNAL] += number
        return +counts

    def _count(self, entry: LedgerEntry, sign: int) -> None:
        state = entry.state
        self._stands[_standing(entry)] += sign
        if state is RankState.UPLOADED or state is RankState.FAILED:
            return
        self.open_count += sign
        processes = self._open.setdefault(entry.sidecar_id, set())
        if sign > 0:
            processes.add(entry.process_id)
        else:
            processes.discard(entry.process_id)
            if not processes:
                del self._open[entry.sidecar_id]


def _standing(entry: LedgerEntry) -> tuple[RankState, bool, Reason | None]:
    """The key that lines are counted by: state, whether the trace was complete once, reason."""
    state = entry.state
    written = entry.written_unix_ns > 0 or state is RankState.WRITTEN or state is RankState.UPLOADED
    return state, written, entry.reason
