"""A trace without the iteration whose modules were marked, for readers that would count it and its marks.

Guarantees: what is kept is kept letter by letter; a trace without marks is the same object.
"""

import re
from typing import Final

import msgspec
from fleetprof_analyzer.rank.modules.marked_iteration import MARK
from fleetprof_analyzer.trace.trace import CATEGORIES, Category

_MARKS: Final = re.compile(rb'"fleetprof\.(?:module:|marks )')
_DEVICE: Final = frozenset({Category.KERNEL, Category.MEMCPY, Category.MEMSET})


class _Args(msgspec.Struct):
    correlation: int | float | str | None = None


class _Event(msgspec.Struct):
    name: str = ""
    cat: str = ""
    ts: float | None = None
    args: _Args | None = None

    @property
    def correlation(self) -> int | float | str | None:
        return None if self.args is None else self.args.correlation

    @property
    def category(self) -> Category | None:
        return CATEGORIES.get(self.cat)


_EVENT: Final = msgspec.json.Decoder(_Event)


def leave_out_marked(text: bytes) -> bytes:
    """The trace's text without it. Raises ValueError where there are marks in what is no JSON."""
    if _MARKS.search(text) is None:
        return text
    document = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    raw = msgspec.json.decode(document["traceEvents"], type=list[msgspec.Raw])
    events = [_EVENT.decode(one) for one in raw]
    begins = [event.ts for event in events if event.ts is not None and MARK.search(event.name)]
    if not begins:
        return text
    begin = min(begins)
    early = [event.ts is None or event.ts < begin for event in events]
    calls = {
        event.correlation
        for event, is_early in zip(events, early, strict=True)
        if is_early and event.category == Category.RUNTIME and event.correlation is not None
    }
    document["traceEvents"] = msgspec.Raw(
        b"[%s]"
        % b",\n".join(
            bytes(one)
            for one, event, is_early in zip(raw, events, early, strict=True)
            if is_early or (event.category in _DEVICE and event.correlation in calls)
        )
    )
    return msgspec.json.encode(document)
