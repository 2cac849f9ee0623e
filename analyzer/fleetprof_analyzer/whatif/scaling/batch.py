"""The same job with another batch, from one capture whose operators say their shapes.

Operators whose inputs carry the batch take more time with it, others do not: the optimizer, collectives of weights, the
host that launches. A dimension is the batch's if it is its size, or that times dimensions beside it ([b, t, h] becomes
[b t, h]); shapes of parameters, as optimizer and gradients have them, never are. Guarantees: pure; raises `NotTold`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from fleetprof_analyzer.trace.classes import is_data_loading
from fleetprof_analyzer.trace.intervals import Union, covered, covered_length, union
from fleetprof_analyzer.trace.stage_names import OPTIMIZER_STEP
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s, Rows
from fleetprof_analyzer.whatif.edits import NotTold
from fleetprof_analyzer.whatif.replay.course import RankCourse
from fleetprof_analyzer.whatif.replay.graph import JobGraph, Lengths

_REACH: Final = 2.0
_START_NS: Final = 5_000  # of a kernel: it does not grow with its work
_HOST_SHARE: Final = 0.5  # of operators on a host that grows at the least: short ones mostly begin and end
_MOST_UNKNOWN: Final = 0.3
_GRADIENT: Final = "torch::autograd::AccumulateGrad"
Dimensions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RebatchedJob:
    """Lengths with another batch: where work grows little, and where it grows in proportion."""

    lengths: tuple[Lengths, Lengths]
    rests_on: str


def rebatch(graph: JobGraph, lengths: Lengths, was: float | None, wanted: float) -> RebatchedJob:
    """The lengths if a batch has `wanted` samples instead of `was`. Raises NotTold."""
    if was is None:
        raise NotTold("nothing says the batch size of this capture: say it as CAPTURE@8")
    if not was / _REACH <= wanted <= _REACH * was:
        raise NotTold(f"{wanted:g} is far from {was:g}: one capture tells half to twice its batch size")
    count = len(graph.courses)
    shaped = [_ShapedCourse(one) for one in graph.courses]
    sizes = {int(one) for one in (was, was / count) if one == int(one) and one >= 2}
    growing = {size: [one.growing(size) for one in shaped] for size in sizes}
    calls = {one: sum(int(marks.sum()) for marks in marked) for one, marked in growing.items()}
    # A rank's part of the batch may be a model's dimension as well: only where the batch itself is in few shapes.
    size = max(calls, key=lambda one: (2 * calls[one] >= max(calls.values()), one), default=0)
    if not calls.get(size):
        raise NotTold(f"no operator's shapes hold a batch of {was:g} samples: capture with Shapes, and say its size")
    _refuse_unknown(shaped, lengths)
    factor = wanted / was
    pairs = [
        one.lengthen(marks, lengths.row_ns[number], lengths.host_ns[number], factor)
        for number, (one, marks) in enumerate(zip(shaped, growing[size], strict=True))
    ]
    little, much = (
        Lengths([one[at][1] for one in pairs], [one[at][0] for one in pairs], lengths.transfer_ns) for at in (0, 1)
    )
    return RebatchedJob(
        (little, much),
        f"{calls[size]} calls of operators whose inputs have {size} samples or a multiple by their shape",
    )


class _ShapedCourse:
    """One rank with what its operators were given."""

    def __init__(self, course: RankCourse) -> None:
        self._course, trace = course, course.trace
        host = trace.rows.select(~trace.rows.on_device)
        self._operators = host.select((host.category == Category.OPERATOR) & (host.shape >= 0))
        steps = np.array([OPTIMIZER_STEP.search(one) is not None for one in trace.names], np.bool_)
        self._steps = _spans(host, steps[host.name])
        self._loads = _spans(host, np.array([is_data_loading(one) for one in trace.names], np.bool_)[host.name])
        self._shapes = [_dimensions(one.dimensions) for one in trace.inputs]

    def growing(self, size: int) -> Bools:
        """Tells which operators' inputs carry a batch of this size."""
        operators = self._operators
        updates = covered(operators.start_ns, self._steps)
        updates |= np.array([_GRADIENT in one for one in self._course.trace.names], np.bool_)[operators.name]
        given = [tensor for at in np.unique(operators.shape[updates]).tolist() for tensor in self._shapes[at]]
        parameters = {*given, *(tensor[::-1] for tensor in given)}
        multiples = {size}
        for at in np.unique(operators.shape[~updates]).tolist():
            for tensor in self._shapes[at]:
                if tensor[:1] == (size,) and tensor not in parameters:
                    multiples.update(int(one) for one in np.cumprod(tensor, dtype=object))
        carries = np.array(
            [
                any(tensor not in parameters and not multiples.isdisjoint(tensor) for tensor in tensors)
                for tensors in self._shapes
            ],
            np.bool_,
        )
        return np.asarray(carries[operators.shape] & ~updates) if len(carries) else updates

    def unknown(self, row_ns: Int64s) -> int:
        """The time of rows of which no shape says anything."""
        rows = self._course.rows
        known = covered(rows.called_ns, _spans(self._operators, np.ones(len(self._operators), np.bool_)))
        known |= covered(rows.called_ns, self._steps) | (rows.operation >= 0)
        return int(row_ns[~known].sum())

    def lengthen(
        self, growing: Bools, row_ns: Int64s, host_ns: Int64s, factor: float
    ) -> tuple[tuple[Int64s, Int64s], tuple[Int64s, Int64s]]:
        """(rows, host) where work grows little, and where it grows in proportion."""
        rows, spans = self._course.rows, _spans(self._operators, growing)
        carried = covered(rows.called_ns, spans) & (rows.operation < 0)
        more = factor - 1
        work = np.maximum(row_ns - _START_NS, 0)
        loading = np.minimum(self._inside(self._loads), host_ns)
        inside = np.zeros(len(host_ns), np.int64)
        if self._course.kind == "cpu":
            inside = np.minimum(self._inside(spans), host_ns - loading)
        little = np.where(carried, row_ns + more * work, row_ns), host_ns + more * _HOST_SHARE * inside
        much = np.where(carried, row_ns + more * row_ns, row_ns), host_ns + more * (inside + loading)
        return _rounded(little), _rounded(much)

    def _inside(self, spans: Union) -> Int64s:
        host = self._course.host
        return covered_length(host.arrived_ns, spans) - covered_length(host.begin_ns, spans)


