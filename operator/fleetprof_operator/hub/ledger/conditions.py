"""The conditions of one ledger: what is known of each aspect of a request, and since when.

Guarantees: pure; one condition of each type, in the order of `_TYPES`; the time is that of the last change of status.
"""

from typing import Final

from fleetprof_api.ledger import Condition, Ledger

from fleetprof_operator.hub.ledger.outcome import count_noun

_TYPES: Final = ("TargetsResolved", "Captured", "Uploaded", "Analyzed", "Succeeded")


class Conditions:
    """The conditions of one ledger, for its book alone. Nobody else changes `ledger.conditions`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def find(self, kind: str) -> Condition | None:
        """The condition of that type."""
        return next((c for c in self._ledger.conditions if c.type == kind), None)

    def set(self, kind: str, status: str, reason: str, message: str, now_unix_ns: int) -> bool:
        """Replaces the condition of that type. False when it says the same already."""
        known = self.find(kind)
        if known is not None and (known.status, known.reason, known.message) == (status, reason, message):
            return False
        since = known.transition_unix_ns if known is not None and known.status == status else now_unix_ns
        fresh = Condition(type=kind, status=status, reason=reason, message=message, transition_unix_ns=since)
        others = [c for c in self._ledger.conditions if c.type != kind]
        self._ledger.conditions = sorted([*others, fresh], key=lambda c: _TYPES.index(c.type))
        return True

    def set_progress(
        self, kind: str, open_ranks: int, finished_ranks: int, stage: str, failed: str, now_unix_ns: int
    ) -> None:
        """Captured or Uploaded, from how many ranks have come so far; Unknown with the reason `stage` while some go on.

        `failed` says why others have not, as a list of reasons.
        """
        ranks = len(self._ledger.entries)
        summary = f"{finished_ranks} of {count_noun(ranks, 'rank')}" + (f"; failed: {failed}" if failed else "")
        if open_ranks:
            self.set(kind, "Unknown", stage, summary, now_unix_ns)
        elif not finished_ranks:
            self.set(kind, "False", "AllRanksFailed", summary, now_unix_ns)
        else:
            whole = finished_ranks == ranks
            self.set(kind, "True", f"All{kind}" if whole else f"Partially{kind}", summary, now_unix_ns)
