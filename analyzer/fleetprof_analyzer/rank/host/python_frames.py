"""The place of the main thread by the trace's own Python frames, where Kineto recorded stacks.

Guarantees: pure; frames shorter than a silence are not in a trace as it is read (reading/columns.py).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.host.track import Chain, Track, name_frames
from fleetprof_analyzer.trace.own_code import read_frame
from fleetprof_analyzer.trace.trace import Trace

_LOOKS: Final = 20  # within each span
_MOST_SPANS: Final = 2000
_DEEPEST: Final = 100


def look(trace: Trace, place: int, spans: Sequence[tuple[int, int]]) -> Track | None:
    """Looks at evenly spaced times within the spans [start, end); None where the thread has none with a line."""
    named = [number for number in np.unique(trace.frames.name).tolist() if read_frame(trace.names[number])]
    frames = trace.frames.select((trace.frames.place == place) & np.isin(trace.frames.name, named))
    if len(frames) == 0:
        return None
    frames = frames.take(np.lexsort((-frames.duration_ns, frames.start_ns)))
    start, end, name = frames.start_ns, frames.end_ns.tolist(), frames.name.tolist()
    parent, open_frames = [-1] * len(end), list[int]()
    for row, begin in enumerate(start.tolist()):
        while open_frames and end[open_frames[-1]] <= begin:
            open_frames.pop()
        parent[row] = open_frames[-1] if open_frames else -1
        open_frames.append(row)
    chains: dict[Chain, int] = {}
    at_ns, lasted_ns, numbers = [], [], []
    for left, right in sorted(spans)[:_MOST_SPANS]:
        step = max((right - left) // _LOOKS, 1)
        for at in range(left + step // 2, right, step):
            row, stack = int(np.searchsorted(start, at, side="right")) - 1, list[int]()
            while row >= 0 and len(stack) < _DEEPEST:
                if end[row] > at:
                    stack.append(name[row])
                row = parent[row]
            read = [frame for frame in (read_frame(trace.names[one]) for one in stack) if frame is not None]
            chain = tuple(name_frames(read)[::-1])
            at_ns.append(at)
            lasted_ns.append(step)
            numbers.append(chains.setdefault(chain, len(chains)) if chain else -1)
    return Track(np.array(at_ns, np.int64), np.array(lasted_ns, np.int64), np.array(numbers, np.int64), list(chains))
