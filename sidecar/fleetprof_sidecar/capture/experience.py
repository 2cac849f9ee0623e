"""What the last recordings of each process cost: an estimate of the next one, for when the hub has none.

Guarantees: one entry per process and kind of recording; a process that is gone is forgotten.
"""

from collections.abc import Collection
from typing import Final

from fleetprof_api.ledger import RecordingEstimate
from fleetprof_api.report.recording import covers, learn

from fleetprof_sidecar.capture.process_capture import ProcessCapture

_MOST: Final = 1024


class Experience:
    """What earlier captures of each process cost."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[frozenset[str], RecordingEstimate]] = {}

    def note(self, capture: ProcessCapture) -> None:
        """What a capture that is over says; nothing if it recorded nothing."""
        estimate = learn([capture.cost]) if capture.cost is not None else None
        if estimate is None:
            return
        self._known.pop(capture.terms.process_id, None)
        self._known[capture.terms.process_id] = frozenset(capture.terms.collect), estimate
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]

    def of(self, process_id: str, collect: Collection[str]) -> RecordingEstimate | None:
        """What the process's last recording says of one with these options."""
        collected, estimate = self._known.get(process_id, (frozenset(), None))
        return estimate if covers(collected, collect) else None

    def forget(self, process_id: str) -> None:
        """Drops what is known of a process that has ended."""
        self._known.pop(process_id, None)