def _refuse_unknown(shaped: list[_ShapedCourse], lengths: Lengths) -> None:
    total = sum(int(one.sum()) for one in lengths.row_ns)
    unknown = sum(one.unknown(rows) for one, rows in zip(shaped, lengths.row_ns, strict=True))
    if unknown > _MOST_UNKNOWN * total:
        raise NotTold(f"{100 * unknown / total:.0f} % of the work was launched by what says no shapes")


def _rounded(pair: Iterable[np.ndarray[tuple[int], np.dtype[Any]]]) -> tuple[Int64s, Int64s]:
    rows, host = (np.rint(one).astype(np.int64) for one in pair)
    return rows, host


def _spans(rows: Rows, chosen: Bools) -> Union:
    return union(rows.start_ns[chosen], rows.end_ns[chosen])


def _dimensions(text: bytes) -> list[Dimensions]:
    """The dimensions of all tensors, those of lists of tensors among them."""
    try:
        return list(_tensors(msgspec.json.decode(text))) if text else []
    except (msgspec.DecodeError, RecursionError):
        return []


def _tensors(value: Any) -> Iterable[Dimensions]:
    if isinstance(value, list):
        if value and all(isinstance(one, int) for one in value):
            yield tuple(value)
        else:
            for one in value:
                yield from _tensors(one)
