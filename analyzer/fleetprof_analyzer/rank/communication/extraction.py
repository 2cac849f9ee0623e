"""Takes a rank's communication out of its trace, as a chain of operations (operations.py).

On a GPU the chain is the stream whose local kernels take longest; collectives are kernels, and `gloo:` ranges of the
host beside them. On a CPU-only rank the chain is the thread that trains, and collectives are the ranges of gloo, MPI
and UCC. Guarantees: pure; None where the trace holds no communication.
"""

import logging
from dataclasses import replace
from typing import Final

import numpy as np
from fleetprof_api.samples import RankSamples

from fleetprof_analyzer.rank.communication.chain.behind import find_behind
from fleetprof_analyzer.rank.communication.chain.chain import Chain, ChainWork, build_chain, find_joins, next_owner
from fleetprof_analyzer.rank.communication.chain.gaps import Fill, add_fills, fill_segments
from fleetprof_analyzer.rank.communication.chain.program import assign_iterations, position_in_program
from fleetprof_analyzer.rank.communication.core_waits import CoreWaits, waits_by_iteration
from fleetprof_analyzer.rank.communication.metadata_columns import read_metadata
from fleetprof_analyzer.rank.communication.operations import (
    KINDS,
    MOST_OPERATIONS_BYTES,
    OperationColumns,
    RankOperations,
    encode,
)
from fleetprof_analyzer.rank.communication.operator_use import measure_operators
from fleetprof_analyzer.rank.communication.sources import OperationSource, read_source
from fleetprof_analyzer.rank.communication.waiting.host_waits import follows_chain, host_leads, passes_chain, read_host
from fleetprof_analyzer.rank.communication.work import choose_timed, clock_by_iteration, sign_kernels, work_by_iteration
from fleetprof_analyzer.rank.host.by_iteration import ThreadTimes, sum_up
from fleetprof_analyzer.rank.host.marks import HostMarks
from fleetprof_analyzer.rank.host.track import Track
from fleetprof_analyzer.rank.iterations import Iterations
from fleetprof_analyzer.trace.problems import ProblemKind, Problems
from fleetprof_analyzer.trace.trace import Bools, Int32s, Int64s, Trace

log = logging.getLogger(__name__)

_WHOLE_PERMILLE: Final = 500  # below, the trace holds a sample of the operators


def summarise_operations(
    trace: Trace,
    found: Iterations,
    samples: RankSamples | None,
    *,
    track: Track | None = None,
    marks: HostMarks | None = None,
    rank_number: int | None,
    problems: Problems,
) -> bytes:
    """The encoded operations of one rank, empty where it communicates with nobody.

    A trace that nobody foresaw costs the straggler analysis of that rank, not its other measures.
    """
    try:
        operations = extract_operations(trace, found, samples, track=track, marks=marks, rank_number=rank_number)
    except MemoryError:
        raise
    except Exception as error:
        log.exception("the operations of %s could not be read", trace.source)
        problems.add(ProblemKind.ANALYZER_FAULT, f"its communication: {type(error).__name__}: {error}")
        return b""
    return b"" if operations is None else encode_within(operations)


def encode_within(operations: RankOperations, most: int = MOST_OPERATIONS_BYTES) -> bytes:
    """The encoded operations; lines of code are left out where the rest alone would fit into the summary."""
    data = encode(operations)
    if len(data) <= most or not operations.thread.rows:
        return data
    bare = encode(replace(operations, thread=ThreadTimes()))
    return bare if len(bare) <= most else data


