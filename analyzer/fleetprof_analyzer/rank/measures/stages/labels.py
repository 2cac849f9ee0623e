"""Finds the stages of one iteration on the main thread (docs/measures.md#stages).

From operators, autograd and PyTorch's own marks; no stacks, no annotations of the user. Guarantees: pure; a stage that
is found without a mark of its own is listed as inferred. What lies between the stages is filled in by `gaps`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from fleetprof_api.report.report_tables import StageName

from fleetprof_analyzer.rank.measures.stages.backward import extend, find_forward_within
from fleetprof_analyzer.rank.measures.stages.loss import Span, find_loss, find_losses, part_loss
from fleetprof_analyzer.rank.measures.stages.main_thread import MainThread, between
from fleetprof_analyzer.trace import stage_names as names
from fleetprof_analyzer.trace.intervals import covered, list_spans, union, without
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
    """The labels that marks give one iteration."""
    found = Labels()
    inside = slice(*np.searchsorted(thread.top.start_ns, (start, end)).tolist())
    top, trains, copies = between(thread.top, start, end), thread.trains[inside], thread.copies[inside]
    marked: list[tuple[StageName, Rows]] = [("data_loading", thread.data), ("zero_grad", thread.zero_grad)]
    for stage, rows in marked:
        for row_start, row_end in _spans(rows, start, end):
            found.add(stage, row_start, row_end)
    if not found.of("zero_grad"):
        _find_zeroes(trace, found, top)
    own = [(max(a, start), min(b, end)) for a, b in passes if a < end and b > start]
    if len(own) > _MOST_PASSES:
        own[_MOST_PASSES - 1 :] = [(own[_MOST_PASSES - 1][0], own[-1][1])]
    _find_gathers(trace, thread, found, start, end)
    _find_uploads(found, top, trains, copies, own)
    within = find_forward_within(thread, top.select(trains), own, least_silence(end - start))
    for forward in list_spans(within):
        found.add("forward", *forward)
    previous = start
    for number, (first, last) in enumerate(own):
        limit = own[number + 1][0] if number + 1 < len(own) else end
        backward = extend(trace, thread, top, trains, first, last, limit)
        for part in list_spans(without(union(*np.array([backward], np.int64).T), within)):
            found.add("backward", *part)
        _find_forward(trace, thread, found, top, trains, (previous, backward[0]), end - start)
        previous = backward[1]
    _find_steps(thread, found, top.start_ns[trains], start, end)
    if not len(between(thread.optimizer, start, end)) and own:
        updates = between(thread.updates, previous, end)
        if len(updates):
            found.add("optimizer", int(updates.start_ns.min()), min(int(updates.end_ns.max()), end))
            found.inferred.add("optimizer")
    if not own:
        _find_forward(trace, thread, found, top, trains, (start, end), end - start)
    return found


def _find_zeroes(trace: Trace, found: Labels, top: Rows) -> None:
    """Gradients that are set to zero one after the other, where nothing marks it."""
    zeroes = where_name(top, trace.names, matcher(names.ZEROES))
    if not zeroes.any():
        return
    run = np.append(False, zeroes | where_name(top, trace.names, matcher(names.DETACHES)))
    turns = np.flatnonzero(np.diff(np.append(run, False)))
    for first, behind in turns.reshape(-1, 2).tolist():
        own = np.flatnonzero(zeroes[first:behind]) + first
        if len(own) > 1 or (len(own) and "_foreach_" in trace.names[top.name[own[0]]]):
            found.add("zero_grad", int(top.start_ns[own[0]]), int(top.end_ns[own[-1]]))
            found.inferred.add("zero_grad")


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
    """Gives a step what gathers parameters right behind it: each rank updates a part of them (ZeRO)."""
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
        passed &= ~thread.uploads[at : at + _MOST_PLACED]
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
    marked = found.of("data_loading", "zero_grad", "optimizer")
    ends = {max([int(top.start_ns[0]), *(b for _, b in marked if b < end)]): end for end in top.end_ns[copies].tolist()}
    for begin, end in ends.items():
        found.add("data_loading", begin, min([end, *(a for a, b in marked if a > begin and b > end)]))
    found.inferred.add("data_loading")


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
    turn, ahead_end = _find_ahead(thread, rows, trains[np.searchsorted(top.start_ns, rows.start_ns)], (loss, last))
    for part_start, part_end in part_loss(trace, rows, top, trains, (loss, last), least_silence(length)):
        found.add("loss", part_start, min(turn, part_end))
    found.add("other", turn, min(ahead_end, end))


def _find_ahead(thread: MainThread, rows: Rows, trains: Bools, loss: Span) -> Span:
    """The next batch, fetched ahead: from the loss on, all that autograd goes through nothing of, around each fetch."""
    begin, last = loss
    fetches = np.flatnonzero((rows.start_ns >= begin) & _fetches(thread, rows))
    if len(fetches) == 0:
        return last, last
    barred = np.flatnonzero(trains | (rows.start_ns < begin))
    first = int(np.append(-1, barred[barred < fetches[0]])[-1]) + 1
    behind = int(np.append(barred[barred > fetches[-1]], len(rows))[0])
    return int(rows.start_ns[min(first, int(fetches[0]))]), int(rows.end_ns[first:behind].max())


def _forward_start(trace: Trace, thread: MainThread, rows: Rows, trained: int, marked: bool, length: int) -> int:
    """The begin of forward: with the model or what autograd goes through, or with the operators right before that.

    No long silence is passed on the way back; nor, where the model marks its range, what communicates or uploads.
    """
    ahead = rows.select(rows.start_ns < trained)
    if len(ahead) == 0:
        return trained
    barred = np.append(ahead.start_ns[1:], trained) - np.maximum.accumulate(ahead.end_ns) >= least_silence(length)
    if marked:
        communicates = where_name(ahead, trace.names, matcher(names.COMMUNICATES))
        barred |= communicates | _fetches(thread, ahead)
    else:  # parameters may be gathered there, but what all ranks exchange is input
        barred |= where_name(ahead, trace.names, matcher(names.EXCHANGES))
    passed = len(ahead) if not barred.any() else int(barred[::-1].argmax())
    return int(ahead.start_ns[len(ahead) - passed]) if passed else trained


def _fetches(thread: MainThread, rows: Rows) -> Bools:
    """A mask of operators that copy to the device or begin a collective."""
    first, last = np.searchsorted(thread.top.start_ns, (rows.start_ns[0], rows.start_ns[-1] + 1))
    uploads = thread.top.start_ns[first:last][thread.uploads[first:last]]
    communicates = np.searchsorted(thread.begun_ns, rows.end_ns) > np.searchsorted(thread.begun_ns, rows.start_ns)
    return np.asarray(communicates | np.isin(rows.start_ns, uploads))


def _spans(rows: Rows, start: int, end: int) -> list[Span]:
    """The rows that begin in [start, end), cut at its end."""
    inside = between(rows, start, end)
    return list(zip(inside.start_ns.tolist(), np.minimum(inside.end_ns, end).tolist(), strict=True))
