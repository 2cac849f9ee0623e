"""The part of the traces that is cut: iterations, the slowest one, a module, a span of time, or all of it.

Guarantees: pure; what cannot be found is refused with what there is.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from fleetprof_api.errors import FleetprofError
from fleetprof_api.report.report import Iteration, Rank

_UNITS_NS: Final = {"s": 10**9, "ms": 10**6, "us": 1000, "µs": 1000}
_ITERATIONS: Final = re.compile(r"(\d{1,18})(?:\.\.(\d{1,18}))?")
_TIME: Final = r"(\d{1,12}(?:\.\d{1,9})?)(s|ms|us|µs)"
_SPAN: Final = re.compile(rf"{_TIME}\.\.{_TIME}")
_MODULE: Final = "module:"
_BACKWARD: Final = "/backward"
_RULE: Final = (
    "must be iterations (7 or 7..9), worst, all, a module (module:encoder.0 or module:encoder.0/backward), or a span "
    "of time from the start on (250ms..1.5s)"
)


class NoSuchPart(FleetprofError):
    """The part that was asked for is not in the traces; the message says what is."""


@dataclass(frozen=True, slots=True)
class CutWindow:
    """`first` and `last` are indices of iterations, both inside, or ns from the start of the recording.

    `module`: its dotted name, or the end of it.
    """

    kind: Literal["iterations", "worst", "module", "time", "all"]
    first: int = 0
    last: int = 0
    module: str = ""
    backward: bool = False


def parse_window(text: str) -> CutWindow:
    """`7`, `7..9`, `worst`, `all`, `module:NAME`, `250ms..1.5s`. Raises ValueError with the rule."""
    if text == "worst":
        return CutWindow("worst")
    if text == "all":
        return CutWindow("all")
    if text.startswith(_MODULE) and (name := text.removeprefix(_MODULE).removesuffix(_BACKWARD)):
        return CutWindow("module", module=name, backward=text.endswith(_BACKWARD))
    if match := _ITERATIONS.fullmatch(text):
        window = CutWindow("iterations", int(match[1]), int(match[2] or match[1]))
        if window.last < window.first:
            raise ValueError(f"{text!r} must go from a lower to a higher iteration")
        return window
    if match := _SPAN.fullmatch(text):
        window = CutWindow("time", _nanoseconds(match[1], match[2]), _nanoseconds(match[3], match[4]))
        if window.last <= window.first:
            raise ValueError(f"{text!r} must go from an earlier to a later time")
        return window
    raise ValueError(f"{text!r} {_RULE}")


def _nanoseconds(digits: str, unit: str) -> int:
    whole, _, rest = digits.partition(".")
    return (int(whole) * 10**9 + int(rest.ljust(9, "0"))) * _UNITS_NS[unit] // 10**9


def find_iterations(window: CutWindow, ranks: Sequence[Rank], job: Sequence[Rank]) -> tuple[int, int] | None:
    """First and last index of the iterations to cut from `ranks`; None where the window is none of iterations.

    The slowest is that of the whole `job`: the largest mean over its ranks. Raises NoSuchPart.
    """
    if window.kind in ("module", "time", "all"):
        return None
    held = _durations(ranks)
    if not held:
        raise NoSuchPart("the traces mark no iterations: give a span of time (250ms..1.5s), or all")
    if window.kind == "worst":
        durations = {index: found for index, found in _durations(job).items() if index in held}
        # What most ranks hold: a single rank's first iteration is often a long one.
        shared = {index: found for index, found in durations.items() if 2 * len(found) >= len(job)} or durations
        worst = max(shared, key=lambda index: (sum(shared[index]) / len(shared[index]), -index))
        return worst, worst
    if not any(window.first <= index <= window.last for index in held):
        there = _range(min(held), max(held))
        raise NoSuchPart(f"there is no iteration {_range(window.first, window.last)}: {there} are there")
    return window.first, window.last


def _durations(ranks: Sequence[Rank]) -> dict[int, list[int]]:
    """Durations of the whole iterations of these ranks, ns, by index."""
    durations: dict[int, list[int]] = defaultdict(list)
    for rank in ranks:
        for iteration in rank.iterations:
            if iteration.complete is not False:
                durations[iteration.index].append(iteration.duration_ns)
    return durations


def bounds_of(rank: Rank, iterations: tuple[int, int]) -> tuple[int, int] | None:
    """[start, end) of a rank's iterations, ns of its own clock; None where it holds none of them."""
    found: list[Iteration] = [one for one in rank.iterations if iterations[0] <= one.index <= iterations[1]]
    if not found:
        return None
    return min(one.start_ns for one in found), max(one.start_ns + one.duration_ns for one in found)


def describe(window: CutWindow, iterations: tuple[int, int] | None) -> str:
    """As a title says it. `iterations`: the numbers of its first and last one, None: it is cut otherwise."""
    if iterations is not None:
        several = iterations[0] != iterations[1]
        words = f"iteration{'s' if several else ''} {_range(*iterations)}"
        return f"{words}, the slowest" if window.kind == "worst" else words
    if window.kind == "module":
        return f"the longest {'backward' if window.backward else 'call'} of {window.module}"
    if window.kind == "time":
        return f"{window.first / 1e6:g} to {window.last / 1e6:g} ms from the start on"
    return "all that was recorded"


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"
