"""Facts of the host by samples, in no row of its trace: a wait for a batch without a loader's range, collections.

Guarantees: pure; whatever the samples hold, unions of intervals on the trace's clock.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
from fleetprof_api.samples import CodePlace, RankSamples

from fleetprof_analyzer.trace import stage_names
from fleetprof_analyzer.trace.intervals import Union, covered, union, without
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.ordering import distinct
from fleetprof_analyzer.trace.own_code import FOUNDATION, tell_owner
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s, Rows, Trace

_LOADERS: Final = frozenset(("__getitem__", "__getitems__", "__next__"))
_EXPRESSION: Final = "<genexpr>"
_DATA_PACKAGE: Final = ("torch/utils/data/", "torch\\utils\\data\\")
_LATEST_NS: Final = 1 << 62
_LONGEST_NS: Final = 1_000_000_000  # as in track.py
_DRIVES: Final = 0.25  # samples after the forward pass has begun, over those before
_NOTHING: Final[Union] = (np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class HostMarks:
    """The waits of the training thread for a batch, as its stacks show them, and the runs of the collector."""

    loading: Union = _NOTHING
    collection: Union = _NOTHING


def read_marks(trace: Trace, samples: RankSamples | None, bounds: list[tuple[int, int]]) -> HostMarks:
    """Reads a rank's samples, on its trace's clock. `bounds`: its iterations."""
    if samples is None or trace.time_origin != "unix":
        return HostMarks()
    return HostMarks(_find_loading(trace, samples, bounds), find_collections(samples))


def find_collections(samples: RankSamples) -> Union:
    """The runs of the collector, as the agent heard them."""
    pairs = zip(samples.collections.start_unix_ns, samples.collections.duration_ns, strict=False)
    known = [(start, lasted) for start, lasted in pairs if 0 <= start < _LATEST_NS and 0 < lasted < _LATEST_NS]
    if not known:
        return _NOTHING
    start, lasted = (np.array(side, np.int64) for side in zip(*known, strict=True))
    return union(start, start + lasted)


def _find_loading(trace: Trace, samples: RankSamples, bounds: list[tuple[int, int]]) -> Union:
    """Samples before the forward pass whose stack goes through what makes batches, each with the time it stands for."""
    thread = samples.thread
    pairs = zip(thread.at_unix_ns, thread.stack, strict=False)
    rows = sorted({at: stack for at, stack in pairs if 0 <= at < _LATEST_NS}.items())
    if len(rows) < 2 or not bounds:
        return _NOTHING
    at = np.array([moment for moment, _ in rows], np.int64)
    before = _before_forward(trace, bounds)
    early = covered(at, before)
    stacks = [None if stack is None or not 0 <= stack < len(samples.stacks) else stack for _, stack in rows]
    late = covered(at, _union_of(bounds)) & ~early
    drivers = _find_drivers(samples, stacks, early, late)
    loads = {
        stack
        for stack in {stack for stack in stacks if stack is not None}
        if any(_makes_batches(place) and _function(place) not in drivers for place in _places(samples, stack))
    }
    chosen = early & np.array([stack in loads for stack in stacks])
    lasted = np.minimum(np.diff(at, prepend=at[:1]), _LONGEST_NS)
    found = union((at - lasted)[chosen], at[chosen])
    return without(found, without(found, before))


def _union_of(bounds: list[tuple[int, int]]) -> Union:
    return union(*(np.array(side, np.int64) for side in zip(*bounds, strict=True)))


def _find_drivers(samples: RankSamples, stacks: list[int | None], early: Bools, late: Bools) -> set[tuple[str, str]]:
    """Functions that are on the stack during the forward and backward pass as well: they drive the loop.

    One sample alone tells nothing: it may have been taken as the loop went on.
    """
    counters: tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]] = Counter(), Counter()
    for chosen, counts in zip((early, late), counters, strict=True):
        for stack, here in zip(stacks, chosen.tolist(), strict=True):
            if here and stack is not None:
                counts.update({_function(place) for place in _places(samples, stack)})
    before, after = counters
    return {function for function, count in after.items() if count >= _DRIVES * before[function]}


def _places(samples: RankSamples, stack: int) -> list[CodePlace]:
    return [samples.places[number] for number in samples.stacks[stack] if 0 <= number < len(samples.places)]


def _function(place: CodePlace) -> tuple[str, str]:
    return place.file, place.function


def _makes_batches(place: CodePlace) -> bool:
    """A data set, an iterator or a generator, as long as it is none of PyTorch's own beside its loaders."""
    if any(folder in place.file for folder in _DATA_PACKAGE):
        return True
    name = place.function.rpartition(".")[2]
    makes = name in _LOADERS or (place.generator and name != _EXPRESSION)
    return makes and tell_owner(place.file) != FOUNDATION


def _before_forward(trace: Trace, bounds: list[tuple[int, int]]) -> Union:
    """From the start of each iteration to the model's range, or the first operator that autograd goes back through."""
    host = trace.rows.select(~trace.rows.on_device)
    models = where_name(host, trace.names, matcher(stage_names.MODEL))
    models |= where_name(host, trace.names, matcher(stage_names.MODEL_BEGINS))
    begins = np.sort(host.start_ns[models])
    if len(begins) == 0:
        begins = np.sort(_trained(trace, host))
    start = np.array([start for start, _ in bounds], np.int64)
    end = np.array([end for _, end in bounds], np.int64)
    position = np.searchsorted(begins, start)
    first = np.append(begins, np.iinfo(np.int64).max)[position]
    return union(start, np.where(first < end, first, start))


def _trained(trace: Trace, host: Rows) -> Int64s:
    """The times at which operators made what autograd goes back through: of several with one number the last."""
    autograd = where_name(host, trace.names, matcher(stage_names.AUTOGRAD))
    wanted = distinct(host.detail[autograd & (host.detail >= 0)])
    numbered = (host.category == Category.OPERATOR) & ~autograd & (host.detail >= 0)
    chosen = host.select(numbered)
    chosen = chosen.select(np.isin(chosen.detail, wanted))
    chosen = chosen.take(np.lexsort((chosen.start_ns, chosen.detail)))
    last = np.append(chosen.detail[1:] != chosen.detail[:-1], True)[: len(chosen)]
    return np.asarray(chosen.start_ns[last])