def extract_operations(
    trace: Trace,
    found: Iterations,
    samples: RankSamples | None,
    *,
    track: Track | None = None,
    marks: HostMarks | None = None,
    rank_number: int | None,
) -> RankOperations | None:
    """The operations of one rank. `found` are its iterations, `track` and `marks` what samples say."""
    source = read_source(trace, marks or HostMarks())
    if source is None:
        return None
    metadata = read_metadata(trace, source)
    streams = source.place if source.kind == "gpu" and source.row_launch_ns is None else None
    operation = metadata.kind.astype(np.int64) + len(KINDS) * metadata.group.astype(np.int64)
    iterations, iteration = assign_iterations(
        found, source.launch_ns, operation, () if found.iterations else source.between, streams
    )
    position = position_in_program(iteration, metadata.kind, len(iterations))
    end = source.start_ns + source.duration_ns
    work = ChainWork(
        source.row_start_ns,
        source.row_end_ns,
        source.launch_row,
        source.start_ns,
        end,
        source.tolerance_ns,
        read_host(source, position),
        _begin_of_thread(source, found),
    )
    chain = build_chain(work, find_joins(work, position))
    previous_end = _previous_end(source.place, source.start_ns, end)
    after_local = follows_chain(source, chain.reached_ns, metadata.kind)
    passes = passes_chain(source, chain.reached_ns, previous_end, position, work.host)
    after_local &= ~passes
    ready = np.where(after_local, np.maximum(chain.reached_ns, previous_end), previous_end)
    launched = np.maximum(ready, source.launch_ns)
    behind = find_behind(source.place, launched, source.start_ns, end, position)
    ready, launched = (np.where(behind >= 0, np.maximum(moment, end[behind]), moment) for moment in (ready, launched))
    late, lag = (
        np.where(moment > np.iinfo(np.int64).min, np.maximum(source.start_ns - moment, 0), 0)
        for moment in (ready, ready if work.host is None else launched)
    )
    at_once = _joins_at_once(chain.mark_operation, chain.mark_joins, len(end))
    segment, fill = _fill(
        source, chain, after_local, np.where(at_once & after_local, late, 0),
        np.where(after_local, 0, np.where(passes, lag, late)),
    )  # fmt: skip
    if work.host is not None:
        fill = _fill_host(source, chain, fill)
    leads = work.host is not None and host_leads(source)
    # Of a host that is followed anyway the chain with its gaps says nothing: left out, for the summary's size.
    begins = np.zeros(len(chain.mark_operation), np.bool_)
    begins[~chain.passed] = np.diff(iteration, prepend=-2)[chain.mark_operation[~chain.passed]] != 0
    bounds = [(i.start_ns, i.start_ns + i.duration_ns) for i in found.iterations] if found.iterations else []
    of_work = _bounds_of_work(source, iteration, bounds, len(iterations))
    columns = OperationColumns(
        iteration=iteration,
        kind=metadata.kind,
        group=metadata.group,
        sequence=metadata.sequence,
        elements=metadata.elements,
        peer=metadata.peer,
        place=source.place,
        behind=behind,
        after_local=after_local,
        launch_ns=source.launch_ns,
        start_ns=source.start_ns,
        duration_ns=source.duration_ns,
        late_ns=np.where(leads & after_local, 0, late),
        lag_ns=lag,
        segment_ns=segment,
        busy_ns=np.where(leads & after_local, 0, fill.busy_ns),
        data_ns=fill.data_ns,
        collection_ns=fill.collection_ns,
        pause_ns=fill.pause_ns,
        quiet_ns=fill.quiet_ns,
        mark_operation=chain.mark_operation,
        mark_joins=chain.mark_joins,
        mark_waits=chain.mark_waits,
        mark_awaits=chain.mark_awaits,
        own_ns=np.zeros_like(chain.own_ns) if leads else chain.own_ns,
        work_ns=chain.host.work_ns,
        host_ns=chain.host.host_ns,
        lead_ns=np.where(begins, chain.host.lead_ns, 0),
        tail_host_ns=chain.host.tail_host_ns,
        tail_work_ns=chain.host.tail_work_ns,
    )
    return RankOperations(
        source=trace.source,
        rank=rank_number,
        world_size=trace.metadata.world_size,
        kind=source.kind,
        iterations=iterations,
        indices_proven=found.index_from in ("agent", "profiler_step"),
        groups=metadata.groups,
        columns=columns,
        work=work_by_iteration(trace, source.local, source.overlapped, source.local_launch_ns, of_work),
        clock_megahertz=clock_by_iteration(samples, bounds) if trace.time_origin == "unix" else [],
        signatures=sign_kernels(
            trace, source.local, choose_timed(source.local, source.overlapped, source.local_launch_ns, of_work)
        ),
        operators=measure_operators(trace, source.thread, bounds),
        cores=waits_by_iteration(samples, bounds) if trace.time_origin == "unix" else CoreWaits(),
        sampled=trace.recorded_permille is not None and trace.recorded_permille < _WHOLE_PERMILLE,
        cut=source.cut,
        leads=leads,
        unsure_ns=0 if source.waits is None else int((source.waits.possible[1] - source.waits.possible[0]).sum()),
        thread=sum_up(track, bounds),
    )


