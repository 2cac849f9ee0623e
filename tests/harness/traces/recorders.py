"""The same job as other devices, drivers and versions of PyTorch would have recorded it.

Each recorder takes the traces of all ranks and gives what it would have written. What the job did stays the same, so a
verdict must stay the same too, or say that it cannot tell. Guarantees: pure but for the random numbers it is given.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from fleetprof_analyzer.trace.trace import COLUMNS, Bools, Category, Collective, Rows, Trace

Traces = list[Trace]
Recorder = Callable[[Traces, np.random.Generator], Traces]

_WAIT: Final = re.compile(r"Synchronize|^cudaMemcpy$")
_ITEM: Final = re.compile(r"^aten::(item|_local_scalar_dense)$")
_MARK: Final = re.compile(r"^(ProfilerStep|Optimizer\.|## )")
_LOST: Final = 0.1
_ANNOTATION_OF_STEP: Final = re.compile(r"^ProfilerStep")


def _with(trace: Trace, **columns: object) -> Trace:
    rows = {name: getattr(trace.rows, name) for name in COLUMNS} | columns
    return replace(trace, rows=Rows(**rows))


def _named(trace: Trace, pattern: re.Pattern[str]) -> Bools:
    """A mask of the rows whose name the pattern finds, shape (n,)."""
    return np.array([pattern.search(name) is not None for name in trace.names], np.bool_)[trace.rows.name]


def _keep(trace: Trace, kept: Bools) -> Trace:
    return replace(trace, rows=Rows(*(getattr(trace.rows, name)[kept] for name in COLUMNS)))


def _each(change: Callable[[Trace], Trace]) -> Recorder:
    return lambda traces, _: [change(trace) for trace in traces]


def _waits(trace: Trace) -> Bools:
    return np.asarray((trace.rows.category == Category.RUNTIME) & _named(trace, _WAIT))


def _rename(trace: Trace, rows: Bools, name: str) -> Trace:
    numbers = np.where(rows, len(trace.names), trace.rows.name).astype(np.int32)
    return _with(replace(trace, names=[*trace.names, name]), name=numbers)


def _waits_as(name: str) -> Recorder:
    """The host's waits have this name."""
    return _each(lambda trace: _rename(trace, _waits(trace), name))


def _waits_in_copies(trace: Trace) -> Trace:
    """The host waits in the call that copies from the device into ordinary memory: its work is a row too."""
    waits, rows = np.flatnonzero(_waits(trace)), trace.rows
    if not len(waits) or not rows.on_device.any():
        return trace
    end_ns = rows.start_ns[waits] + rows.duration_ns[waits]
    work = rows.select(rows.on_device)
    place = int(np.bincount(work.place, work.duration_ns).argmax())
    first = int(rows.correlation.max(initial=0)) + 1
    numbers = first + np.arange(len(waits))
    correlation = rows.correlation.copy()
    correlation[waits] = numbers
    added = {name: np.full(len(waits), -1, getattr(rows, name).dtype) for name in COLUMNS}
    added |= {
        "category": np.full(len(waits), Category.MEMCPY, np.int8),
        "name": np.full(len(waits), len(trace.names) + 1, np.int32),
        "place": np.full(len(waits), place, np.int32),
        "start_ns": np.maximum(end_ns - 3_500, rows.start_ns[waits] + 1), "duration_ns": np.full(len(waits), 1_000),
        "correlation": numbers, "detail": np.full(len(waits), 4),
    }  # fmt: skip
    name = rows.name.copy()
    name[waits] = len(trace.names)
    columns = {column: getattr(rows, column) for column in COLUMNS} | {"name": name, "correlation": correlation}
    joined = {column: np.concatenate((columns[column], added[column])) for column in COLUMNS}
    names = [*trace.names, "cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)"]
    return replace(trace, names=names, rows=Rows(**joined))


