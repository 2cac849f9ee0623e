"""The stack of another thread, read at one instant.

In CPython 3.11 `f_back` may have to make a frame object. That may start the garbage collector, whose callbacks may let
another thread run. If the thread that is looked at returns from this very frame then, `f_back` reads memory that holds
something else, and the process dies (seen with 3.11.7, in a job and in tests/agent/samples/test_frames.py). Later
versions collect between two instructions only.

Guarantees: no other thread runs and nothing is collected between the first frame and the last, because one call from
Python, made of iterators in C, reads them all. No frame is referred to afterwards. The collector is left as it was; a
job's own `gc.disable()` cannot fall in between.
"""

from __future__ import annotations

import gc
import sys
from itertools import accumulate, chain, repeat, starmap
from operator import attrgetter
from typing import Any, Callable

LONGEST_WALK = 400
_ONCE: tuple[tuple[()], ...] = ((),)
_read_place = attrgetter("f_code", "f_lasti")
_read_name: Callable[[Any, Any], Any] = getattr
_raise_at_end = ((None, "f_back"),)


def read_stack(thread: int, frames: Callable[[], dict[int, Any]] = sys._current_frames) -> list[tuple[Any, int]]:
    """Code and last instruction of each frame, the innermost first; empty when there is no such thread."""
    read: list[Any] = []
    innermost = map(dict.get, starmap(frames, _ONCE), (thread,))
    walk = accumulate(chain(innermost, repeat("f_back", LONGEST_WALK)), _read_name)
    steps = chain(
        starmap(gc.isenabled, _ONCE),
        starmap(gc.disable, _ONCE),
        map(_read_place, walk),
        starmap(getattr, _raise_at_end),
    )
    del innermost, walk  # what they hold goes with `steps`
    try:
        read.extend(steps)
    except AttributeError:  # None, behind the outermost frame, has neither code nor f_back
        pass
    finally:
        # Only an exception leads here, and no instruction on its way lets others run.
        if read and read[0]:
            gc.enable()
        del steps
    return read[2:]


def find_line(code: Any, instruction: int) -> int | None:
    """The line of an instruction; that of the function where Python (3.9) does not tell."""
    if not hasattr(code, "co_lines"):
        return int(code.co_firstlineno)
    return next((line for begin, end, line in code.co_lines() if begin <= instruction < end), None)
