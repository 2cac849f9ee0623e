"""The canary of one ledger: the line of the rank that records first, and what became of it.

Guarantees: pure, time is passed in; the line only moves forward within one try, and each try has a line of its own.
"""

import msgspec
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Canary, CanaryVerdict, Ledger, LedgerEntry, Reason, merge_entries

from fleetprof_operator.hub.ledger.lines import fail_line, open_line
from fleetprof_operator.hub.ledger.messages import to_entry
from fleetprof_operator.hub.planning.rank_targets import RankTarget


class CanaryLine:
    """The canary of one ledger. Nobody else changes `ledger.canary`, and here too it is only replaced."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @property
    def known(self) -> Canary:
        """All of it as it stands, not to be changed; an empty one before the first try."""
        return self._ledger.canary or Canary()

    @property
    def entry(self) -> LedgerEntry | None:
        """The line of the latest try; None before the first."""
        return self.known.entry

    def omit(self, message: str) -> None:
        """There is no canary, for that reason."""
        self._ledger.canary = Canary(verdict=CanaryVerdict.NOT_NEEDED, message=message)

    def begin(self, target: RankTarget, now_unix_ns: int) -> LedgerEntry:
        """Opens the line of one more try."""
        known, entry = self.known, open_line(target, now_unix_ns)
        before = known.entry.time_cost if known.entry is not None else None
        earlier = [*known.earlier, before] if before is not None and before.iteration_ns else known.earlier
        self._ledger.canary = msgspec.structs.replace(known, tries=known.tries + 1, earlier=earlier, entry=entry)
        return entry

    def apply(self, event: pb.CaptureEvent) -> bool:
        """Merges what the sidecar says into the line. False when the event is about another process."""
        known = self.entry
        if known is None or (event.process_id, event.rank) != (known.process_id, known.rank):
            return False
        self._replace(merge_entries(known, to_entry(event, known)))
        return True

    def fail(self, entry: LedgerEntry, reason: Reason, message: str, now_unix_ns: int) -> LedgerEntry:
        """This try ends without a trace."""
        failed = fail_line(entry, reason, message, now_unix_ns)
        self._replace(failed)
        return failed

    def conclude(self, verdict: CanaryVerdict, message: str) -> None:
        """Notes the end of the canary."""
        self._ledger.canary = msgspec.structs.replace(self.known, verdict=verdict, message=message)

    def _replace(self, entry: LedgerEntry) -> None:
        self._ledger.canary = msgspec.structs.replace(self.known, entry=entry)
