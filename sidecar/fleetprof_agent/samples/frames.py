"""The stack of another thread, read at one instant.

CPython 3.11 makes a frame object when `f_back` is asked for, that may start the garbage collector, and what the
collector calls may give another thread its turn. The thread that is looked at then returns from the very frame, and
`f_back` leads into memory that holds something else: the process dies (seen with 3.11.7, in a job and in
tests/agent/samples/test_frames.py). Later versions collect between two instructions only.

Guarantees: from the first frame to the last the interpreter has no occasion to let another thread run or to collect:
all of it is one call from Python, made of iterators in C. No frame is referred to afterwards. The collector is on again
where it was on; a job's own `gc.disable()` cannot fall in between.
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
        # Reached by the exception alone: no instruction on the way lets others run.
        if read and read[0]:
            gc.enable()
        del steps
    return read[2:]


def find_line(code: Any, instruction: int) -> int | None:
    """The line of an instruction; that of the function where Python (3.9) does not tell."""
    if not hasattr(code, "co_lines"):
        return int(code.co_firstlineno)
    return next((line for begin, end, line in code.co_lines() if begin <= instruction < end), None)
