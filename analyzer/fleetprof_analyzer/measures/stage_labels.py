"""Labels one iteration's time on the main thread with its stages (docs/measures.md#stages).

From operators, autograd and PyTorch's own marks; no stacks, no annotations of the user. Guarantees: pure; the pieces
cover the iteration without gaps or overlaps; a stage that nothing marks is filled in from its neighbours and listed.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from fleetprof_api.report_tables import StageName

from fleetprof_analyzer.intervals import covered, union
from fleetprof_analyzer.measures import stage_names as names
from fleetprof_analyzer.measures.main_thread import MainThread, between
from fleetprof_analyzer.trace import Bools, Rows, Trace

# What goes before what where two cover one time.
_PRIORITY: Final[tuple[StageName, ...]] = (
    "data_loading", "zero_grad", "optimizer", "backward", "loss", "forward", "other"
)  # fmt: skip
_LAST_OPERATORS: Final = 6
_LEAST_DATA_DIVISOR: Final = 100
_MOST_FUNCTIONS: Final = 32
# Of one iteration (accumulated gradients); what is beyond is taken as one.
_MOST_PASSES: Final = 256

Span = tuple[int, int]
Label = tuple[int, int, StageName]


@dataclass(slots=True)
class Labels:
    """The stages of one iteration as they are found; `inferred` without a mark."""

    spans: dict[StageName, list[Span]] = field(default_factory=dict)
    inferred: set[StageName] = field(default_factory=set)

    def add(self, stage: StageName, start: int, end: int) -> None:
        """Gives [start, end) to a stage; an empty one is nothing."""
        if end > start:
            self.spans.setdefault(stage, []).append((start, end))

    def of(self, *stages: StageName) -> list[Span]:
        """The spans of these stages."""
        return [span for stage in stages for span in self.spans.get(stage, [])]


def find_labels(trace: Trace, thread: MainThread, passes: Sequence[Span], start: int, end: int) -> Labels:
    """What marks say about one iteration."""
    found = Labels()
    inside = slice(*np.searchsorted(thread.top.start_ns, (start, end)).tolist())
    top, trains, uploads = between(thread.top, start, end), thread.trains[inside], thread.uploads[inside]
    marked: list[tuple[StageName, Rows]] = [
        ("data_loading", thread.data),
        ("zero_grad", thread.zero_grad),
        ("optimizer", thread.optimizer),
    ]
    for stage, rows in marked:
        for row_start, row_end in _spans(rows, start, end):
            found.add(stage, row_start, row_end)
    own = [(max(a, start), min(b, end)) for a, b in passes if a < end and b > start]
    if len(own) > _MOST_PASSES:
        own[_MOST_PASSES - 1 :] = [(own[_MOST_PASSES - 1][0], own[-1][1])]
    _find_uploads(found, top, trains, uploads, own)
    previous = start
    for number, (first, last) in enumerate(own):
        limit = own[number + 1][0] if number + 1 < len(own) else end
        backward = _extend(trace, thread, top, trains, first, last, limit)
        found.add("backward", *backward)
        _find_forward(trace, thread, found, top, trains, previous, backward[0])
        previous = backward[1]
    if not found.spans.get("optimizer") and own:
        updates = between(thread.updates, previous, end)
        if len(updates):
            found.add("optimizer", int(updates.start_ns.min()), min(int(updates.end_ns.max()), end))
            found.inferred.add("optimizer")
    if not own:
        _find_forward(trace, thread, found, top, trains, start, end)
    return found


def _find_uploads(found: Labels, top: Rows, trains: Bools, uploads: Bools, passes: Sequence[Span]) -> None:
    """The leading operators that autograd does not go through, up to the last copy to the device."""
    before = np.ones(len(top), np.bool_) if not passes else top.start_ns < passes[0][0]
    leading = np.logical_and.accumulate(before & ~trains) if len(top) else before
    copies = np.flatnonzero(leading & uploads)
    if len(copies):
        end = int(top.end_ns[copies[-1]])
        found.add("data_loading", max([int(top.start_ns[0]), *(b for _, b in found.of("zero_grad") if b < end)]), end)
        found.inferred.add("data_loading")


def _extend(trace: Trace, thread: MainThread, top: Rows, trains: Bools, first: int, last: int, limit: int) -> Span:
    """A backward pass with what belongs to it before and after: its seed, autograd's threads, collectives it began."""
    before = int(np.searchsorted(top.end_ns, first, side="right")) - 1
    if before >= 0 and names.SEED.search(trace.names[top.name[before]]):
        first = int(top.start_ns[before])
    for starts in (thread.optimizer.start_ns, top.start_ns[trains]):
        following = int(np.searchsorted(starts, last))
        limit = min(limit, int(starts[following])) if following < len(starts) else limit
    for begun in (between(thread.collectives, first, min(limit, last + 1)), between(thread.beside, first, limit)):
        if len(begun):
            last = max(last, int(begun.end_ns.max()))
    return first, min(last, limit)