def _bounds_of_work(
    source: OperationSource, iteration: Int32s, bounds: list[tuple[int, int]], count: int
) -> list[tuple[int, int]]:
    """Between which times the work of each of `count` iterations was launched.

    Where no marks bound them, up to the last operation of each; without launches, when it ran.
    """
    if source.kind != "gpu" or (bounds and source.row_launch_ns is not None):
        return bounds
    launched = source.row_launch_ns is not None
    last_ns = source.launch_ns + 1 if launched else source.start_ns + source.duration_ns
    first_ns = source.local_launch_ns if launched else source.row_start_ns
    until, moved = int(first_ns.min(initial=int(last_ns.min()))), []
    for number in range(count):
        begin, until = until, max(int(last_ns[iteration == number].max(initial=until)), until)
        moved.append((begin, until))
    return moved


def _begin_of_thread(source: OperationSource, found: Iterations) -> int | None:
    """The begin of the first iteration of the training thread of a rank without a device; None where not known."""
    if source.kind != "cpu" or not found.iterations:
        return None
    return found.iterations[0].start_ns


def _fill(
    source: OperationSource, chain: Chain, after_local: Bools, lag_ns: Int64s, host_ns: Int64s
) -> tuple[Int64s, Fill]:
    """Each segment's own time and what filled it.

    `lag_ns` is what operations that the chain waits for began late; `host_ns` what the host did before operations
    that do not wait for the chain: it passes beside the device's work, so it is split by itself.
    """
    count = len(lag_ns)
    owner = next_owner(chain.mark_operation, chain.passed | ~after_local[chain.mark_operation], count)
    kept, late = (owner < count) & (chain.own_ns > 0), lag_ns > 0
    start = np.concatenate((chain.own_start_ns[kept], (source.start_ns - lag_ns)[late]))
    end = np.concatenate(((chain.own_start_ns + chain.own_ns)[kept], source.start_ns[late]))
    operation = np.concatenate((owner[kept], np.flatnonzero(late)))
    order = np.argsort(start, kind="stable")
    parts = [fill_segments(start[order], end[order], operation[order], count, source.fillings(busy=True))]
    beside = np.flatnonzero(host_ns > 0)
    if len(beside):
        begin = (source.start_ns - host_ns)[beside]
        parts.append(fill_segments(begin, source.start_ns[beside], beside, count, source.fillings(busy=False)))
    segment = host_ns.copy()
    np.add.at(segment, operation, end - start)
    return segment, add_fills(parts)


def _fill_host(source: OperationSource, chain: Chain, fill: Fill) -> Fill:
    """Fills the host's own time, instead of the device's gaps: those hide a host that leads."""
    count = len(source.start_ns)
    owner = next_owner(chain.mark_operation, chain.passed, count)
    kept = (owner < count) & (chain.host_end_ns > chain.host_start_ns)
    found = fill_segments(
        chain.host_start_ns[kept], chain.host_end_ns[kept], owner[kept], count, source.fillings(busy=False)
    )
    return replace(fill, data_ns=found.data_ns, collection_ns=found.collection_ns)


def _previous_end(place: Int32s, start_ns: Int64s, end_ns: Int64s) -> Int64s:
    """The end of the operation before on the same stream or thread; the smallest integer where there is none.

    Parts of one batch begin together: what is before the first is before them all.
    """
    order = np.lexsort((start_ns, place))
    place, start_ns = place[order], start_ns[order]
    numbers = np.arange(len(order))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (place[1:] != place[:-1]) | (start_ns[1:] != start_ns[:-1])
    before = np.maximum.accumulate(np.where(begins, numbers, 0)) - 1
    same = (before >= 0) & (place[before] == place)
    previous = np.full(len(place), np.iinfo(np.int64).min, np.int64)
    previous[order[same]] = end_ns[order[before[same]]]
    return previous


def _joins_at_once(operation: Int32s, joins: Bools, count: int) -> Bools:
    """Operations whose join is the next mark: the chain stands still while they run."""
    at_once = np.zeros(count, np.bool_)
    next_joins = joins[1:] & (operation[1:] == operation[:-1]) & ~joins[:-1]
    at_once[operation[:-1][next_joins]] = True
    return at_once
