"""The written and shown forms of a ledger's lines; only those of changed lines are made again.

A ledger of ten thousand ranks is 6 MB of JSON. It is written, and shown, while its ranks tell of themselves; to make
all of it each time would be most of the hub's work, and hold its event loop.

Guarantees: the same bytes and messages as from the whole ledger; a line's form lives as long as the line does, or until
the ledger is finished; bytes are made in the thread that writes them.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Ledger, LedgerEntry

from fleetprof_operator.hub.ledger.messages import to_event

_NO_LINES: Final = b'\n "entries": []'  # on a line of its own it cannot be a text's
_SLICE: Final = 500


class LineForms:
    """The lines of one ledger. A line is never changed in place, only put into another's."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._written = _FormCache(lambda entry: _indent(msgspec.json.format(msgspec.json.encode(entry), indent=1)))
        self._shown = _FormCache(lambda e: pb.CaptureStatus(ranks=[to_event(ledger.uid, e)]).SerializeToString())

    def snapshot(self) -> Callable[[], bytes]:
        """A function that makes the ledger as it is now into JSON, one value per line: for a thread, one at a time."""
        entries = list(self._ledger.entries)
        rest = msgspec.structs.replace(self._ledger, entries=[])
        return lambda: self._encode(rest, entries)

    async def refresh(self) -> None:
        """Makes the messages of lines that changed, a slice at a time, so that `show` holds nobody up."""
        for place in range(0, len(self._ledger.entries), _SLICE):
            self._shown.update(self._ledger.entries, place, place + _SLICE)
            await asyncio.sleep(0)

    def show(self, status: pb.CaptureStatus) -> pb.CaptureStatus:
        """The status with these lines as its ranks."""
        self._shown.update(self._ledger.entries)
        # Bytes are joined, since copying ten thousand messages into another takes ten times as long.
        return pb.CaptureStatus.FromString(b"".join((status.SerializeToString(), *self._shown.forms)))

    def forget(self) -> None:
        """Gives the memory back: the ledger will hardly be asked for again."""
        self._written.clear()
        self._shown.clear()

    def _encode(self, rest: Ledger, entries: Sequence[LedgerEntry]) -> bytes:
        head = msgspec.json.format(msgspec.json.encode(rest), indent=1)
        if not entries:
            return head
        self._written.update(entries)
        before, _, after = head.partition(_NO_LINES)
        return b"".join((before, b'\n "entries": [', b",".join(self._written.forms), b"\n ]", after))


class _FormCache:
    """The forms that `make` made of each line, by place."""

    def __init__(self, make: Callable[[LedgerEntry], bytes]) -> None:
        self._make = make
        self._of: list[LedgerEntry | None] = []
        self.forms: list[bytes] = []

    def update(self, entries: Sequence[LedgerEntry], begin: int = 0, end: int | None = None) -> None:
        """Makes those anew whose line is another; all of them count, those from `begin` to `end` are looked at."""
        missing = len(entries) - len(self._of)
        self._of += [None] * missing
        self.forms += [b""] * missing
        del self._of[len(entries) :], self.forms[len(entries) :]
        for place, entry in enumerate(entries[begin:end], begin):
            if self._of[place] is not entry:
                self._of[place], self.forms[place] = entry, self._make(entry)

    def clear(self) -> None:
        """Forgets all lines' forms, so that each is made again."""
        self._of, self.forms = [], []


def _indent(text: bytes) -> bytes:
    return (b"\n" + text).replace(b"\n", b"\n  ")
