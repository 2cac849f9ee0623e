"""Cuts an iteration into labelled pieces: stages that were found, and what lies between (docs/measures.md#stages).

Guarantees: pure; the pieces cover the iteration without gaps or overlaps; what is filled in by a guess is listed.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import numpy as np
from fleetprof_api.report.report_tables import StageName

from fleetprof_analyzer.rank.measures.stages.labels import Label, Labels, least_silence
from fleetprof_analyzer.rank.measures.stages.main_thread import MainThread, between

# From the receipt on its own thread until the main thread goes on.
_WAKING_NS: Final = 500_000
# What goes before what where two cover one time.
_PRIORITY: Final[tuple[StageName, ...]] = (
    "data_loading", "zero_grad", "optimizer", "backward", "loss", "forward", "other"
)  # fmt: skip


def fill(thread: MainThread, found: Labels, start: int, end: int) -> list[Label]:
    """The iteration cut into labelled pieces without gaps."""
    borders = {time for spans in found.spans.values() for span in spans for time in span}
    cuts = sorted({start, end, *(time for time in borders if start < time < end)})
    stages: list[StageName | None] = [None] * (len(cuts) - 1)
    for one in reversed(_PRIORITY):
        reached = start
        for first, last in sorted(found.spans.get(one, ())):
            begin = bisect_left(cuts, max(first, reached))
            count = min(bisect_left(cuts, last), len(stages)) - begin
            if count > 0:
                stages[begin : begin + count] = [one] * count
            reached = max(reached, last)
    labels: list[Label] = []
    loads = len(between(thread.data, start, end)) > 0
    for position, marked in enumerate(stages):
        left, right = cuts[position], cuts[position + 1]
        if marked is not None:
            labels.append((left, right, marked))
            continue
        before = next((s for s in reversed(stages[:position]) if s is not None), None)
        after = next((s for s in stages[position + 1 :] if s is not None), None)
        # The wait for a batch that nothing marks ends with its copy to the device.
        unmarked = after == "data_loading" and not loads
        # Where rows are missing, nothing is seen to be silent that is shorter than their usual distance.
        least = round(least_silence(end - start) * thread.ran_per_row)
        for begin, until, works in _cut(thread, left, right, least):
            if works is None and after is not None and not unmarked and _ends_with_receipt(thread, begin, until):
                labels.append((begin, until, after))
                continue
            if works is None and not unmarked:
                labels += _cut_entries(found.entered, begin, until, least)
                continue
            if works is None:
                stage: StageName = "data_loading"
            elif works and until - begin >= least and _is_apart(before, after) and not unmarked:
                # What a stage of a pipeline receives is for what it does next.
                stage = after if after is not None and _passes_on(thread, begin, until) else "other"
            else:
                stage = _fill_gap(found, before, after, works=works)
            labels.append((begin, until, stage))
    return labels


def _cut(thread: MainThread, left: int, right: int, least: int) -> list[tuple[int, int, bool | None]]:
    """A gap cut into silences of at least that length (None), and what is between them: whether operators run there."""
    inside = between(thread.top, left, right)
    starts = np.append(inside.start_ns, right)
    first, last = np.searchsorted(thread.top.start_ns, (left, right))
    # A wait for other ranks that began before this gap goes on in it.
    began = left if first == 0 else max(left, int(thread.reached_ns[first - 1]))
    ends = np.minimum(np.concatenate(([began], thread.reached_ns[first:last])), right)
    pieces: list[tuple[int, int, bool | None]] = []
    reached, works = left, False
    for number in np.flatnonzero(starts - ends >= least).tolist():
        begin, until = int(ends[number]), int(starts[number])
        if begin > reached:
            pieces.append((reached, begin, True))
        pieces.append((begin, until, None))
        reached = until
    works = len(between(inside, reached, right)) > 0
    if right > reached:
        pieces.append((reached, right, works))
    return pieces


def _ends_with_receipt(thread: MainThread, begin: int, until: int) -> bool:
    """Tells whether a silence ends when something received is there, which the main thread waited for."""
    first, last = np.searchsorted(thread.received_ns, (max(begin, until - _WAKING_NS), until), side="right")
    return bool(last > first)


def _passes_on(thread: MainThread, begin: int, until: int) -> bool:
    """Tells whether the main thread mostly sends to other ranks there, receives, and waits for that."""
    first, last = np.searchsorted(thread.top.start_ns, (begin, until)).tolist()
    lasts = thread.reached_ns[first:last] - thread.top.start_ns[first:last]
    return bool(2 * lasts[thread.passes_on[first:last]].sum() > until - begin)


def _cut_entries(entered: Sequence[int], begin: int, until: int, least: int) -> list[Label]:
    """A silence of the host, but for PyTorch's own Python where a step in it calls its closure.

    Hooks, checks and the mode of gradients take 0.3 ms there. That much at most is the optimizer's.
    """
    pieces: list[Label] = []
    for entry in sorted(entered):
        if begin <= entry < until:
            called = min(entry + least, until)
            pieces += [(begin, entry, "host"), (entry, called, "optimizer")]
            begin = called
    pieces.append((begin, until, "host"))
    return [(left, right, stage) for left, right, stage in pieces if right > left]


def _is_apart(before: StageName | None, after: StageName | None) -> bool:
    """Tells whether operators between these stages belong to neither: before forward, and metrics behind the loss."""
    return after in ("data_loading", "forward") or (before == "loss" and after in ("loss", "zero_grad", "backward"))


def _fill_gap(found: Labels, before: StageName | None, after: StageName | None, *, works: bool) -> StageName:
    """The stage that a piece belongs to which nothing marks, where it is no long silence."""
    if after is None:
        return "other"
    if before == "backward" and after in ("optimizer", "zero_grad"):
        return "optimizer" if works and after == "optimizer" else "backward"
    if before == "forward" and after == "backward" and works and "loss" not in found.spans:
        found.inferred.add("loss")
        return "loss"
    return after
