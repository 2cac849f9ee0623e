"""The host's call of each collective of the device, where launches do not tell it.

A stream runs in the order of launches, and the collectives of one kind and process group share a stream. So the calls
of each kind and group are given to the one stream whose kernels fit them: in number, in kind, and in that none begins
before its call. Guarantees: pure; where two ways to give them out fit and say different things, nothing is told.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.communication.kinds import kind_of
from fleetprof_analyzer.rank.communication.launches import LaunchTimes
from fleetprof_analyzer.rank.communication.operations import KINDS
from fleetprof_analyzer.trace.trace import Category, Collective, Int64s, Rows, Trace

_OTHER: Final = KINDS.index("other")
# What a kernel may run for a call, where that is more than its own kind; one that says none may run for any.
_RUNS: Final = {
    KINDS.index("all_reduce"): ("all_reduce", "barrier"),
    KINDS.index("send_receive"): ("send", "receive", "send_receive", "all_to_all", "gather", "scatter"),
}
_MOST_WAYS: Final = 20_000
_MOST_LEFT: Final = 0.1  # of the kernels or calls, at the window's edges

_Named = tuple[str, str]  # the name and the members of a group


@dataclass(frozen=True, slots=True)
class _Calls:
    """Calls of one kind and group, in order."""

    kind: int
    group: _Named
    at: Int64s


@dataclass(frozen=True, slots=True)
class _Stream:
    """Kernels of one kind on one stream, in order; `group` where they say theirs."""

    kind: int
    group: _Named | None
    at: Int64s

    def may_run(self, calls: _Calls) -> bool:
        if self.group is not None and self.group != calls.group:
            return False
        runs = _RUNS.get(self.kind, (KINDS[self.kind],))
        return self.kind == _OTHER or KINDS[calls.kind] in runs


def described_by_host(trace: Trace, kernels: Rows, launch: LaunchTimes, host: Rows) -> tuple[Rows, LaunchTimes]:
    """Kernels that do not say their collective take the word of the host's `record_param_comms` around their launch.

    Where a launch was not recorded, that of the call to which the kernel belongs is taken, and its time.
    """
    calls = host.select((host.collective >= 0) & (host.category == Category.OPERATOR))
    silent = kernels.collective < 0
    if len(calls) == 0 or (launch.known.all() and not silent.any()):
        return kernels, launch
    calls = calls.take(np.argsort(calls.start_ns, kind="stable"))
    at = np.maximum(np.searchsorted(calls.start_ns, launch.called, side="right") - 1, 0)
    around = launch.known & (calls.start_ns[at] <= launch.called) & (launch.called <= calls.end_ns[at])
    if not launch.known.all():
        of_order = find_calls(kernels, calls, trace.names, trace.collectives)
        if (of_order == at)[around].all():
            launch = _launched_by(calls, of_order, launch)
            at = np.where(launch.known, at, of_order)
            around |= ~launch.known & (at >= 0)
    described = replace(kernels, collective=np.where(silent & around, calls.collective[at], kernels.collective))
    return described, launch


def _launched_by(calls: Rows, call: Int64s, launch: LaunchTimes) -> LaunchTimes:
    """Launches that were not recorded at the starts of their calls; nothing new where many have no call."""
    has_time = launch.known | (call >= 0)
    if not has_time.any() or (~has_time).mean() > _MOST_LEFT:
        return launch
    # The window's first kernels were launched before all that it holds.
    first = int(calls.start_ns[call[call >= 0]].min(initial=np.iinfo(np.int64).max))
    times = np.where(call >= 0, calls.start_ns[call], np.minimum(launch.called, first))
    called, launched = (np.where(launch.known, one, times) for one in (launch.called, launch.launched))
    return LaunchTimes(called, launched, launch.known)


def find_calls(kernels: Rows, calls: Rows, names: Sequence[str], collectives: Sequence[Collective]) -> Int64s:
    """The call of each kernel of a collective, shape (n,): a position in `calls`; -1 where it cannot be told."""
    found = np.full(len(kernels), -1, np.int64)
    groups = _calls_by_group(calls, names, collectives)
    streams = _kernels_by_stream(kernels, names, collectives)
    if not groups or not streams:
        return found
    ways = [pairs for pairs in _fitting(kernels, calls, groups, streams) if pairs is not None]
    if not ways:
        return found
    first, *others = ways
    collective = calls.collective[first[1]]
    if any(not np.array_equal(first[0], way[0]) or (calls.collective[way[1]] != collective).any() for way in others):
        return found
    found[first[0]] = first[1]
    return found


def _calls_by_group(calls: Rows, names: Sequence[str], collectives: Sequence[Collective]) -> list[_Calls]:
    parts: dict[tuple[int, _Named], list[int]] = defaultdict(list)
    order = np.argsort(calls.start_ns, kind="stable")
    numbers, rows = calls.collective[order].tolist(), calls.name[order].tolist()
    for position, number, row in zip(order.tolist(), numbers, rows, strict=True):
        one = collectives[number]
        kind = kind_of(one.name, names[row])
        if kind != _OTHER:  # such as waits, which run nothing
            parts[kind, (one.group_name, one.group_ranks)].append(position)
    return [_Calls(kind, group, np.array(at, np.int64)) for (kind, group), at in parts.items()]


def _kernels_by_stream(kernels: Rows, names: Sequence[str], collectives: Sequence[Collective]) -> list[_Stream]:
    parts: dict[tuple[int, int, _Named | None], list[int]] = defaultdict(list)
    order = np.argsort(kernels.start_ns, kind="stable")
    columns = (kernels.place[order].tolist(), kernels.name[order].tolist(), kernels.collective[order].tolist())
    for position, place, name, number in zip(order.tolist(), *columns, strict=True):
        collective = collectives[number] if number >= 0 else None
        group = None if collective is None else (collective.group_name, collective.group_ranks)
        parts[place, kind_of("", names[name]), group].append(position)
    return [_Stream(kind, group, np.array(at, np.int64)) for (_, kind, group), at in parts.items()]


def _fitting(
    kernels: Rows, calls: Rows, groups: list[_Calls], streams: list[_Stream]
) -> Iterator[tuple[Int64s, Int64s]]:
    """The ways to give out the calls that leave over as little as any does: (kernels, their calls) of each."""
    choices = [[number for number, one in enumerate(streams) if one.may_run(of)] for of in groups]
    ways = _ways(choices)
    if ways is None:
        return
    totals = np.zeros((len(ways), len(streams)), np.int64)
    for number, of in enumerate(groups):
        totals[np.arange(len(ways)), ways[:, number]] += len(of.at)
    left = np.abs(totals - np.array([len(one.at) for one in streams])).sum(axis=1)
    fewest = None
    for number in np.argsort(left, kind="stable").tolist():
        if left[number] > _MOST_LEFT * len(kernels) or (fewest is not None and left[number] > fewest):
            return
        pairs = _pair_up(kernels, calls, groups, streams, ways[number])
        if pairs is not None:
            fewest = left[number]
            yield pairs


def _ways(choices: list[list[int]]) -> Int64s | None:
    """All ways to choose one of each, shape (w, n); None where one has none, or there are too many."""
    count = 1
    for one in choices:
        count *= len(one)
        if not 0 < count <= _MOST_WAYS:
            return None
    return np.array(np.meshgrid(*choices, indexing="ij"), np.int64).reshape(len(choices), -1).T


def _pair_up(
    kernels: Rows, calls: Rows, groups: list[_Calls], streams: list[_Stream], way: Int64s
) -> tuple[Int64s, Int64s] | None:
    """Kernels and their calls in order; None where a kernel would begin before its call.

    The window's first kernels may have been launched before it, so the last belong together; where there are fewer
    kernels than calls the last ones are missing.
    """
    parts = []
    for number, stream in enumerate(streams):
        chosen = [of.at for of, where in zip(groups, way.tolist(), strict=True) if where == number]
        if not chosen:
            continue
        together = np.concatenate(chosen)
        of_stream = together[np.argsort(calls.start_ns[together], kind="stable")][: len(stream.at)]
        run = stream.at[len(stream.at) - len(of_stream) :]
        if (kernels.start_ns[run] < calls.start_ns[of_stream]).any():
            return None
        parts.append((run, of_stream))
    kernel, call = (np.concatenate(one) for one in zip(*parts, strict=True))
    order = np.argsort(kernel)
    return kernel[order], call[order]
