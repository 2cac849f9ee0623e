"""Distinct stacks of a thread and the places in them, each told once.

Guarantees: texts are printable ASCII and bounded, as are stacks and places: what passes a
bound is left out from the outer end; frames of the agent itself are left out, and cells of notebooks have their number.
"""

from __future__ import annotations

import os
from typing import Any, Callable

import fleetprof_agent
from fleetprof_agent.samples.cells import name_cell
from fleetprof_agent.samples.frames import find_line

DEEPEST = 40  # frames of a stack, the innermost
MOST_PLACES = 500
MOST_STACKS = 600
FILE_CHARACTERS = 200  # the end of a longer one
FUNCTION_CHARACTERS = 100
# What a chunk of texts in quotation marks takes at the most, and of numbers: below 32 KiB.
PLACES_PER_CHUNK = 45
STACKS_PER_CHUNK = 150
_OURS = -1
_GENERATOR = 0x20 | 0x200  # inspect.CO_GENERATOR, CO_ASYNC_GENERATOR


class StackTable:
    """Places and stacks by their numbers, in the order in which they were seen first."""

    def __init__(self) -> None:
        self._places: list[tuple[str, str, int, bool]] = []
        self._stacks: list[tuple[int, ...]] = []
        self._number_of_place: dict[tuple[str, str, int, bool], int] = {}
        self._number_of_stack: dict[tuple[int, ...], int] = {}
        # By instruction; the code object is kept beside it, so that its id is nobody else's meanwhile.
        self._interned: dict[tuple[int, int], tuple[Any, int | None]] = {}
        self._sent_places = self._sent_stacks = 0

    def intern(self, frames: list[tuple[Any, int]]) -> int | None:
        """The number of this stack (frames.read_stack); None where nothing of it is the job's."""
        interned = self._interned
        stack: list[int] = []
        for code, instruction in frames:
            key = (id(code), instruction)
            known = interned.get(key)
            if known is None:
                known = code, self._intern_place(code, find_line(code, instruction))
                if len(interned) < 4 * MOST_PLACES:
                    interned[key] = known
            place = known[1]
            if place is None:
                break
            if place != _OURS:
                stack.append(place)
            if len(stack) == DEEPEST:
                break
        if not stack:
            return None
        key_of_stack = tuple(stack)
        number = self._number_of_stack.get(key_of_stack)
        if number is None and len(self._stacks) < MOST_STACKS:
            number = self._number_of_stack[key_of_stack] = len(self._stacks)
            self._stacks.append(key_of_stack)
        return number

    def _intern_place(self, code: Any, line: int | None) -> int | None:
        if code.co_filename.startswith(_AGENT):
            return _OURS
        function = getattr(code, "co_qualname", code.co_name)
        place = (
            clean(name_cell(code.co_filename) or code.co_filename[-FILE_CHARACTERS:]),
            clean(function[:FUNCTION_CHARACTERS]),
            line if line is not None and 0 <= line < 2**31 else 0,
            bool(code.co_flags & _GENERATOR),
        )
        number = self._number_of_place.get(place)
        if number is None and len(self._places) < MOST_PLACES:
            number = self._number_of_place[place] = len(self._places)
            self._places.append(place)
        return number

    def forget_code(self) -> None:
        """No more stacks will come: the job's code objects are let go."""
        self._interned.clear()

    def flush(self, send: Callable[..., bool]) -> bool:
        """Sends what has not been sent as "places" and "stacks"; False when something is left."""
        while self._sent_places < len(self._places):
            some = self._places[self._sent_places : self._sent_places + PLACES_PER_CHUNK]
            file, function, line, generator = (list(column) for column in zip(*some))  # noqa: B905
            named = {"file": file, "function": function, "line": line, "generator": generator}
            if not send("places", first=self._sent_places, **named):
                return False
            self._sent_places += len(some)
        while self._sent_stacks < len(self._stacks):
            stacks = [list(stack) for stack in self._stacks[self._sent_stacks : self._sent_stacks + STACKS_PER_CHUNK]]
            if not send("stacks", first=self._sent_stacks, stacks=stacks):
                return False
            self._sent_stacks += len(stacks)
        return True


_AGENT = os.path.dirname(os.path.abspath(fleetprof_agent.__file__)) + os.sep


def clean(text: str) -> str:
    """The text in printable ASCII."""
    return text if text.isascii() and text.isprintable() else "".join(c if " " <= c <= "~" else "?" for c in text)
