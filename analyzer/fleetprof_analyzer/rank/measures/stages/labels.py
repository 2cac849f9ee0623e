"""Finds the stages of one iteration on the main thread (docs/measures.md#stages).

From operators, autograd and PyTorch's own marks; no stacks, no annotations of the user. Guarantees: pure; a stage that
is found without a mark of its own is listed as inferred. What lies between the stages is filled in by `gaps`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from fleetprof_api.report.report_tables import StageName

from fleetprof_analyzer.rank.measures.stages.loss import Span, find_loss, find_losses, part_loss
from fleetprof_analyzer.rank.measures.stages.main_thread import MainThread, between
from fleetprof_analyzer.trace import stage_names as names
from fleetprof_analyzer.trace.intervals import covered, union
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.trace import Bools, Int64s, Rows, Trace

_LEAST_SILENCE_DIVISOR: Final = 100
# PyTorch's own Python before the first operator of a stage takes up to this long.
_LEAST_SILENCE_NS: Final = 200_000
_MOST_PLACED: Final = 512
# Of one iteration (accumulated gradients); what is beyond is taken as one.
_MOST_PASSES: Final = 256

Label = tuple[int, int, StageName]


@dataclass(slots=True)
class Labels:
    """The stages of one iteration as they are found; `inferred` without a mark.

    `entered` is when each step begins that has a closure, and all of the closure's stages within it.
    """

    spans: dict[StageName, list[Span]] = field(default_factory=dict)
    inferred: set[StageName] = field(default_factory=set)
    entered: list[int] = field(default_factory=list)

    def add(self, stage: StageName, start: int, end: int) -> None:
        """Gives [start, end) to a stage; an empty one is nothing."""
        if end > start:
            self.spans.setdefault(stage, []).append((start, end))

    def of(self, *stages: StageName) -> list[Span]:
        """The spans of these stages."""
        return [span for stage in stages for span in self.spans.get(stage, [])]


def least_silence(length: int) -> int:
    """From how many ns on it counts that the main thread runs no operator, in an iteration of that length."""
    return max(length // _LEAST_SILENCE_DIVISOR, _LEAST_SILENCE_NS)


def find_labels(trace: Trace, thread: MainThread, passes: Sequence[Span], start: int, end: int) -> Labels:
    """What marks say about one iteration."""
    found = Labels()
    inside = slice(*np.searchsorted(thread.top.start_ns, (start, end)).tolist())
    top, trains, copies = between(thread.top, start, end), thread.trains[inside], thread.copies[inside]
    marked: list[tuple[StageName, Rows]] = [("data_loading", thread.data), ("zero_grad", thread.zero_grad)]
    for stage, rows in marked:
        for row_start, row_end in _spans(rows, start, end):
            found.add(stage, row_start, row_end)
    own = [(max(a, start), min(b, end)) for a, b in passes if a < end and b > start]
    if len(own) > _MOST_PASSES:
        own[_MOST_PASSES - 1 :] = [(own[_MOST_PASSES - 1][0], own[-1][1])]
    _find_uploads(found, top, trains, copies, own)
    previous = start
    for number, (first, last) in enumerate(own):
        limit = own[number + 1][0] if number + 1 < len(own) else end
        backward = _extend(trace, thread, top, trains, first, last, limit)
        found.add("backward", *backward)
        _find_forward(trace, thread, found, top, trains, (previous, backward[0]), end - start)
        previous = backward[1]
    _find_steps(thread, found, top.start_ns[trains], start, end)
    _find_gathers(trace, thread, found, start, end)
    if not found.spans.get("optimizer") and own:
        updates = between(thread.updates, previous, end)
        if len(updates):
            found.add("optimizer", int(updates.start_ns.min()), min(int(updates.end_ns.max()), end))
            found.inferred.add("optimizer")
    if not own:
        _find_forward(trace, thread, found, top, trains, (start, end), end - start)
    return found


def _find_steps(thread: MainThread, found: Labels, trained: Int64s, start: int, end: int) -> None:
    """The optimizer's own part of its steps: what a closure does in one is a stage of its own."""
    passes = found.of("backward")
    for begin, step_end in _spans(thread.optimizer, start, end):
        reached = begin
        for first, last in passes:
            if not begin <= first < step_end:
                continue
            if reached == begin:
                found.entered.append(begin)
            else:  # between two calls of the closure
                at = int(np.searchsorted(trained, reached))
                found.add("optimizer", reached, min(first, int(trained[at]) if at < len(trained) else first))
            reached = last
        # What the closure does behind its backward pass lies before the first update.
        updates = between(thread.updates, reached, step_end) if reached > begin else thread.updates.part(0, 0)
        found.add("optimizer", int(updates.start_ns[0]) if len(updates) else reached, step_end)