def _find_forward(
    trace: Trace, thread: MainThread, found: Labels, top: Rows, trains: Bools, start: int, end: int
) -> None:
    """Forward and loss between two points: from the model's range or the first operator to the last one."""
    # Gradients may be set to zero, and the next batch fetched, behind the forward pass: that does not begin it.
    trained = between(top.select(trains), start, end).start_ns
    before = int(trained[0]) if len(trained) else end
    begin = max([start, *(b for a, b in found.of("data_loading", "zero_grad") if a <= before and b <= end)])
    rows = between(top, begin, end)
    zeroed = between(thread.zero_grad, begin, end)
    rows = rows.select(~covered(rows.start_ns, union(zeroed.start_ns, zeroed.end_ns)))
    if len(rows) == 0:
        return
    model = [(a, b) for a, b in _spans(thread.model, start, end) if a >= start]
    first = min([int(rows.start_ns[0]), *(a for a, _ in model if a >= begin)])
    last = int(min(rows.end_ns.max(), end))
    loss = _loss_start(trace, thread, rows, model, end)
    found.add("forward", first, min(last, loss))
    # A loss neither communicates nor uploads: what does is the next batch, fetched ahead.
    ahead = rows.select((rows.start_ns >= loss) & _fetches(thread, rows))
    turn = int(ahead.start_ns[0]) if len(ahead) else last
    found.add("loss", loss, turn)
    found.add("other", turn, int(min(ahead.end_ns.max(), end)) if len(ahead) else last)


def _fetches(thread: MainThread, rows: Rows) -> Bools:
    """Which operators copy to the device or begin a collective."""
    near = between(thread.collectives, int(rows.start_ns[0]), int(rows.end_ns.max()) + 1)
    begun = near.start_ns[near.place == thread.place]
    first, last = np.searchsorted(thread.top.start_ns, (rows.start_ns[0], rows.start_ns[-1] + 1))
    uploads = thread.top.start_ns[first:last][thread.uploads[first:last]]
    communicates = np.searchsorted(begun, rows.end_ns) > np.searchsorted(begun, rows.start_ns)
    return np.asarray(communicates | np.isin(rows.start_ns, uploads))


def _loss_start(trace: Trace, thread: MainThread, rows: Rows, model: Sequence[Span], end: int) -> int:
    """Where the loss begins; `end` where there is none."""
    if model:
        after = max(b for _, b in model)
        following = rows.start_ns[rows.start_ns >= after]
        if len(following):
            return int(following[0])
    reached = -1
    first = int(np.searchsorted(thread.autograd.start_ns, end))
    later = thread.autograd.part(first, first + 8 * _MOST_FUNCTIONS)
    rows_of = [(trace.names[name], at) for name, at in zip(later.name.tolist(), later.detail.tolist(), strict=True)]
    functions = [(function, number) for name, number in rows_of if (function := names.function_of(name))]
    functions = functions or [(name, number) for name, number in rows_of if names.is_function(name)]
    for function, number in functions[:_MOST_FUNCTIONS]:
        if not names.is_loss_like(function):
            break
        reached = number if number >= 0 else reached
    if reached >= 0:
        begin = int(rows.start_ns[0])
        made = between(thread.operators, begin, end)
        made = made.select(made.detail == reached)
        if len(made):
            start = int(made.start_ns[0])
            enclosing = np.flatnonzero((rows.start_ns <= start) & (rows.end_ns > start))
            return int(rows.start_ns[enclosing[0]]) if len(enclosing) else start
    for position in range(max(0, len(rows) - _LAST_OPERATORS), len(rows)):
        if names.is_loss_operator(trace.names[rows.name[position]]):
            return int(rows.start_ns[position])
    return end


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
    for position, marked in enumerate(stages):
        left, right = cuts[position], cuts[position + 1]
        stage = marked
        if stage is None:
            before = next((s for s in reversed(stages[:position]) if s is not None), None)
            after = next((s for s in stages[position + 1 :] if s is not None), None)
            stage = _fill_gap(thread, found, before, after, (left, right), end - start)
        labels.append((left, right, stage))
    return labels


def _fill_gap(
    thread: MainThread, found: Labels, before: StageName | None, after: StageName | None, gap: Span, length: int
) -> StageName:
    """What a piece that nothing marks belongs to."""
    at = np.searchsorted(thread.top.start_ns, gap)
    works = bool(at[1] > at[0])
    long = (gap[1] - gap[0]) * _LEAST_DATA_DIVISOR >= length
    if (before is None or before == "optimizer") and long and "data_loading" not in found.spans:
        found.inferred.add("data_loading")
        return "data_loading"
    if after is None:
        return "other"
    if before == "backward" and after in ("optimizer", "zero_grad"):
        return "optimizer" if works and after == "optimizer" else "backward"
    if before == "forward" and after == "backward" and works and "loss" not in found.spans:
        found.inferred.add("loss")
        return "loss"
    return after


def _spans(rows: Rows, start: int, end: int) -> list[Span]:
    """The rows that begin in [start, end), cut at its end."""
    inside = between(rows, start, end)
    return list(zip(inside.start_ns.tolist(), np.minimum(inside.end_ns, end).tolist(), strict=True))
