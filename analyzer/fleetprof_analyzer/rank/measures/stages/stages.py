"""The stages of the training loop on one rank: bounds of iterations, labels, sums (docs/measures.md#stages).

No stacks and no annotations of the user are needed. Guarantees: pure; every nanosecond of an iteration on the main
thread has exactly one stage; a stage that nothing marks is filled in from its neighbours and listed as inferred.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

import numpy as np
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report import Iteration
from fleetprof_api.report.report_tables import IterationMarks, StageBounds, StageName, Stages, StageTime

from fleetprof_analyzer.rank.host.code_of_spans import find_code
from fleetprof_analyzer.rank.host.hot_path import find_place
from fleetprof_analyzer.rank.host.track import Chain, Track, within
from fleetprof_analyzer.rank.iterations import NO_PAUSES, behind_pauses
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls
from fleetprof_analyzer.rank.measures.stages.gaps import fill
from fleetprof_analyzer.rank.measures.stages.labels import Label, find_labels
from fleetprof_analyzer.rank.measures.stages.long_iterations import measure_long_iterations
from fleetprof_analyzer.rank.measures.stages.loss import Span
from fleetprof_analyzer.rank.measures.stages.main_thread import MainThread, between, find_main_thread
from fleetprof_analyzer.rank.measures.stages.silences import find_silences
from fleetprof_analyzer.trace.intervals import Union, union
from fleetprof_analyzer.trace.trace import Int64s, Rows, Trace

_ORDER: Final[tuple[StageName, ...]] = (
    "data_loading", "forward", "loss", "backward", "zero_grad", "optimizer", "host", "other"
)  # fmt: skip


_PLACED: Final = frozenset(("forward", "loss", "backward", "optimizer", "other"))  # made of operators
_LEAST_SAMPLES: Final = 10  # of a stage, for a line of it
_MOST_ITERATIONS: Final = 400
_MOST_LISTED: Final = 100  # a request's most; their columns are a part of the rank's summary, which stays small


@dataclass(frozen=True, slots=True)
class FoundStages:
    """The places of a rank's stages: the pieces of each iteration, on the main thread `thread`.

    Without a thread or an iteration there are none, and `reason` says why.
    """

    thread: MainThread | None = None
    bounds: Sequence[Span] = ()
    labels: Sequence[Sequence[Label]] = ()
    found_by: StageBounds = "none"
    inferred: frozenset[StageName] = frozenset()
    reason: str = ""


def find_stages(
    trace: Trace,
    calls: LaunchCalls,
    iterations: Sequence[Iteration],
    marks: IterationMarks,
    pauses: Union = NO_PAUSES,
) -> FoundStages:
    """The places of each iteration's stages; iterations that nothing marks are found by their backward passes.

    None reaches over one of the recorder's `pauses`.
    """
    thread = find_main_thread(trace, calls)
    if thread is None:
        return FoundStages(reason="no operator says what autograd made of it: inference, or the host was not recorded")
    passes = find_passes(thread)
    bounds: list[Span] = [(i.start_ns, i.start_ns + i.duration_ns) for i in iterations]
    found_by: StageBounds = marks
    if not bounds:
        found = [behind_pauses(start, end, pauses) for start, end in bound_by_passes(thread, passes)]
        bounds, found_by = [(start, end) for start, end in found if end > start][:_MOST_ITERATIONS], "backward"
    if not bounds:
        return FoundStages(thread, reason="no backward pass, and no mark of an iteration")
    labels, inferred = label_iterations(trace, thread, passes, bounds)
    return FoundStages(thread, bounds, labels, found_by, frozenset(inferred))


def label_iterations(
    trace: Trace, thread: MainThread, passes: Sequence[Span], bounds: Sequence[Span]
) -> tuple[list[list[Label]], set[StageName]]:
    """The pieces of each iteration, which cover it, with their stages; and the stages that no mark gave."""
    labels: list[list[Label]] = []
    inferred: set[StageName] = set()
    for start, end in bounds:
        # Passes do not overlap, so both their starts and their ends ascend.
        near = passes[bisect_right(passes, start, key=itemgetter(1)) : bisect_left(passes, end, key=itemgetter(0))]
        found = find_labels(trace, thread, near, start, end)
        labels.append(fill(thread, found, start, end))
        inferred |= found.inferred
    return labels, inferred


def find_passes(thread: MainThread) -> list[Span]:
    """The backward passes: autograd's rows on any thread, apart where the main thread goes forward in between."""
    starts, ends = union(thread.autograd.start_ns, thread.autograd.end_ns)
    if len(starts) == 0:
        return []
    forward = np.sort(thread.top.start_ns[thread.trains])
    apart = np.searchsorted(forward, starts[1:]) > np.searchsorted(forward, ends[:-1])
    first = np.concatenate(([0], np.flatnonzero(apart) + 1))
    last = np.append(first[1:], len(starts)) - 1
    return list(zip(starts[first].tolist(), ends[last].tolist(), strict=True))