def _find_gathers(trace: Trace, thread: MainThread, found: Labels, start: int, end: int) -> None:
    """What gathers parameters right behind a step belongs to it: each rank updates a part of them (ZeRO)."""
    if not thread.gathers.any():
        return
    ends = thread.optimizer.end_ns
    # An iteration begins behind a step, which the recording may have missed.
    for step_end in sorted({start, *ends[(ends >= start) & (ends < end)].tolist()}):
        at = int(np.searchsorted(thread.top.start_ns, step_end))
        following = thread.top.part(at, at + _MOST_PLACED)
        gathers = thread.gathers[at : at + _MOST_PLACED]
        if not gathers.any():
            continue
        # The rank's own part is put into its place before, and the others' behind.
        passed = gathers | where_name(following, trace.names, matcher(names.PLACES))
        until = int(np.append(passed, False).argmin())
        if not gathers[:until].any():
            continue
        began = int(following.start_ns[:until][gathers[:until]][-1])
        marked = [a for a, b in found.of("data_loading", "zero_grad") if b > step_end]
        if min([end, *marked]) > began:
            found.add("optimizer", step_end, min([int(thread.reached_ns[at + until - 1]), end, *marked]))


def _find_uploads(found: Labels, top: Rows, trains: Bools, copying: Bools, passes: Sequence[Span]) -> None:
    """The leading operators that autograd does not go through, up to the last copy to the device or from it."""
    before = np.ones(len(top), np.bool_) if not passes else top.start_ns < passes[0][0]
    leading = np.logical_and.accumulate(before & ~trains) if len(top) else before
    copies = np.flatnonzero(leading & copying)
    if len(copies) == 0:
        return
    # Marks may lie in between: each stretch between them ends with its own last copy.
    marked = found.of("data_loading", "zero_grad")
    ends = {max([int(top.start_ns[0]), *(b for _, b in marked if b < end)]): end for end in top.end_ns[copies].tolist()}
    for begin, end in ends.items():
        found.add("data_loading", begin, min([end, *(a for a, b in marked if a > begin and b > end)]))
    found.inferred.add("data_loading")


def _extend(trace: Trace, thread: MainThread, top: Rows, trains: Bools, first: int, last: int, limit: int) -> Span:
    """A backward pass with what belongs to it before and after.

    Its seed; autograd's threads; the collectives that the main thread waits for in silence: they begin before its next
    operator, and it waits no longer than that; and what backward() does behind them.
    """
    before = int(np.searchsorted(top.end_ns, first, side="right")) - 1
    if before >= 0 and names.SEED.search(trace.names[top.name[before]]):
        first = int(top.start_ns[before])
    around = thread.optimizer.end_ns[(thread.optimizer.start_ns <= first) & (thread.optimizer.end_ns > first)]
    limit = min([limit, *around.tolist()])
    for starts in (thread.optimizer.start_ns, top.start_ns[trains]):
        following = int(np.searchsorted(starts, last))
        limit = min(limit, int(starts[following])) if following < len(starts) else limit
    following = int(np.searchsorted(top.start_ns, last))
    silent = min(limit, int(top.start_ns[following])) if following < len(top) else limit
    begun = between(thread.collectives, first, max(silent, min(limit, last + 1)))
    if len(begun):
        last = max(last, min(int(begun.end_ns.max()), silent))
    for rows in (between(thread.beside, first, limit), between(thread.behind, first, limit)):
        if len(rows):
            last = max(last, int(rows.end_ns.max()))
    if limit in thread.optimizer.start_ns:
        last = max(last, _reduced(trace, thread, last, limit))
    return first, min(last, limit)


def _reduced(trace: Trace, thread: MainThread, last: int, step: int) -> int:
    """When the gradients are summed up over the ranks between a backward pass and the optimizer's step.

    That is before anything is measured of them, to clip them or to see whether they are finite; 0 where none are.
    """
    begin, end = np.searchsorted(thread.top.start_ns, (last, step)).tolist()
    if not thread.reduces[begin:end].any():
        return 0
    rows = thread.top.part(begin, end)
    measured = where_name(rows, trace.names, matcher(names.MEASURES))
    reduces = thread.reduces[begin:end] & ~np.logical_or.accumulate(measured)
    if not reduces.any():
        return 0
    # They are copied back up to the first measure.
    until = int(rows.start_ns[measured.argmax()]) if measured.any() else 0
    return max(until, int(thread.reached_ns[begin:end][reduces].max()))


