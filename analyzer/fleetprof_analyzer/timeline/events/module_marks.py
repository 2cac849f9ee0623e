"""The modules of the marked iteration as marks on tracks of their own, one for each thread.

Guarantees: pure; times are those of the rank's own clock; of one track a mark lies inside another or beside it; at most
`MOST_MARKS` of the longest per track. Calls are drawn as they were made, backward as runs of nodes of one module.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.modules.assignment import Assignment, assign
from fleetprof_analyzer.rank.modules.kinds import NODE, ModulePhase
from fleetprof_analyzer.rank.modules.marked_iteration import part_marked
from fleetprof_analyzer.rank.modules.nesting import NOWHERE
from fleetprof_analyzer.timeline.events.marks import Mark, Span, keep_longest, touches
from fleetprof_analyzer.trace.trace import Place, Trace

_AGAIN: Final = {"phase": "again in backward"}
_BACKWARD: Final = "backward"


def mark_modules(trace: Trace, span: Span) -> list[Mark]:
    """The marks that reach into [start, end); none where no iteration is marked."""
    by_track: dict[str, list[Mark]] = {}
    for mark in _draw(trace):
        if touches(mark.start_ns, mark.start_ns + mark.duration_ns, span):
            by_track.setdefault(mark.track, []).append(mark)
    return [mark for marks in by_track.values() for mark in keep_longest(marks)]


def find_longest(trace: Trace, *, backward: bool) -> dict[str, Span]:
    """[start, end) of the longest call of each module, or of the longest run of its backward, by its whole name."""
    longest: dict[str, Mark] = {}
    for mark in _draw(trace):
        if (mark.args.get("phase") == _BACKWARD) == backward and mark.args != _AGAIN:
            before = longest.get(mark.name)
            if before is None or mark.duration_ns > before.duration_ns:
                longest[mark.name] = mark
    return {name: (mark.start_ns, mark.start_ns + mark.duration_ns) for name, mark in longest.items()}


def choose_module(name: str, names: Iterable[str]) -> str | None:
    """The module of this whole name, else the only one that ends in it; None where there is none, or several are."""
    there = list(names)
    ending = [one for one in there if one.endswith(f".{name}")]
    return name if name in there else ending[0] if len(ending) == 1 else None


def _draw(trace: Trace) -> list[Mark]:
    _, marked = part_marked(trace)
    if marked is None:
        return []
    found = assign(marked)
    nodes = {number for number in set(found.rows.name.tolist()) if marked.names[number].startswith(NODE)}
    return [*_draw_calls(found, trace.places), *_draw_backward(found, nodes, trace.places)]


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
    return Mark(_name_track(places[place]), found.paths[path].name, begin, end - begin, {"phase": _BACKWARD})


def _name_track(place: Place) -> str:
    return f"modules (thread {place[1]})"
