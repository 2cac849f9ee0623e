"""One question for stacks: gathers what an agent says, in its datagrams, into the process's stacks.

Guarantees: pure; datagrams that are missing or come twice leave an answer that is still well-formed.
"""

from collections.abc import Mapping
from typing import Any, Final

from fleetprof_api.samples import CodePlace
from fleetprof_api.stacks import MOST_ROWS, ProcessStacks, RecordedCollective, ThreadStack

KINDS: Final = frozenset({"places", "stacks", "collectives", "threads"})


class AgentAnswer:
    """The answer of one agent to one question, as far as it has come."""

    def __init__(self) -> None:
        self._places: dict[int, CodePlace] = {}
        self._stacks: dict[int, list[int]] = {}
        self._collectives: list[RecordedCollective] = []
        self._threads: Mapping[str, Any] | None = None

    @property
    def is_whole(self) -> bool:
        """Tells whether its last datagram has come."""
        return self._threads is not None

    def take(self, fields: Mapping[str, Any]) -> None:
        """Takes a datagram of KINDS, checked."""
        match fields["t"]:
            case "places":
                columns = zip(fields["file"], fields["function"], fields["line"], strict=True)
                for number, (file, function, line) in enumerate(columns, fields["first"]):
                    self._places[number] = CodePlace(file=file, function=function, line=line)
            case "stacks":
                self._stacks.update(enumerate(fields["stacks"], fields["first"]))
            case "collectives":
                names = RecordedCollective.__struct_fields__
                rows = zip(*(fields[name] for name in names), strict=True)
                room = MOST_ROWS - len(self._collectives)
                self._collectives += [RecordedCollective(**dict(zip(names, row, strict=True))) for row in rows][:room]
            case "threads":
                self._threads = fields

    def write_into(self, process: ProcessStacks) -> None:
        """Adds all of it to the process."""
        fields = self._threads
        process.has_answered = fields is not None
        process.collectives = self._collectives
        if fields is None:
            return
        numbers = {number: at for at, number in enumerate(sorted(self._places))}
        process.places = [self._places[number] for number in numbers]
        process.at_unix_ns = fields["at_unix_ns"]
        if fields["step_unix_ns"]:
            process.step, process.step_unix_ns = fields["step"], fields["step_unix_ns"]
        process.threads = [
            ThreadStack(
                name=name,
                task=task,
                is_main=is_main,
                call=call,
                stack=[numbers[place] for place in self._stacks.get(stack, []) if place in numbers],
            )
            for name, task, is_main, stack, call in zip(
                *(fields[name] for name in ("name", "task", "is_main", "stack", "call")), strict=True
            )
        ]