def _polled(trace: Trace) -> Trace:
    """The host asks every 20 µs whether its work is done, in place of one call that waits."""
    waits, rows = _waits(trace), trace.rows
    kept = _keep(trace, ~waits)
    moments = [
        (start, place) for start, end, place in zip(
            rows.start_ns[waits].tolist(), rows.end_ns[waits].tolist(), rows.place[waits].tolist(), strict=True
        ) for start in range(end - 2_000, start, -20_000)
    ]  # fmt: skip
    added = {name: np.full(len(moments), -1, getattr(rows, name).dtype) for name in COLUMNS}
    added |= {
        "category": np.full(len(moments), Category.RUNTIME, np.int8),
        "name": np.full(len(moments), len(trace.names), np.int32),
        "place": np.array([place for _, place in moments], np.int32),
        "start_ns": np.array([start for start, _ in moments], np.int64), "duration_ns": np.full(len(moments), 1_500),
    }  # fmt: skip
    joined = {name: np.concatenate((getattr(kept.rows, name), added[name])) for name in COLUMNS}
    return replace(trace, names=[*trace.names, "cudaEventQuery"], rows=Rows(**joined))


def _in_hip(trace: Trace) -> Trace:
    """AMD's vocabulary: its runtime's names, RCCL's kernels, and `.item()` in a copy."""
    trace = _rename(trace, _waits(trace), "hipMemcpyWithStream")
    names = [re.sub(r"^cu(da)?(?=[A-Z])", "hip", name) for name in trace.names]
    names = [
        "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)" if "ncclDevKernel" in name else name
        for name in names
    ]
    return replace(trace, names=names)


def _in_level_zero(trace: Trace) -> Trace:
    """Intel's vocabulary."""
    trace = _rename(trace, _waits(trace), "urQueueFinish")
    names = ["urEnqueueKernelLaunch" if name.startswith("cudaLaunch") else name for name in trace.names]
    return replace(trace, names=names)


def _launches_alone(trace: Trace) -> Trace:
    """Keeps of the host only what launches, and the marks of iterations."""
    rows = trace.rows
    launches = (rows.category == Category.RUNTIME) & np.isin(rows.correlation, rows.correlation[rows.on_device])
    launches &= (rows.correlation >= 0) & ~_waits(trace)
    return _keep(trace, rows.on_device | launches | (rows.collective >= 0) | _named(trace, _MARK))


def _clocks(traces: Traces, random: np.random.Generator) -> Traces:
    """Clocks seconds apart that drift by up to 100 ppm."""
    changed = []
    for trace in traces:
        start, end = trace.rows.start_ns, trace.rows.end_ns
        begin, rate, shift = int(start.min()), 1 + random.uniform(-1e-4, 1e-4), round(random.uniform(-9e9, 9e9))
        times = [begin + shift + np.rint((one - begin) * rate).astype(np.int64) for one in (start, end)]
        changed.append(
            _with(trace, start_ns=times[0], duration_ns=np.maximum(times[1] - times[0], trace.rows.duration_ns > 0))
        )
    return changed


def _in_microseconds(trace: Trace) -> Trace:
    """Old recorders write whole microseconds."""
    start, end = trace.rows.start_ns // 1_000 * 1_000, trace.rows.end_ns // 1_000 * 1_000
    return _with(trace, start_ns=start, duration_ns=np.maximum(end - start, (trace.rows.duration_ns > 0) * 1_000))


def _one_iteration_later(traces: Traces, random: np.random.Generator) -> Traces:
    """Half of the ranks begin to record one iteration later."""
    late = random.permutation(len(traces)) < len(traces) // 2
    changed = []
    for trace, is_late in zip(traces, late.tolist(), strict=True):
        steps = np.sort(trace.rows.start_ns[_named(trace, _ANNOTATION_OF_STEP)])
        if is_late and len(steps) > 2:
            trace = _keep(trace, trace.rows.start_ns >= steps[1])
        changed.append(trace)
    return changed


