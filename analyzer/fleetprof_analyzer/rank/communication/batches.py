"""Tells the sends and receives that one kernel of a batch holds (`batch_isend_irecv`, as Megatron-LM's pipelines do).

The kernel names no partner, or that of the first part only; each part has its own row `record_param_comms` on the host,
before the launch. Guarantees: pure; parts keep their order; what no row describes stays as it is.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from fleetprof_analyzer.rank.communication.kinds import kind_of
from fleetprof_analyzer.rank.communication.operations import KINDS
from fleetprof_analyzer.trace.ordering import order_by
from fleetprof_analyzer.trace.trace import Bools, Category, Int32s, Int64s, Rows, Trace

_PARTS: Final = frozenset(KINDS.index(kind) for kind in ("send", "receive"))
_KERNELS: Final = _PARTS | {KINDS.index("send_receive")}
_SILENT: Final = _KERNELS | {KINDS.index("other")}  # RCCL has one kernel for everything


def split_batches(
    trace: Trace, operations: Rows, launch_ns: Int64s, on_host: Bools, host: Rows, *, launches: bool
) -> tuple[Rows, Int64s]:
    """Operations with one for each part of a batch, and which of the given ones each of them is part of.

    `launch_ns` is when the host called to launch each operation, in ascending order; without `launches` it is not known
    and batches are known by their order. Of those `on_host` each is one by itself.
    """
    whole = np.arange(len(operations))
    describes = _describe_parts(trace, host)
    if not describes.any():
        return operations, whole
    parts = host.select(describes)
    parts = parts.take(order_by(parts.start_ns, -parts.duration_ns))
    batches = np.flatnonzero(_hold_parts(trace, operations) & ~on_host)
    if len(batches) == 0:
        return operations, whole
    if launches:
        owner = _by_launch(parts, launch_ns[batches])
    else:
        owner = _by_order(parts, host.select(~describes & (host.category == Category.OPERATOR)), len(batches))
    collective, count = _described(trace, operations, batches, parts, owner)
    if len(collective) == 0:
        return operations, whole
    lengths = np.ones(len(operations), np.int64)
    lengths[batches] = np.maximum(count, 1)
    index = np.repeat(whole, lengths)
    split = operations.take(index)
    is_described = np.zeros(len(operations), np.bool_)
    is_described[batches] = count > 0
    described = split.collective.copy()
    described[is_described[index]] = collective
    return replace(split, collective=described), index


def _describe_parts(trace: Trace, host: Rows) -> Bools:
    """A mask of the host's rows that describe a send or a receive."""
    kinds = np.array([kind_of(one.name, "") in _PARTS for one in trace.collectives], np.bool_)
    described: Bools = (host.collective >= 0) & (host.category == Category.OPERATOR)
    described[described] = kinds[host.collective[described]]
    return described


def _hold_parts(trace: Trace, operations: Rows) -> Bools:
    """A mask of sends and receives, by what they say, else by their kernel's name, if that says anything."""
    kinds: dict[tuple[int, int], bool] = {}
    found = []
    for name, number in zip(operations.name.tolist(), operations.collective.tolist(), strict=True):
        if (name, number) not in kinds:
            own_name = trace.collectives[number].name if number >= 0 else ""
            kinds[name, number] = kind_of(own_name, trace.names[name]) in (_KERNELS if own_name else _SILENT)
        found.append(kinds[name, number])
    return np.array(found, np.bool_)


def _by_launch(parts: Rows, launch_ns: Int64s) -> Int64s:
    """The batch that each part belongs to: the first that was launched since it began; as many as there are if none."""
    return np.searchsorted(launch_ns, parts.start_ns).astype(np.int64)


def _by_order(parts: Rows, others: Rows, batches: int) -> Int64s:
    """The same without launches: parts between which the host did nothing else are one batch, if all have a kernel."""
    around = np.searchsorted(parts.start_ns, others.start_ns)
    # What encloses a part, as the dispatcher's own row does, comes between none; times are rounded to nanoseconds.
    ends = np.append(parts.end_ns, np.iinfo(np.int64).max)
    between = np.unique(around[others.end_ns < ends[around] - 1])
    owner = np.searchsorted(between, np.arange(len(parts)), side="right").astype(np.int64)
    _, owner = np.unique(owner, return_inverse=True)
    return owner.astype(np.int64) if len(owner) and int(owner.max()) + 1 == batches else np.full(len(parts), batches)


def _described(trace: Trace, operations: Rows, batches: Int64s, parts: Rows, owner: Int64s) -> tuple[Int32s, Int64s]:
    """The collectives of the batches' parts, batch by batch, and how many each batch has.

    Of another group than the kernel says, or than the batch's last part, a part is none of it.
    """
    kept = owner < len(batches)
    collective, owner = parts.collective[kept], owner[kept]
    last = np.full(len(batches), -1, np.int64)
    last[owner] = collective
    own = operations.collective[batches]
    own = np.where(own >= 0, own, last)
    names = {name: number for number, name in enumerate(dict.fromkeys(one.group_name for one in trace.collectives))}
    group = np.array([names[one.group_name] for one in trace.collectives], np.int64)
    same = group[collective] == group[own[owner]]
    return collective[same], np.bincount(owner[same], minlength=len(batches)).astype(np.int64)
