"""The names of a timeline with the class that colours them.

The class is that of a row, not of a name: a collective is exposed where nothing computes beside it. A name that has
rows of two classes stands twice. Guarantees: pure; a name is cut at `MOST_CHARACTERS`; of more than `MOST_NAMES`, the
ones with the least time become one, which is counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from fleetprof_api.spoken_names import say_name

from fleetprof_analyzer.pyramid.header import CLASSES, Names
from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.trace import stage_names
from fleetprof_analyzer.trace.classes import WorkClass, is_data_loading, is_host_communication
from fleetprof_analyzer.trace.intervals import covered_length, union
from fleetprof_analyzer.trace.trace import Category, Int32s, Int64s, Trace

MOST_NAMES: Final = 65_536
MOST_CHARACTERS: Final = 2000
OTHERS: Final = "(other names)"

_COMPUTE, _EXPOSED, _OVERLAPPED, _MEMORY, _LOADING, _HOST, _OPTIMIZER = range(len(CLASSES))
Classes = npt.NDArray[np.int8]
_OF_WORK: Final = np.array([_COMPUTE, _EXPOSED, _MEMORY], np.int8)  # by WorkClass


@dataclass(frozen=True, slots=True)
class Named:
    """`name` of each row, shape (n,), indexes `names`."""

    name: Int32s
    names: Names
    left_out: int


def classify(
    trace: Trace,
    works: Sequence[DeviceWork],
    category: npt.NDArray[np.int8],
    name: Int32s,
    start: Int64s,
    duration: Int64s,
) -> Classes:
    """The class of rows of the trace, columns of shape (n,), as a number of `CLASSES`."""
    on_device = np.flatnonzero(category <= Category.MEMSET)
    devices = len(on_device) > 0
    by_name = np.array([_class_on_host(text, devices=devices) for text in trace.names] or [_HOST], np.int8)
    classes = by_name.take(name)
    if devices:
        kernels = np.full(len(by_name), _COMPUTE, np.int8)
        for work in works:
            kernels[work.rows.name] = _OF_WORK.take(work.classes)
        classes[on_device] = kernels.take(name.take(on_device))
    collective = np.flatnonzero(classes == _EXPOSED)
    if len(collective):
        computing = [work.rows.select(work.classes == WorkClass.COMPUTE) for work in works]
        busy = union(
            np.concatenate([rows.start_ns for rows in computing] or [np.zeros(0, np.int64)]),
            np.concatenate([rows.end_ns for rows in computing] or [np.zeros(0, np.int64)]),
        )
        first = start[collective]
        last = first + duration[collective]
        hidden = covered_length(last, busy) - covered_length(first, busy)
        classes[collective[2 * hidden > last - first]] = _OVERLAPPED
    return classes


def _class_on_host(name: str, *, devices: bool) -> int:
    """Classifies a row of the host: where the rank has a device, its work is there, and the host only leads to it."""
    if is_data_loading(name):
        return _LOADING
    if stage_names.OPTIMIZER_STEP.search(name) or stage_names.ZERO_GRAD.search(name):
        return _OPTIMIZER
    if devices:
        return _HOST
    if is_host_communication(name):
        return _EXPOSED
    return _COMPUTE if name.startswith(("aten::", "autograd::", "torch::")) else _HOST


def gather_names(texts: Sequence[str], name: Int32s, classes: Classes, duration_ns: Int64s) -> Named:
    """The dictionary of rows with these names and classes, the longest total first."""
    key = name * np.int32(len(CLASSES)) + classes
    size = max(1, len(texts)) * len(CLASSES)
    counts = np.bincount(key, minlength=size)
    totals = np.bincount(key, duration_ns, minlength=size)
    used = np.flatnonzero(counts)
    used = used[np.argsort(-totals[used], kind="stable")]
    kept = used if len(used) <= MOST_NAMES else used[: MOST_NAMES - 1]
    left = used[len(kept) :]
    number = np.zeros(size, np.int32)
    number[kept] = np.arange(len(kept))
    number[left] = len(kept)
    text = [texts[at // len(CLASSES)] for at in kept.tolist()]
    names = Names(
        text=[_cut(one) for one in text] + [OTHERS] * bool(len(left)),
        short=["" if (spoken := say_name(one)) == one else spoken for one in text] + [""] * bool(len(left)),
        cls=[at % len(CLASSES) for at in kept.tolist()] + [_HOST] * bool(len(left)),
        count=counts[kept].tolist() + [int(counts[left].sum())] * bool(len(left)),
        total_ns=totals[kept].astype(np.int64).tolist() + [int(totals[left].sum())] * bool(len(left)),
    )
    return Named(number.take(key), names, len(left))


def _cut(name: str) -> str:
    return name if len(name) <= MOST_CHARACTERS else f"{name[: MOST_CHARACTERS - 1]}…"
