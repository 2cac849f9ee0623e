"""An agent's words on the training thread during one capture, put together: places, stacks, samples.

Guarantees: columns stay of equal length and bounded, whatever the agent sends (agent_messages.py has checked types and
ranges); messages may come twice or in any order; a sample of a stack that was never told, or that names a place that
was not, is one without a stack.
"""

from collections.abc import Mapping
from typing import Any, Final

from fleetprof_api.samples import CodePlace, CollectionColumns, HeldColumns, RankSamples, ThreadColumns

_MOST_SAMPLES: Final = 4096
_MOST_NAMED: Final = 1024
_COLUMNS: Final = tuple(name for name in ThreadColumns.__struct_fields__ if name != "at_unix_ns")


class ThreadRecorder:
    """The training thread of one rank and capture."""

    def __init__(self) -> None:
        self._places: dict[int, CodePlace] = {}
        self._stacks: dict[int, list[int]] = {}
        self._rows: dict[int, dict[str, int | None]] = {}
        self._cores: dict[str, int | None] = {}
        self._collections: dict[int, int] = {}
        self._held: dict[int, int] = {}

    def add(self, kind: str, fields: Mapping[str, Any]) -> None:
        """One message as in wire.py: "places", "stacks", "thread", "collections" or "held"."""
        if kind == "places":
            places = zip(fields["file"], fields["function"], fields["line"], fields["generator"], strict=True)
            for number, (file, function, line, generator) in enumerate(places, fields["first"]):
                if number < _MOST_NAMED:
                    self._places[number] = CodePlace(file=file, function=function, line=line, generator=generator)
        elif kind == "stacks":
            for number, stack in enumerate(fields["stacks"], fields["first"]):
                if number < _MOST_NAMED:
                    self._stacks[number] = stack
        elif kind == "collections":
            for start, lasted in zip(fields["start_unix_ns"], fields["duration_ns"], strict=True):
                if len(self._collections) < _MOST_NAMED:
                    self._collections[start] = lasted
        elif kind == "held":
            for at, held in zip(fields["at_unix_ns"], fields["own_bytes"], strict=True):
                if len(self._held) < _MOST_NAMED:
                    self._held[at] = held
        else:
            self._cores = {name: fields[name] for name in ("usable_cores", "cpu_limit_millicores", "torch_threads")}
            for row, at in enumerate(fields["at_unix_ns"]):
                if len(self._rows) < _MOST_SAMPLES:
                    self._rows[at] = {name: fields[name][row] for name in _COLUMNS}

    def fill(self, samples: RankSamples) -> None:
        """Puts it into the rank's document."""
        known = [number for number, stack in sorted(self._stacks.items()) if all(one in self._places for one in stack)]
        new = {number: place for place, number in enumerate(known)}
        place_of = {number: at for at, number in enumerate(sorted(self._places))}
        rows = sorted(self._rows.items())
        columns: dict[str, list[Any]] = {name: [row[name] for _, row in rows] for name in _COLUMNS}
        columns["stack"] = [None if number is None else new.get(number) for number in columns["stack"]]
        samples.thread = ThreadColumns(at_unix_ns=[at for at, _ in rows], **columns)
        samples.places = [self._places[number] for number in sorted(self._places)]
        samples.stacks = [[place_of[number] for number in self._stacks[stack]] for stack in known]
        marks = sorted(self._collections.items())
        samples.collections = CollectionColumns(
            start_unix_ns=[start for start, _ in marks], duration_ns=[lasted for _, lasted in marks]
        )
        looks = sorted(self._held.items())
        samples.held = HeldColumns(at_unix_ns=[at for at, _ in looks], own_bytes=[held for _, held in looks])
        samples.usable_cores = self._cores.get("usable_cores")
        samples.cpu_limit_millicores = self._cores.get("cpu_limit_millicores")
        samples.torch_threads = self._cores.get("torch_threads")