def _describe(change: Callable[[Collective], Collective]) -> Recorder:
    return _each(lambda trace: replace(trace, collectives=[change(one) for one in trace.collectives]))


def _without_sequence(one: Collective) -> Collective:
    return replace(one, sequence=None)


def _without_group(one: Collective) -> Collective:
    return replace(one, group_ranks="", group_size=None, group_start=None, group_stride=None)


def _of_old_kineto(trace: Trace) -> Trace:
    """NCCL before 2.19 and PyTorch before 2.2: other names of kernels, and nothing said of groups by number."""
    names = [
        re.sub(
            r"^ncclDevKernel_(\w+)\(ncclDevKernelArgsStorage<\d+ul>\)",
            r"ncclKernel_\1(ncclDevComm*, unsigned long)",
            one,
        )
        for one in trace.names
    ]
    return replace(trace, names=names, collectives=[_without_sequence(one) for one in trace.collectives])


def _loses_flows(traces: Traces, random: np.random.Generator) -> Traces:
    """A tenth of the calls have lost their correlation, as where the recorder's buffers were full."""
    changed = []
    for trace in traces:
        lost = (trace.rows.category == Category.RUNTIME) & (random.random(len(trace.rows)) < _LOST)
        changed.append(_with(trace, correlation=np.where(lost, -1, trace.rows.correlation)))
    return changed


def _loses_calls(traces: Traces, random: np.random.Generator) -> Traces:
    """A tenth of the calls have no row, as where the recorder's buffers were full."""
    changed = []
    for trace in traces:
        lost = (trace.rows.category == Category.RUNTIME) & (random.random(len(trace.rows)) < _LOST)
        changed.append(_keep(trace, ~lost))
    return changed


def _from_zero(trace: Trace) -> Trace:
    """Times since the first row, where nothing says when that was."""
    begin = int(trace.rows.start_ns.min())
    return replace(_with(trace, start_ns=trace.rows.start_ns - begin), time_origin="trace")


RECORDERS: Final[dict[str, Recorder]] = {
    "as it is": lambda traces, _: traces,
    "AMD": _each(_in_hip),
    "Intel": _each(_in_level_zero),
    "waits of another name": _waits_as("tpuWaitForWork"),
    "waits in copies": _each(_waits_in_copies),
    "waits that ask": _each(_polled),
    "waits not recorded": _each(lambda trace: _keep(trace, ~_waits(trace))),
    "waits in no row": _each(lambda trace: _keep(trace, ~_waits(trace) & ~_named(trace, _ITEM))),
    "launches alone": _each(_launches_alone),
    "no calls": _each(lambda trace: _keep(trace, trace.rows.category != Category.RUNTIME)),
    "no operators": _each(
        lambda trace: _keep(trace, (trace.rows.category != Category.OPERATOR) | (trace.rows.collective >= 0))
    ),
    "no host": _each(
        lambda trace: _keep(trace, trace.rows.on_device | (trace.rows.collective >= 0) | _named(trace, _MARK))
    ),
    "no marks": _each(lambda trace: _keep(trace, ~_named(trace, _MARK))),
    "no sequence numbers": _describe(_without_sequence),
    "no members of groups": _describe(_without_group),
    "no groups and numbers": _describe(lambda one: _without_group(_without_sequence(one))),
    "old Kineto": _each(_of_old_kineto),
    "a tenth of the flows lost": _loses_flows,
    "a tenth of the calls missing": _loses_calls,
    "from zero on": _each(_from_zero),
    "other clocks": _clocks,
    "whole microseconds": _each(_in_microseconds),
    "shifted by an iteration": _one_iteration_later,
}
"""Name -> what it writes."""

UNMARKED: Final = ("no host", "launches alone")
"""Recorders that say nothing of what the host does but launching: loading and collections are its own time there."""


def without_ranks(traces: Sequence[Trace], missing: Sequence[int]) -> dict[int, Trace]:
    """The traces by rank, without some."""
    return {rank: trace for rank, trace in enumerate(traces) if rank not in missing}
