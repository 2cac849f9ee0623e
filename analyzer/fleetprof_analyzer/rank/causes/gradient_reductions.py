"""Gradients that are reduced after each of several backward passes of one optimizer step: `no_sync` was left out.

Guarantees: pure; passes of other models, with a step between them, or whose layers communicate themselves are no
repetition. What is only computed on the way, such as statistics of a layer, is no gradient.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from fleetprof_api.report.rank_tables import KnownCause

from fleetprof_analyzer.rank.causes.rank_view import RankView, overlap
from fleetprof_analyzer.rank.causes.share import find_share
from fleetprof_analyzer.rank.measures.stages.main_thread import MainThread, between
from fleetprof_analyzer.rank.measures.stages.stages import find_passes
from fleetprof_analyzer.trace import stage_names
from fleetprof_analyzer.trace.intervals import join, union
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.trace import Category, Int64s

_ALIKE: Final = 0.9  # of the functions that two passes go through
_FUNCTION: Final = re.compile(r"^autograd::engine::evaluate_function: ")
_AT_GRADIENTS: Final = re.compile(r"AccumulateGrad$|PostBackward")
_OF_BUCKETS: Final = re.compile(r"^torch(?:\.|::)distributed(?:\.|::)(?:ddp(?:\.|::))?reducer::|^c10d::")
Pass = tuple[int, int]


def find_repeated_reductions(view: RankView) -> KnownCause | None:
    """`count` is how many passes of a step reduce the same."""
    thread = view.stages.thread
    if thread is None or not view.iterations:
        return None
    passes = find_passes(thread)
    reduced = _reductions(view, thread)
    steps = thread.optimizer if len(thread.optimizer) else thread.updates
    groups = [group for group in _between_steps(passes, steps.start_ns) if view.iterations[0].start_ns <= group[0][0]]
    repeated = [len(_alike(thread, group, reduced)) for group in groups]
    again = [count for count in repeated if count > 1]
    if not again or 2 * len(again) < len(groups):
        return None
    avoidable = sum(count - 1 for count in again) / max(1, sum(len(group) for group in groups))
    time_ns = round(_communicating_ns(view, thread) * avoidable)
    return KnownCause(
        cause="repeated_reduction",
        time_ns=time_ns,
        gain_permille=find_share(view, np.full(len(view.iterations), time_ns // len(view.iterations))),
        count=int(np.median(again)),
        iterations=len(again),
    )


def _reductions(view: RankView, thread: MainThread) -> Int64s:
    """The times at which gradients were reduced, as the host called for it; ascending."""
    rows = view.trace.rows
    calls = rows.select(
        (rows.category == Category.OPERATOR) & where_name(rows, view.trace.names, matcher(stage_names.REDUCES))
    )
    functions = thread.autograd.select(where_name(thread.autograd, view.trace.names, matcher(_FUNCTION)))
    of_gradients = where_name(functions, view.trace.names, matcher(_AT_GRADIENTS))
    kept = []
    for place in np.unique(calls.place).tolist():
        here = functions.place == place
        start, end, good = functions.start_ns[here], functions.end_ns[here], of_gradients[here]
        times = calls.start_ns[calls.place == place]
        at = np.searchsorted(start, times, side="right") - 1
        inside = (at >= 0) & (times < (end[np.maximum(at, 0)] if len(end) else 0))
        kept.append(times[~inside | (good[np.maximum(at, 0)] if len(good) else True)])
    return np.sort(np.concatenate(kept)) if kept else np.zeros(0, np.int64)


def _between_steps(passes: Sequence[Pass], steps_ns: Int64s) -> list[list[Pass]]:
    """The passes that each step of the optimizer follows; those behind the last step were cut."""
    borders = [np.iinfo(np.int64).min, *np.sort(steps_ns).tolist()]
    groups = [[one for one in passes if first <= one[0] < last] for first, last in pairwise(borders)]
    return [group for group in groups if group]


def _alike(thread: MainThread, group: Sequence[Pass], reduced_ns: Int64s) -> list[Pass]:
    """The passes that reduce as often as the last one, and go through the same functions."""
    counts = [int(np.diff(np.searchsorted(reduced_ns, one))[0]) for one in group]
    if counts[-1] == 0:
        return []
    names = [np.bincount(between(thread.autograd, *one).name) for one in group]
    return [
        one
        for one, count, of_pass in zip(group, counts, names, strict=True)
        if count == counts[-1] and _share(of_pass, names[-1]) >= _ALIKE
    ]


def _share(first: Int64s, second: Int64s) -> float:
    length = max(len(first), len(second))
    one, other = (np.pad(counts, (0, length - len(counts))) for counts in (first, second))
    return float(np.minimum(one, other).sum() / max(1, np.maximum(one, other).sum()))


def _communicating_ns(view: RankView, thread: MainThread) -> int:
    """The time that nothing hides on devices; without devices all of it, and that of buckets, which share the cores."""
    if view.on_gpu:
        return sum(one.time_ns.exposed_communication for one in view.iterations if one.time_ns is not None)
    rows = view.trace.rows
    buckets = rows.select(where_name(rows, view.trace.names, matcher(_OF_BUCKETS)))
    communicates = join(
        union(buckets.start_ns, buckets.end_ns), union(thread.collectives.start_ns, thread.collectives.end_ns)
    )
    return overlap(communicates, view.whole)