def bound_by_passes(thread: MainThread, passes: Sequence[Span]) -> list[Span]:
    """Iterations where nothing marks them: each ends with the update that follows a backward pass, or with the pass."""
    ends = []
    forward = np.sort(thread.top.start_ns[thread.trains])
    for number, (_, end) in enumerate(passes):
        next_pass = passes[number + 1][0] if number + 1 < len(passes) else np.iinfo(np.int64).max
        at = int(np.searchsorted(forward, end))
        limit = min(next_pass, int(forward[at]) if at < len(forward) else next_pass)
        after = [
            int(rows.end_ns.max())
            for rows in (between(thread.updates, end, limit), between(thread.optimizer, end, limit))
            if len(rows)
        ]
        if after or number + 1 == len(passes):
            ends.append(max(after, default=end))
    begin = int(thread.operators.start_ns.min()) if len(thread.operators) else 0
    return [(start, end) for start, end in zip([begin, *ends], ends, strict=False) if end > start]


def sum_up(trace: Trace, calls: LaunchCalls, found: FoundStages, track: Track | None) -> Stages:
    """The sums of what was found, and where in the code its silences lie."""
    thread, labels = found.thread, found.labels
    if thread is None or found.reason:
        return Stages(reason=found.reason)
    rows = trace.rows.select(trace.rows.on_device)
    stage_of_row = _assign(calls, rows, thread, [label for each in labels for label in each])
    times = [Counter[StageName]() for _ in labels]
    for sums, each in zip(times, labels, strict=True):
        for start, end, stage in each:
            sums[stage] += end - start
    pieces = [label for each in labels for label in each]
    stages = []
    for number, stage in enumerate(_ORDER):
        mine = stage_of_row == number
        each_ns = [sums[stage] for sums in times]
        if any(each_ns) or mine.any():
            stages.append(
                StageTime(
                    stage=stage,
                    time_ns=sum(each_ns),
                    device_ns=int(rows.duration_ns[mine].sum()),
                    device_count=int(mine.sum()),
                    iterations_ns=each_ns if len(each_ns) <= _MOST_LISTED else [],
                    place=_find_place(track, pieces, stage),
                )
            )
    loading = [(start, end) for start, end, stage in pieces if stage == "data_loading"]

    def find_line(spans: Sequence[Span]) -> PlaceInCode | None:
        return find_code(trace, thread.place, track, spans) if spans else None

    marked = found.found_by not in ("backward", "none")
    return Stages(
        stages=stages,
        iterations=len(labels),
        iterations_from=found.found_by,
        inferred=sorted(found.inferred),
        silences=find_silences(trace, thread, pieces, track),
        loading_place=find_line(loading),
        long_iterations=measure_long_iterations(found.bounds, times, find_line) if marked else None,
        unknown_device_ns=int(rows.duration_ns[stage_of_row < 0].sum()),
    )


def _find_place(track: Track | None, pieces: Sequence[Label], stage: StageName) -> PlaceInCode | None:
    """The line that holds most of a stage, by the samples of its thread; None where that is what drives the loop."""
    if track is None or stage not in _PLACED:
        return None

    def look(wanted: StageName) -> list[tuple[Chain, int]]:
        return within(track, [(start, end) for start, end, of in pieces if of == wanted])

    place = find_place(look(stage), _LEAST_SAMPLES)
    if place is None or 2 * place.samples < place.of_samples:
        return None
    others = [chain for chain, _ in look("forward" if stage == "backward" else "backward")]
    drives = sum(any((file, function) == (place.file, place.function) for file, function, _ in one) for one in others)
    return None if others and 2 * drives >= len(others) else place


def _assign(calls: LaunchCalls, rows: Rows, thread: MainThread, labels: Sequence[Label]) -> Int64s:
    """The stage of each device row by its launch: autograd's threads go backward, the main thread is where it is."""
    call = calls.of(rows)
    ordered = sorted(labels)
    starts = np.array([left for left, _, _ in ordered], np.int64)
    ends = np.array([right for _, right, _ in ordered], np.int64)
    stages = np.array([_ORDER.index(stage) for _, _, stage in ordered], np.int64)
    if len(calls.calls) == 0 or len(rows) == 0:
        return np.full(len(rows), -1, np.int64)
    launched, place = calls.calls.start_ns[call], calls.calls.place[call]
    at = np.maximum(np.searchsorted(starts, launched, side="right") - 1, 0)
    inside = (call >= 0) & (launched >= starts[at]) & (launched < ends[at])
    by_autograd = thread.helps[place] & (place != thread.place)
    return np.where(inside, np.where(by_autograd, _ORDER.index("backward"), stages[at]), -1)
