"""Pauses that code on the stack proves beyond doubt: worker processes that start, checkpoints that are written.

One sample proves such a pause; how long it takes is told by its iteration, beside those without one. Samples are far
apart on a busy machine: an iteration without one has the pause as well if it is longer alike and shows the same rows
or, where a pause has none, the same silence. Guarantees: pure; what goes on while a device works costs nothing.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.rank_tables import KnownCause, KnownCauseName

from fleetprof_analyzer.rank.causes.known_code import Frames
from fleetprof_analyzer.rank.causes.rank_view import RankView
from fleetprof_analyzer.rank.causes.share import find_share
from fleetprof_analyzer.rank.causes.stacks import look_for
from fleetprof_analyzer.rank.host.track import read_track, within
from fleetprof_analyzer.rank.measures.stages.main_thread import MainThread
from fleetprof_analyzer.trace.intervals import Union, join, union, without
from fleetprof_analyzer.trace.trace import Bools, Int64s

_ALIKE: Final = 0.5  # of what the proven ones take longer


def in_pauses(name: KnownCauseName, kinds: Sequence[Frames]) -> Callable[[RankView], KnownCause | None]:
    """A cause that takes what its iterations take longer than the others; if it is in all, what samples show."""

    def find(view: RankView) -> KnownCause | None:
        shown = look_for(view, kinds, least=1)
        pauses = view.each_ns(shown.spans) > 0
        if not pauses.any():
            return None
        pauses |= _look_the_same(view, pauses, shown.place)
        sampled = view.each_cost_ns(shown.spans)
        longer = _lengths(view) - np.median(_lengths(view)[~pauses]) if not pauses.all() else sampled
        taken = np.where(pauses, np.minimum(np.maximum(longer, sampled), view.each_ns(view.free)), 0)
        return KnownCause(
            cause=name,
            time_ns=int(taken.sum()),
            gain_permille=find_share(view, taken),
            count=int(pauses.sum()),
            iterations=int(pauses.sum()),
            longest_ns=int(taken.max()),
            place=shown.place,
        )

    return find


def _lengths(view: RankView) -> Int64s:
    return np.array([one.duration_ns for one in view.iterations], np.int64)


def _look_the_same(view: RankView, proven: Bools, place: PlaceInCode | None) -> Bools:
    """The iterations beside the proven ones that are longer by half as much, and by the same rows or silence."""
    thread, lengths = view.stages.thread, _lengths(view)
    if thread is None or proven.all():
        return np.zeros_like(proven)
    longer = lengths - np.median(lengths[~proven])
    least = _ALIKE * float(np.median(longer[proven]))
    longer_alike = ~proven & (longer >= least)
    ordinary = ~proven & ~longer_alike
    if least <= 0 or not longer_alike.any() or not ordinary.any():
        return np.zeros_like(proven)
    counts = _count_rows(view, thread)
    shared = counts[proven].min(axis=0)
    own = shared > counts[ordinary].max(axis=0)
    if own.any():
        return np.asarray(longer_alike & (counts[:, own] >= shared[own]).all(axis=1))
    work = _find_work(thread)
    places = {_name_silence(thread, _longest_silence(view, work, at)) for at in np.flatnonzero(proven).tolist()}
    for at in np.flatnonzero(longer_alike).tolist():
        silence = _longest_silence(view, work, at)
        longer_alike[at] = (
            silence[1] - silence[0] >= least
            and _name_silence(thread, silence) in places
            and _shows_nothing_else(view, silence, place)
        )
    return longer_alike


def _count_rows(view: RankView, thread: MainThread) -> Int64s:
    """The number of operators and loader calls of each name on the main thread, shape (iterations, names)."""
    start_ns = np.append(thread.top.start_ns, thread.data.start_ns)
    name = np.append(thread.top.name, thread.data.name)
    starts = np.array([one.start_ns for one in view.iterations], np.int64)
    at = np.searchsorted(starts, start_ns, side="right") - 1
    inside = (at >= 0) & (start_ns < (starts + _lengths(view))[at])
    names, number = np.unique(name[inside], return_inverse=True)
    counts = np.zeros((len(starts), len(names)), np.int64)
    np.add.at(counts, (at[inside], number), 1)
    return counts


def _find_work(thread: MainThread) -> Union:
    """The stretches in which the thread, or autograd for it, runs operators."""
    return join(
        union(thread.top.start_ns, np.maximum(thread.reached_ns, thread.top.end_ns)),
        union(thread.beside.start_ns, thread.beside.end_ns),
    )


def _longest_silence(view: RankView, work: Union, number: int) -> tuple[int, int]:
    """The longest silence of one iteration, [start, end)."""
    one = view.iterations[number]
    start = np.array([one.start_ns], np.int64)
    starts, ends = without(union(start, start + one.duration_ns), work)
    if len(starts) == 0:
        return one.start_ns, one.start_ns
    longest = int((ends - starts).argmax())
    return int(starts[longest]), int(ends[longest])


def _name_silence(thread: MainThread, silence: tuple[int, int]) -> tuple[int, int]:
    """The names of the operators that it lies between; -1: none."""
    before, behind = np.searchsorted(thread.top.start_ns, silence).tolist()
    return (
        int(thread.top.name[before - 1]) if before else -1,
        int(thread.top.name[behind]) if behind < len(thread.top) else -1,
    )


def _shows_nothing_else(view: RankView, silence: tuple[int, int], place: PlaceInCode | None) -> bool:
    """Tells whether each sample in there is of the function that led to the proven ones."""
    track = read_track(view.samples)
    function = None if place is None else (place.file, place.function)
    return track is None or all(chain[-1][:2] == function for chain, _ in within(track, [silence]))
