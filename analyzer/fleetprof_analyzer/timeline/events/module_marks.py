"""The modules of the marked iteration as marks on tracks of their own, one for each thread.

Guarantees: pure; times are those of the rank's own clock; of one track a mark lies inside another or beside it; at most
`MOST_MARKS` of the longest per track. Calls are drawn as they were made, backward as runs of nodes of one module.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.modules.assignment import Assignment, assign
from fleetprof_analyzer.rank.modules.kinds import NODE, ModulePhase
from fleetprof_analyzer.rank.modules.marked_iteration import part_marked
from fleetprof_analyzer.rank.modules.nesting import NOWHERE
from fleetprof_analyzer.timeline.events.marks import Mark, Span, keep_longest, touches
from fleetprof_analyzer.trace.trace import Place, Trace

_AGAIN: Final = {"phase": "again in backward"}


def mark_modules(trace: Trace, span: Span) -> list[Mark]:
    """The marks that reach into [start, end); none where no iteration is marked."""
    _, marked = part_marked(trace)
    if marked is None:
        return []
    found = assign(marked)
    nodes = {number for number in set(found.rows.name.tolist()) if marked.names[number].startswith(NODE)}
    by_track: dict[str, list[Mark]] = {}
    for mark in (*_draw_calls(found, trace.places), *_draw_backward(found, nodes, trace.places)):
        if touches(mark.start_ns, mark.start_ns + mark.duration_ns, span):
            by_track.setdefault(mark.track, []).append(mark)
    return [mark for marks in by_track.values() for mark in keep_longest(marks)]


def _draw_calls(found: Assignment, places: list[Place]) -> Iterator[Mark]:
    rows = found.rows
    for at in np.flatnonzero(found.is_mark & (found.path != NOWHERE)).tolist():
        again = found.phase[at] == ModulePhase.RECOMPUTE
        name = found.paths[int(found.path[at])].name
        track = _name_track(places[int(rows.place[at])])
        yield Mark(track, name, int(rows.start_ns[at]), int(rows.duration_ns[at]), dict(_AGAIN) if again else {})


def _draw_backward(found: Assignment, nodes: set[int], places: list[Place]) -> Iterator[Mark]:
    """Nodes that follow each other on a thread and are of one module, as one mark."""
    rows = found.rows
    is_node = np.isin(rows.name, list(nodes)) & (found.phase == ModulePhase.BACKWARD)
    run: tuple[int, int, int, int] | None = None  # place, module, begin, end
    for at in np.flatnonzero(is_node).tolist():
        place, path, begin = int(rows.place[at]), int(found.path[at]), int(rows.start_ns[at])
        end = begin + int(rows.duration_ns[at])
        if run is not None and run[:2] == (place, path):
            run = (place, path, run[2], max(run[3], end))
            continue
        if run is not None and run[1] != NOWHERE:
            yield _draw_run(found, run, places)
        run = (place, path, begin, end)
    if run is not None and run[1] != NOWHERE:
        yield _draw_run(found, run, places)


def _draw_run(found: Assignment, run: tuple[int, int, int, int], places: list[Place]) -> Mark:
    place, path, begin, end = run
    return Mark(_name_track(places[place]), found.paths[path].name, begin, end - begin, {"phase": "backward"})


def _name_track(place: Place) -> str:
    return f"modules (thread {place[1]})"
