"""In which line of code a thread was for most of some spans of time: by its samples, else by the trace's own frames.

Guarantees: pure; None where neither tells.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from fleetprof_api.report.code_place import PlaceInCode

from fleetprof_analyzer.rank.host import python_frames
from fleetprof_analyzer.rank.host.hot_path import find_place
from fleetprof_analyzer.rank.host.track import Track, within
from fleetprof_analyzer.trace.trace import Trace

_LEAST_SAMPLES: Final = 2


def find_code(trace: Trace, thread: int, track: Track | None, spans: Sequence[tuple[int, int]]) -> PlaceInCode | None:
    """The line within the spans [start, end); `thread` is a place of the trace, `track` its samples, None without."""
    if track is not None:
        return find_place(within(track, spans), _LEAST_SAMPLES)
    looks = python_frames.look(trace, thread, spans)
    found = None if looks is None else find_place(within(looks, spans), _LEAST_SAMPLES)
    return None if found is None else msgspec.structs.replace(found, samples=0, of_samples=0)
