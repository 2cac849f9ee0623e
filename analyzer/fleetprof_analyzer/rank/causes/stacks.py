"""Causes that the code on the thread's stack proves: the time in which it was there, and the line that led to it.

A sample stands for the time since the one before (`host.track`). Guarantees: pure; one sample alone
proves nothing of how long it took; without samples nothing is proven.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.rank_tables import KnownCause, KnownCauseName
from fleetprof_api.samples import CodePlace, RankSamples

from fleetprof_analyzer.rank.causes.known_code import Frames
from fleetprof_analyzer.rank.causes.rank_view import NOTHING, RankView
from fleetprof_analyzer.rank.causes.share import find_sampled_share, find_share
from fleetprof_analyzer.rank.host.hot_path import find_place
from fleetprof_analyzer.rank.host.marks import find_collections
from fleetprof_analyzer.rank.host.track import read_track
from fleetprof_analyzer.trace.intervals import Union, covered, union, without
from fleetprof_analyzer.trace.own_code import FOUNDATION, OWN, tell_owner

LEAST_SAMPLES: Final = 2
_LEAST_OF_LINE: Final = 0.25  # of a line's samples are below it, so that the line is there for nothing else


@dataclass(frozen=True, slots=True)
class CodeTime:
    """Code that samples show: the time that they stand for within their iterations, and the line of the user's code.

    `share`: of the time that all samples stand for; `everywhere`: each iteration with a sample has one of these.
    """

    spans: Union
    place: PlaceInCode | None
    share: float = 0.0
    everywhere: bool = False


def look_for(
    view: RankView,
    kinds: Sequence[Frames],
    *,
    below_own: bool = False,
    arguments: bool = False,
    least: int = LEAST_SAMPLES,
) -> CodeTime:
    """The samples in the iterations whose stack is one of these kinds; empty spans of fewer than `least`.

    `below_own`: only what the user's own code has called counts, not what has called it. `arguments`: what the line
    that calls them works out itself counts as well.
    """
    samples, track = view.samples, read_track(view.samples)
    if samples is None or track is None:
        return CodeTime(NOTHING, None)
    stacks = range(len(samples.stacks))
    shown = {stack for stack in stacks if _is_one_of(_name_frames(samples, stack, below_own=below_own), kinds)}
    if arguments:
        shown |= _find_arguments(samples, shown)
    pairs = zip(samples.thread.at_unix_ns, samples.thread.stack, strict=False)
    at = [moment for moment, stack in pairs if stack in shown]
    inside = covered(track.at_ns - 1, view.whole)
    rows = np.flatnonzero(np.isin(track.at_ns, np.array(at, np.int64)) & inside & (track.chain >= 0))
    if len(rows) < least:
        return CodeTime(NOTHING, None)
    # Nothing is known of the iteration before: what a sample stands for begins in its own.
    starts = np.array([one.start_ns for one in view.iterations], np.int64)
    begun = starts[np.searchsorted(starts, track.at_ns[rows] - 1, side="right") - 1]
    spans = union(np.maximum(track.at_ns[rows] - track.lasted_ns[rows], begun), track.at_ns[rows])
    pairs_of = zip(track.chain[rows], track.lasted_ns[rows], strict=True)
    found = [
        (chain, lasted)
        for number, lasted in pairs_of
        if tell_owner((chain := track.chains[number])[0][0]) != FOUNDATION
    ]
    sampled = np.flatnonzero(covered(track.at_ns - 1, view.whole))
    iteration = np.searchsorted(starts, track.at_ns - 1, side="right")
    # What the collector took of that time is its own.
    return CodeTime(
        without(spans, find_collections(samples)),
        find_place(found, least),
        share=float(track.lasted_ns[rows].sum()) / max(1.0, float(track.lasted_ns[sampled].sum())),
        everywhere=set(iteration[rows].tolist()) == set(iteration[sampled].tolist()),
    )


def in_stacks(name: KnownCauseName, kinds: Sequence[Frames]) -> Callable[[RankView], KnownCause | None]:
    """A cause that takes the time in which its frames are on the stack, below the user's own code.

    On a rank without a device that of the line's arguments too: with one, a value that is asked for waits for work.
    There the share of the samples counts, since fewer are taken than there are short iterations.
    """

    def find(view: RankView) -> KnownCause | None:
        shown = look_for(view, kinds, below_own=True, arguments=not view.on_gpu)
        cause = tell(name, view, shown.spans, shown.place)
        if cause is None or view.on_gpu:
            return cause
        gain = max(cause.gain_permille or 0, find_sampled_share(view, shown.share, shown.spans))
        iterations = len(view.iterations) if shown.everywhere else cause.iterations
        return msgspec.structs.replace(cause, gain_permille=gain, iterations=iterations)

    return find


def tell(name: KnownCauseName, view: RankView, spans: Union, place: PlaceInCode | None) -> KnownCause | None:
    """A cause that takes these spans; None where they are nothing."""
    each = view.each_ns(spans)
    if not each.any():
        return None
    return KnownCause(
        cause=name,
        time_ns=view.cost_ns(spans),
        gain_permille=find_share(view, view.each_cost_ns(spans), spans),
        count=len(spans[0]),
        iterations=int(np.count_nonzero(each)),
        longest_ns=int((spans[1] - spans[0]).max()),
        place=place,
    )


def _name_frames(samples: RankSamples, stack: int, *, below_own: bool) -> list[str]:
    """The innermost first; a stack without code of the user's has nothing but what is below."""
    places = _list_places(samples, stack)
    if below_own:
        places = list(itertools.takewhile(lambda place: tell_owner(place.file) != OWN, places))
    return [f"{place.file}:{place.function}".replace("\\", "/") for place in places]


def _find_arguments(samples: RankSamples, shown: Collection[int]) -> set[int]:
    """The stacks that end in a line of the user's of whose samples many are below it, in these stacks."""
    counts = Counter(stack for stack in samples.thread.stack if stack is not None)
    own = {stack: found for stack in counts if (found := _find_own_line(samples, stack)) is not None}
    called: Counter[tuple[str, int]] = Counter()
    total: Counter[tuple[str, int]] = Counter()
    for stack, (line, _) in own.items():
        total[line] += counts[stack]
        called[line] += counts[stack] * (stack in shown)
    return {stack for stack, (line, ends) in own.items() if ends and called[line] >= _LEAST_OF_LINE * total[line] > 0}


def _find_own_line(samples: RankSamples, stack: int) -> tuple[tuple[str, int], bool] | None:
    """(file and line of the innermost frame of the user's, whether the stack ends there)."""
    if not 0 <= stack < len(samples.stacks):
        return None
    places = _list_places(samples, stack)
    for depth, place in enumerate(places):
        if tell_owner(place.file) == OWN:
            return (place.file, place.line), depth == 0
    return None


def _list_places(samples: RankSamples, stack: int) -> list[CodePlace]:
    """The frames of a stack, the innermost first."""
    return [samples.places[number] for number in samples.stacks[stack] if 0 <= number < len(samples.places)]


def _is_one_of(named: Sequence[str], kinds: Sequence[Frames]) -> bool:
    return any(all(any(pattern.search(frame) for frame in named) for pattern in kind) for kind in kinds)
