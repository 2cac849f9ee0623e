"""Numbers what rows of a trace repeat: names, places, launch shapes, collectives.

Guarantees: numbers are given in the order of the rows, whoever decodes them; what is kept of untrusted texts is bounded
by `TraceLimits` and by the lengths here.
"""

from typing import Final

import numpy as np

from fleetprof_analyzer.reading.columns.collective import read_collective
from fleetprof_analyzer.reading.columns.dimensions import count_elements, read_dimensions
from fleetprof_analyzer.reading.event import LEFT_OUT, EventArgs, Scalar
from fleetprof_analyzer.trace.classes import is_collection, is_host_communication
from fleetprof_analyzer.trace.limits import TraceLimits, refuse
from fleetprof_analyzer.trace.own_code import is_module, is_own_frame
from fleetprof_analyzer.trace.trace import VALUED, Bools, Category, Collective, Inputs, Int32s, Place, Shape

_NAME_CHARACTERS: Final = 2048
_PLACE_CHARACTERS: Final = 64
_MOST_REMEMBERED: Final = 100_000
LONGEST_INPUTS: Final = 4096
"""Bytes of the dimensions of an operator's inputs; longer ones count as unsaid, as do longer types and values."""
INPUTS_BYTES: Final = 64 << 20  # of these texts together, with what keeping one takes besides
_KEEPING_BYTES: Final = 500
_MOST_INPUTS: Final = 8
_INPUTS_CHARACTERS: Final = 120

PlaceKey = tuple[Scalar, Scalar]


class NameNumbers(dict[str, int]):
    """Name -> number; looking a new one up numbers it. Raises LimitExceeded."""

    def __init__(self, limits: TraceLimits) -> None:
        super().__init__()
        self._limits = limits
        self._characters = 0
        self._communicating = bytearray()  # by number: 1 for a collective of the host
        self._valued: set[int] = set()

    def __missing__(self, name: str) -> int:
        # A name that is too long comes here each time, since it is not kept whole.
        kept = name[:_NAME_CHARACTERS]
        count = len(self)
        number = self.setdefault(kept, count)
        if number == count:
            self._characters += len(kept)
            if self._characters > self._limits.name_bytes:
                raise refuse("the names of events together", self._limits.name_bytes, "characters")
            self._communicating.append(is_host_communication(kept))
            if kept.startswith(VALUED):
                self._valued.add(number)
        return number

    def has_values(self, number: int) -> bool:
        """Tells whether values of operators of this name are kept."""
        return number in self._valued

    def communicates(self, number: int) -> bool:
        """Tells whether this name is a collective of the host."""
        return bool(self._communicating[number])

    def communicate(self, numbers: Int32s) -> Bools:
        """A mask of the names that are collectives of the host, shape (n,)."""
        # A copy: as long as numpy looks at it a bytearray cannot grow.
        return np.frombuffer(bytes(self._communicating), np.bool_).take(numbers)


class PlaceNumbers(dict[PlaceKey, int]):
    """(device, stream) or (process, thread) as the trace writes them -> number; `places` are their texts."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[Place, int] = {}

    def __missing__(self, key: PlaceKey) -> int:
        place = (str(key[0])[:_PLACE_CHARACTERS], str(key[1])[:_PLACE_CHARACTERS])
        number = self.places.setdefault(place, len(self.places))
        if len(self) < _MOST_REMEMBERED:
            self[key] = number
        return number


class Shapes(dict[Shape, int]):
    """(grid, block) -> number."""

    def of(self, grid: bytes, block: bytes) -> int:
        """The number of a launch shape."""
        return self.setdefault((grid[:_PLACE_CHARACTERS], block[:_PLACE_CHARACTERS]), len(self))


class InputShapes(dict[bytes, int]):
    """An operator's inputs as the trace writes them -> number in `found`; -1 where their dimensions are unsaid.

    A key: dimensions, types, and of `VALUED` operators values, with a zero byte between them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Inputs] = []
        self._free_bytes = INPUTS_BYTES

    def of(self, args: EventArgs, *, has_values: bool) -> int:
        """The number of the inputs that these arguments say."""
        text, types = bytes(args.dimensions), bytes(args.types)
        if len(text) > LONGEST_INPUTS:
            return -1
        key = b"\0".join((text, types if len(types) <= LONGEST_INPUTS else b""))
        values = bytes(args.values) if has_values else b""
        if 0 < len(values) <= LONGEST_INPUTS:
            key = b"\0".join((key, values))
        return self[key]

    def __missing__(self, key: bytes) -> int:
        self._free_bytes -= len(key) + _KEEPING_BYTES
        if self._free_bytes < 0:
            return -1
        text, types, values = (*key.split(b"\0", 2), b"", b"")[:3]
        dimensions = read_dimensions(text)
        number = self[key] = -1 if dimensions is None else len(self.found)
        if dimensions is not None:
            elements = tuple(count_elements(item) or 0 for item in dimensions[:_MOST_INPUTS])
            self.found.append(Inputs(elements, str(dimensions)[:_INPUTS_CHARACTERS], text, types, values))
        return number


class Collectives(dict[Collective, int]):
    """Collective -> number."""

    def of(self, args: EventArgs, *, communicates: bool) -> int:
        """The number of what these arguments say, -1 where they are no collective's.

        `communicates` tells whether the event's name is a collective; then its tensors' dimensions say something.
        """
        if not args.collective and not (communicates and args.dimensions):
            return -1
        return self.setdefault(read_collective(args), len(self))


class Frames(dict[str, int]):
    """Name of a Python frame -> `Category.COLLECTION`, `Category.FRAME` of modules and the user's code, `LEFT_OUT`."""

    def __missing__(self, name: str) -> int:
        kept = is_module(name) or is_own_frame(name)
        answer = Category.COLLECTION if is_collection(name) else Category.FRAME if kept else LEFT_OUT
        if len(self) < _MOST_REMEMBERED:
            self[name] = answer
        return answer


class Vocabulary:
    """All of them, of one trace."""

    def __init__(self, limits: TraceLimits) -> None:
        self.names = NameNumbers(limits)
        self.places = PlaceNumbers()
        self.shapes = Shapes()
        self.inputs = InputShapes()
        self.collectives = Collectives()
        self.frames = Frames()
