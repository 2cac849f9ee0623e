"""The operators of the host that launch a rank's device work (docs/measures.md#operators-that-launch).

A launch belongs to each operator of its thread that was running; its own operator is the innermost of them. Guarantees:
pure; exact sums; the own launches of all entries add up to the rows that have a launch call, and merging does not
depend on the order of ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from fleetprof_api.report.rank_tables import OperatorLaunches

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.kernels.kernels import OTHER, short_name
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls
from fleetprof_analyzer.trace.classes import is_host_annotation
from fleetprof_analyzer.trace.naming import where_name
from fleetprof_analyzer.trace.ordering import distinct, grouped, order_by
from fleetprof_analyzer.trace.trace import Category, Int32s, Int64s, Rows, Trace

NONE: Final = "(none)"
_MOST_PER_RANK: Final = 48
_MOST: Final = 50
# Operators nested deeper than any program's are taken as the last of these.
_DEEPEST: Final = 128
_NO_OPERATOR: Final = -1


class OperatorGroup(msgspec.Struct, kw_only=True, frozen=True):
    """All that operators of one name launched on one rank; the fields are those of OperatorLaunches."""

    name: str
    calls: int = 0
    own_launches: int = 0
    own_device_ns: int = 0
    launches: int = 0
    device_ns: int = 0


@dataclass(frozen=True, slots=True)
class _Launches:
    """The launch calls that launched something: place and time, and what each launched. Shapes (n,)."""

    place: Int64s
    at_ns: Int64s
    rows: Int64s
    device_ns: Int64s


def measure_operator_launches(trace: Trace, works: Sequence[DeviceWork], calls: LaunchCalls) -> list[OperatorGroup]:
    """The operators of one rank that launched most time, and the rest."""
    launches = _find_launches(works, calls)
    if launches is None:
        return []
    rows = trace.rows
    plain = (rows.category == Category.OPERATOR) & ~where_name(rows, trace.names, is_host_annotation)
    launching = np.zeros(len(trace.places), np.bool_)
    launching[launches.place] = True
    operators = rows.select(plain & launching[rows.place] & (rows.duration_ns > 0))
    holders = find_holders(operators, launches.place, launches.at_ns)
    own = np.full(len(launches.at_ns), _NO_OPERATOR, np.int64)
    for layer in holders:
        own = np.where(layer >= 0, layer, own)
    sums = _Sums(len(trace.names), operators.name, launches)
    held = np.flatnonzero(own >= 0)
    sums.add_own(operators.name[own[held]].astype(np.int64), held)
    # Each launch once per name, however deep operators of one name are nested.
    pairs = [(np.flatnonzero(layer >= 0), layer[layer >= 0]) for layer in holders]
    launch = np.concatenate([at for at, _ in pairs]) if pairs else held
    holder = np.concatenate([of for _, of in pairs]) if pairs else held
    sums.add_all(operators.name[holder].astype(np.int64), launch, holder)
    groups = [group for name in sums.used() if (group := sums.group(name, trace.names[name]))]
    outside = own < 0
    if outside.any():
        count, device_ns = int(launches.rows[outside].sum()), int(launches.device_ns[outside].sum())
        groups.append(OperatorGroup(name=NONE, own_launches=count, own_device_ns=device_ns, launches=count,
                                    device_ns=device_ns))  # fmt: skip
    return _cut(_join(groups), _MOST_PER_RANK)


def merge_operator_launches(ranks: Sequence[Sequence[OperatorGroup]]) -> list[OperatorLaunches]:
    """The operators of all ranks together, those that launched most time first."""
    listed: dict[str, int] = {}
    for groups in ranks:
        for group in groups:
            listed[group.name] = listed.get(group.name, 0) + 1
    cut = _cut(_join([group for groups in ranks for group in groups]), _MOST)
    return [
        OperatorLaunches(**msgspec.structs.asdict(group), ranks=listed.get(group.name, len(ranks))) for group in cut
    ]


def find_holders(operators: Rows, place: Int64s, at_ns: Int64s) -> list[Int64s]:
    """For launches of n times and places: the operator around each, by depth, -1 where there is none; shapes (n,).

    Operators are taken by start, of equal ones the longer first; each layer holds those that no earlier one of the
    same thread still runs over. So of two that hold a launch the one that began later lies deeper.
    """
    order = grouped(operators.place, order_by(operators.start_ns, -operators.duration_ns))
    of_thread = operators.place[order].astype(np.int64)
    start, end, at = _on_one_line(of_thread, operators.start_ns[order], operators.end_ns[order], place, at_ns)
    layers: list[Int64s] = []
    while len(order) and len(layers) < _DEEPEST:
        last = len(layers) == _DEEPEST - 1
        reached = np.maximum.accumulate(end)
        outer = np.ones(len(start), np.bool_)
        if not last:
            np.greater_equal(start[1:], reached[:-1], out=outer[1:])
        first = np.searchsorted(start.compress(outer), at, side="right") - 1
        before = np.maximum(first, 0)
        holds = (first >= 0) & (at < end.compress(outer).take(before))
        layers.append(np.where(holds, order.compress(outer).take(before), _NO_OPERATOR))
        order, start, end = (values.compress(~outer) for values in (order, start, end))
    return layers


def _on_one_line(
    of_thread: Int64s, start: Int64s, end: Int64s, place: Int64s, at: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """Times of all threads on one axis, each thread's behind the one's before: (start, end, at)."""
    if len(start) == 0:
        return start, end, at
    low = min(int(start.min()), int(at.min()))
    width = max(int(end.max()), int(at.max())) - low + 1
    if width >= (1 << 62) // (int(max(of_thread.max(), place.max())) + 1):
        # Too wide for 64 bits: the times' ranks serve as well.
        _, ranks = np.unique(np.concatenate((start, end, at)), return_inverse=True)
        start, end, at = np.split(ranks.astype(np.int64), [len(start), 2 * len(start)])
        low, width = 0, len(ranks) + 1
    return start - low + of_thread * width, end - low + of_thread * width, at - low + place * width


def _find_launches(works: Sequence[DeviceWork], calls: LaunchCalls) -> _Launches | None:
    rows = np.zeros(len(calls.calls), np.int64)
    device_ns = np.zeros(len(calls.calls), np.int64)
    for work in works:
        call = calls.of(work.rows)
        known = call >= 0
        np.add.at(rows, call[known], 1)
        np.add.at(device_ns, call[known], work.rows.duration_ns[known])
    used = np.flatnonzero(rows)
    if len(used) == 0:
        return None
    made = calls.calls.take(used)
    return _Launches(made.place.astype(np.int64), made.start_ns, rows[used], device_ns[used])


class _Sums:
    """Sums by name, while launches are given to operators."""

    def __init__(self, names: int, operators: Int32s, launches: _Launches) -> None:
        """`operators` has the name of each."""
        self._launches, self._operators = launches, operators
        self._own = np.zeros((2, names), np.int64)
        self._all = np.zeros((2, names), np.int64)
        self._calls = np.zeros(names, np.int64)

    def add_own(self, name: Int64s, launch: Int64s) -> None:
        """Launches, by position, whose innermost operators have these names."""
        np.add.at(self._own[0], name, self._launches.rows[launch])
        np.add.at(self._own[1], name, self._launches.device_ns[launch])

    def add_all(self, name: Int64s, launch: Int64s, holder: Int64s) -> None:
        """Launches with each operator that holds them: its name, and its position."""
        name, launch = np.divmod(distinct(name * len(self._launches.rows) + launch), len(self._launches.rows))
        np.add.at(self._all[0], name, self._launches.rows[launch])
        np.add.at(self._all[1], name, self._launches.device_ns[launch])
        held = np.zeros(len(self._operators), np.bool_)
        held[holder] = True
        self._calls += np.bincount(self._operators.compress(held), minlength=len(self._calls))

    def used(self) -> list[int]:
        """The names that launched anything."""
        used: list[int] = np.flatnonzero(self._calls).tolist()
        return used

    def group(self, number: int, name: str) -> OperatorGroup:
        """The sums of the operators that have this number, under a name that is cut to the report's length."""
        return OperatorGroup(
            name=short_name(name),
            calls=int(self._calls[number]),
            own_launches=int(self._own[0, number]),
            own_device_ns=int(self._own[1, number]),
            launches=int(self._all[0, number]),
            device_ns=int(self._all[1, number]),
        )


def _join(groups: Sequence[OperatorGroup]) -> list[OperatorGroup]:
    """One group per name."""
    by_name: dict[str, list[OperatorGroup]] = {}
    for group in groups:
        by_name.setdefault(group.name, []).append(group)
    return [_add(name, parts) for name, parts in by_name.items()]


def _add(name: str, parts: Sequence[OperatorGroup]) -> OperatorGroup:
    sums = {field: sum(getattr(part, field) for part in parts) for field in _SUMMED}
    return OperatorGroup(name=name, **sums)


_SUMMED: Final = OperatorGroup.__struct_fields__[1:]


def _cut(groups: Sequence[OperatorGroup], most: int) -> list[OperatorGroup]:
    """Keeps the operators that launched most time by themselves; of the rest only what is their own adds up."""
    ordered = sorted(groups, key=lambda g: (g.name == OTHER, -g.own_device_ns, -g.device_ns, g.name))
    if len(ordered) <= most:
        return ordered
    rest = _add(OTHER, ordered[most - 1 :])
    return [
        *ordered[: most - 1],
        msgspec.structs.replace(rest, launches=rest.own_launches, device_ns=rest.own_device_ns),
    ]
