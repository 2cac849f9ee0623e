"""Collectives of a few bytes that the training thread calls by the dozen: metrics that are reduced one by one.

Guarantees: pure; gradients, and what a layer, autograd, DDP, FSDP or the optimizer calls, are none of them. Where sizes
were not recorded, calls count that are over at once when nobody is late.
"""

import re
from typing import Final

import numpy as np
from fleetprof_api.report.rank_tables import KnownCause

from fleetprof_analyzer.rank.causes.rank_view import RankView, overlap
from fleetprof_analyzer.rank.causes.share import find_share
from fleetprof_analyzer.rank.communication.kinds import kind_of
from fleetprof_analyzer.rank.communication.operations import KINDS
from fleetprof_analyzer.rank.host.hot_path import find_place
from fleetprof_analyzer.rank.host.track import read_track, within
from fleetprof_analyzer.rank.measures.communication_table import message_bytes
from fleetprof_analyzer.rank.measures.stages.main_thread import MainThread
from fleetprof_analyzer.trace import stage_names
from fleetprof_analyzer.trace.intervals import Union, covered, union
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.trace import Bools, Int64s, Trace

_FRAMEWORKS: Final = re.compile(r"^FSDP::|^FullyShardedDataParallel|^DistributedDataParallel|^Optimizer\.|^DeepSpeed")
_FEW_BYTES: Final = 4096
_SOON_NS: Final = 1_000_000
_SOONEST: Final = 0.1  # quantile of the calls' lengths
_LEAST: Final = 10  # in an iteration
_NOT_RECORDED: Final = -1


def find_small_collectives(view: RankView) -> KnownCause | None:
    """`count` is how many there are in an iteration, `message_bytes` their mean size."""
    thread = view.stages.thread
    if thread is None or not view.iterations:
        return None
    calls = covered(thread.top.start_ns, view.whole)
    calls &= where_name(thread.top, view.trace.names, matcher(stage_names.COMMUNICATES))
    calls &= ~covered(thread.top.start_ns, _frameworks(view.trace, thread))
    rows = np.flatnonzero(calls)
    sizes = _sizes(view.trace, thread, rows)
    rows, sizes = rows[sizes <= _FEW_BYTES], sizes[sizes <= _FEW_BYTES]
    if len(rows) == 0 or ((sizes == _NOT_RECORDED).all() and not _end_soon(thread, rows)):
        return None
    starts = np.array([one.start_ns for one in view.iterations], np.int64)
    of_iteration = np.searchsorted(starts, thread.top.start_ns[rows], side="right") - 1
    counts = np.bincount(of_iteration, minlength=len(starts))
    if np.median(counts) < _LEAST:
        return None
    # A call that waits is over when the thread goes on.
    goes_on = np.append(thread.top.start_ns, np.iinfo(np.int64).max)[rows + 1]
    ends = np.minimum(goes_on, np.maximum(thread.reached_ns[rows], thread.top.end_ns[rows]))
    begins = thread.top.start_ns[rows]
    # What the thread does from one to the next, it does for them: to make the value and to read it.
    near = np.append(begins[1:] - ends[:-1] <= np.max(ends - begins), False)
    spans = union(begins, np.where(near, np.append(begins[1:], 0), ends))
    known = sizes[sizes != _NOT_RECORDED]
    track = None if view.samples is None else read_track(view.samples)
    pairs = list(zip(spans[0].tolist(), spans[1].tolist(), strict=True))
    return KnownCause(
        cause="small_collectives",
        time_ns=overlap(spans, view.free),
        gain_permille=find_share(view, view.each_cost_ns(spans), spans),
        count=int(np.median(counts)),
        iterations=int(np.count_nonzero(counts)),
        message_bytes=round(float(known.mean())) if len(known) else None,
        place=None if track is None else find_place(within(track, pairs), 2),
    )


def _frameworks(trace: Trace, thread: MainThread) -> Union:
    """The spans in which DDP, FSDP or the optimizer is at work: what these gather and reduce is theirs."""
    rows = trace.rows.select(trace.rows.place == thread.place)
    rows = rows.select(where_name(rows, trace.names, matcher(_FRAMEWORKS)))
    return union(rows.start_ns, rows.end_ns)


def _sizes(trace: Trace, thread: MainThread, rows: Int64s) -> Int64s:
    """The sizes of the calls, by what a row inside them says of its collective."""
    sizes = np.full(len(rows), _NOT_RECORDED, np.int64)
    described = thread.operators.select(thread.operators.collective >= 0)
    at = np.searchsorted(thread.top.start_ns[rows], described.start_ns, side="right") - 1
    for call, number, start in zip(
        at.tolist(), described.collective.tolist(), described.start_ns.tolist(), strict=True
    ):
        collective = trace.collectives[number]
        size = message_bytes(KINDS[kind_of(collective.name, "")], collective)
        if call >= 0 and size is not None and start < thread.top.end_ns[rows[call]]:
            sizes[call] = max(sizes[call], size)
    return sizes


def _end_soon(thread: MainThread, rows: Int64s) -> Bools:
    """Tells whether the shortest of these calls are over at once."""
    lasted = thread.reached_ns[rows] - thread.top.start_ns[rows]
    return np.asarray(np.quantile(lasted, _SOONEST) <= _SOON_NS)