def _find_forward(
    trace: Trace, thread: MainThread, found: Labels, top: Rows, trains: Bools, part: Span, length: int
) -> None:
    """Forward and loss in a part of an iteration, from the model's range or the first operator to the last one."""
    start, end = part
    # Gradients may be set to zero, and the next batch fetched, behind the forward pass: that does not begin it.
    trained = between(top.select(trains), start, end).start_ns
    before = int(trained[0]) if len(trained) else end
    begin = max([start, *(b for a, b in found.of("data_loading", "zero_grad") if a <= before and b <= end)])
    rows = between(top, begin, end)
    zeroed = between(thread.zero_grad, begin, end)
    rows = rows.select(~covered(rows.start_ns, union(zeroed.start_ns, zeroed.end_ns)))
    model = _spans(thread.model, start, end)
    entered = [a for a, _ in model + _spans(thread.begun, start, end)]
    if len(rows):
        reached = min([before, *(a for a in entered if a >= begin)])
        # Where autograd goes through nothing, it ends with its last operator: metrics and logs may follow in silence.
        reached = min(reached, int(rows.end_ns.max())) if reached == end else reached
        first = _forward_start(trace, thread, rows, reached, bool(entered), length)
        rows = rows.select(rows.end_ns > first)
    if len(rows) == 0:  # a model may run no operator at all
        for model_start, model_end in model:
            found.add("forward", model_start, model_end)
        return
    last = min(max(int(rows.end_ns.max()), *(b for _, b in model), 0), end)
    loss = find_loss(trace, thread, rows, model, end)
    found.add("forward", first, min(last, loss))
    # A model that is given the labels computes its loss by itself, and goes on.
    for loss_start, loss_end in _spans(find_losses(trace, rows, model), start, end):
        found.add("loss", loss_start, loss_end)
    # A loss neither communicates nor uploads: what does is the next batch, fetched ahead.
    ahead = rows.select((rows.start_ns >= loss) & _fetches(thread, rows))
    turn = int(ahead.start_ns[0]) if len(ahead) else last
    for part_start, part_end in part_loss(trace, rows, top, trains, (loss, last), least_silence(length)):
        found.add("loss", part_start, min(turn, part_end))
    found.add("other", turn, int(min(ahead.end_ns.max(), end)) if len(ahead) else last)


def _forward_start(trace: Trace, thread: MainThread, rows: Rows, trained: int, marked: bool, length: int) -> int:
    """Where forward begins: with the model or what autograd goes through, or with the operators right before that.

    No long silence is passed on the way back; nor, where the model marks its range, what communicates or uploads.
    """
    ahead = rows.select(rows.start_ns < trained)
    if len(ahead) == 0:
        return trained
    barred = np.append(ahead.start_ns[1:], trained) - np.maximum.accumulate(ahead.end_ns) >= least_silence(length)
    if marked:
        communicates = where_name(ahead, trace.names, matcher(names.COMMUNICATES))
        barred |= communicates | _fetches(thread, ahead)
    passed = len(ahead) if not barred.any() else int(barred[::-1].argmax())
    return int(ahead.start_ns[len(ahead) - passed]) if passed else trained


def _fetches(thread: MainThread, rows: Rows) -> Bools:
    """Which operators copy to the device or begin a collective."""
    near = between(thread.collectives, int(rows.start_ns[0]), int(rows.end_ns.max()) + 1)
    begun = near.start_ns[near.place == thread.place]
    first, last = np.searchsorted(thread.top.start_ns, (rows.start_ns[0], rows.start_ns[-1] + 1))
    uploads = thread.top.start_ns[first:last][thread.uploads[first:last]]
    communicates = np.searchsorted(begun, rows.end_ns) > np.searchsorted(begun, rows.start_ns)
    return np.asarray(communicates | np.isin(rows.start_ns, uploads))


def _spans(rows: Rows, start: int, end: int) -> list[Span]:
    """The rows that begin in [start, end), cut at its end."""
    inside = between(rows, start, end)
    return list(zip(inside.start_ns.tolist(), np.minimum(inside.end_ns, end).tolist(), strict=True))
