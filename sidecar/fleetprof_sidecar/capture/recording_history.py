"""The cost of the last recordings of each process, and their times.

The cost is an estimate of the next one, for when the hub has none. Guarantees: one estimate and a few times per
process; a process that is gone is forgotten.
"""

from collections.abc import Collection, Sequence
from typing import Final

from fleetprof_api.ledger import RecordingEstimate
from fleetprof_api.report.recording import covers, learn

from fleetprof_sidecar.capture.process_capture import ProcessCapture, RecordedSpan

_MOST: Final = 1024
_MOST_RECORDED: Final = 8


class RecordingHistory:
    """The cost of earlier captures of each process."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[frozenset[str], RecordingEstimate]] = {}
        self._recorded: dict[str, Sequence[RecordedSpan]] = {}

    def note(self, capture: ProcessCapture) -> None:
        """Takes in a capture that is over; nothing if it recorded nothing."""
        terms, process_id = capture.terms, capture.terms.process_id
        if capture.armed_unix_ns:
            over = max(capture.written_unix_ns, capture.failed_unix_ns)
            one = RecordedSpan(
                from_step=terms.touched_from_step, from_unix_ns=capture.armed_unix_ns, until_unix_ns=over
            )
            earlier = self._recorded.pop(process_id, ())
            self._recorded[process_id] = [*earlier, one][-_MOST_RECORDED:]
        estimate = learn([capture.cost]) if capture.cost is not None else None
        if estimate is not None:
            self._known.pop(process_id, None)
            self._known[process_id] = frozenset([*terms.collect, *terms.activities]), estimate
        for kept in (self._known, self._recorded):
            while len(kept) > _MOST:
                del kept[next(iter(kept))]

    def of(self, process_id: str, options: Collection[str]) -> RecordingEstimate | None:
        """The estimate of a recording with these options, by the process's last one."""
        known, estimate = self._known.get(process_id, (frozenset(), None))
        return estimate if covers(known, options) else None

    def recorded(self, process_id: str) -> Sequence[RecordedSpan]:
        """The spans in which the process was recorded of late."""
        return self._recorded.get(process_id, ())

    def forget(self, process_id: str) -> None:
        """Drops what is known of a process that has ended."""
        self._known.pop(process_id, None)
        self._recorded.pop(process_id, None)
