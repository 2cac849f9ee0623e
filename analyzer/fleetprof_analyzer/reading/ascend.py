"""Reads rows of Ascend's profiler (torch_npu's `trace_view.json`), which carry no category, by their arguments.

A task of the device says its type and stream; a call into CANN, and what it started, share a connection. Collectives
are rows of a process of their own. Guarantees: a row of any other recorder is left as it is; nothing is raised.
Source: torch_npu/profiler/analysis/prof_view, msprof's assemblers of timelines.
"""

import re
from dataclasses import replace
from typing import Final

import numpy as np

from fleetprof_analyzer.reading.event import LEFT_OUT, Event
from fleetprof_analyzer.trace.ordering import distinct
from fleetprof_analyzer.trace.trace import Category, Place, Rows

_DEVICE: Final = 0  # a trace is of one device, which no row names
# What a task that has no work of its own does: it waits, signals, or holds a place.
_NO_WORK: Final = re.compile(r"WAIT|RECORD|NOTIFY|PLACE_?HOLDER|PROFIL|VALUE|MAINTAIN", re.IGNORECASE)
_COPIES: Final = re.compile(r"DMA|MEMCPY", re.IGNORECASE)
_COLLECTIVE: Final = re.compile(r"^hcom_")
_NUMBERS: Final = re.compile(r"_+\d+(?:_\d+)*$")  # of the group and the call: hcom_allReduce__573_0_1
_CALL: Final = re.compile(r"^(?:AscendCL|ACL|Node|Runtime|Model|Hccl|HCCL)@")
# One of these stands in each row of this recorder that is read, and in none of PyTorch's own.
_TELL: Final = (b'"connection_id"', b'"Physic Stream Id"')


def tells_of_ascend(text: bytes, length: int) -> bool:
    """Tells whether the events of text[:length] are this recorder's; searches are as fast as memory."""
    return any(text.find(mark, 0, length) >= 0 for mark in _TELL)


def read_kind(event: Event) -> int:
    """The category of a row without one, LEFT_OUT where it is nothing; completes what its arguments say otherwise."""
    args = event.args
    if args is None:
        return LEFT_OUT
    if args.task_type is not None and args.physical_stream is not None:
        kind = str(args.task_type)
        if _NO_WORK.search(kind):
            return LEFT_OUT
        args.device, args.stream, args.correlation = _DEVICE, args.physical_stream, args.connection
        return Category.MEMCPY if _COPIES.search(kind) else Category.KERNEL
    if _COLLECTIVE.search(event.name):
        args.device, args.stream, args.correlation = _DEVICE, f"hccl {event.tid}", args.connection
        event.name = _NUMBERS.sub("", event.name)
        return Category.KERNEL
    if _CALL.search(event.name):
        args.correlation = args.connection
        return Category.RUNTIME
    return LEFT_OUT


def join_threads(rows: Rows, places: list[Place]) -> Rows:
    """Calls into CANN stand in a process of their own: under the thread of that number, where one runs operators."""
    calls = rows.category == Category.RUNTIME
    own = distinct(rows.place[rows.category == Category.OPERATOR].astype(np.int64)).tolist()
    threads = {places[at][1]: at for at in own}
    joined = np.array([threads.get(thread, at) for at, (_, thread) in enumerate(places)], np.int32)
    return replace(rows, place=np.where(calls, joined[rows.place], rows.place)) if calls.any() else rows
