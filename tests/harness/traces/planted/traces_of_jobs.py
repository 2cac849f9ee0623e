"""Turns a simulated job into the traces that a reader would have read, and those into the JSON that Kineto writes.

Both ways must give the same analysis; most cases take the short one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from fleetprof_analyzer.trace.trace import (
    CATEGORIES,
    COLUMNS,
    NO_ROWS,
    Category,
    Collective,
    Rows,
    Shape,
    Trace,
    TraceMetadata,
)
from fleetprof_api.samples import DeviceColumns, RankSamples

from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.stage import FIRST_STEP
from harness.traces.planted.traces import Digits, microseconds, to_json

BASE_NS = 1_790_857_026_000_000_000
_HOST_PLACES = {"host": ("77", "77"), "gloo": ("77", "78")}
_KINDS = {"all_reduce": "allreduce", "all_gather": "_allgather_base", "reduce_scatter": "_reduce_scatter_base"}


@dataclass(frozen=True)
class Clarity:
    """The words of the traces about their collectives."""

    groups: bool = True
    sequence: bool = True
    pair_sequence: bool = False  # sends and receives say a sequence number
    drift_ppm: float = 5.0
    skew_s: float = 5.0


def traces_of(job: PlantedJob, clarity: Clarity, seed: int) -> list[Trace]:
    """One trace per rank, in the order of ranks, of what begins after the iterations ahead."""
    clocks = np.random.default_rng([seed, 4242])
    count = job.shape.ranks
    offset = clocks.uniform(-clarity.skew_s, clarity.skew_s, count) * 1e9
    drift = 1 + clocks.uniform(-clarity.drift_ppm, clarity.drift_ppm, count) * 1e-6
    traces: dict[int, Trace] = {}
    for stage in job.stages:
        recorded = stage.recorded
        start, duration = np.array(recorded.start), np.array(recorded.duration)
        names = list(dict.fromkeys([*recorded.name, *(name for _, _, name, _, _ in recorded.extra)]))
        name_of = {name: number for number, name in enumerate(names)}
        places = list(dict.fromkeys(["host", *recorded.place]))
        place_of = {place: number for number, place in enumerate(places)}
        category = np.array([CATEGORIES[c] for c in recorded.category], np.int8)
        name = np.array([name_of[n] for n in recorded.name], np.int32)
        place = np.array([place_of[p] for p in recorded.place], np.int32)
        correlation = np.array(recorded.correlation)
        sized = np.flatnonzero([grid is not None for grid in recorded.grid])
        sizes = np.array([grid for grid in recorded.grid if grid is not None], int)
        meetings = [one for one in recorded.collective if one is not None]
        met = np.flatnonzero([one is not None for one in recorded.collective])
        for column, rank in enumerate(stage.ranks.tolist()):
            grids: dict[Shape, int] = {}
            shape = np.full(len(correlation), -1)
            shape[sized] = [
                grids.setdefault((b"[%d, 1, 1]" % size, b"[256, 1, 1]"), len(grids))
                for size in sizes[:, column].tolist()
            ]
            collectives: dict[Collective, int] = {}
            collective = np.full(len(correlation), -1)
            described = [_describe(job, stage, column, one, clarity) for one in meetings]
            collective[met] = [collectives.setdefault(one, len(collectives)) for one in described]
            here = np.isfinite(duration[:, column])
            times = np.stack((start[here, column], start[here, column] + duration[here, column]))
            begin, end = np.rint(times * drift[rank] + offset[rank]).astype(np.int64) + BASE_NS
            rows = _rows(
                category=category[here], name=name[here], place=place[here], start_ns=begin,
                duration_ns=np.maximum(end - begin, 1), correlation=correlation[here], shape=shape[here],
                collective=collective[here],
            )  # fmt: skip
            rows = _with_extra(rows, [e for e in recorded.extra if e[0] == column], name_of, drift[rank], offset[rank])
            rows = _since(rows, name_of[f"ProfilerStep#{FIRST_STEP + job.ahead}"])
            traces[rank] = Trace(
                source=f"rank{rank}.json",
                metadata=TraceMetadata(rank=rank, world_size=count, base_ns=BASE_NS),
                rows=rows,
                names=names,
                places=[_HOST_PLACES.get(place, ("0", str(7 + number))) for number, place in enumerate(places)],
                shapes=list(grids),
                collectives=list(collectives),
                event_count=len(rows),
            )
    return [traces[rank] for rank in range(count)]


def _since(rows: Rows, name: int) -> Rows:
    """Rows that begin with the first of this name or later: a profiler begins to record at a step."""
    kept = rows.start_ns >= rows.start_ns[rows.name == name].min()
    return Rows(*(getattr(rows, column)[kept] for column in COLUMNS))


def _with_extra(rows: Rows, extra: list[Any], name_of: dict[str, int], drift: float, offset: float) -> Rows:
    if not extra:
        return rows
    begin = np.array([round(e[3] * drift + offset) for e in extra], np.int64) + BASE_NS
    more = _rows(
        category=[Category.COLLECTION] * len(extra), name=[name_of[e[2]] for e in extra], place=[0] * len(extra),
        start_ns=begin, duration_ns=[e[4] for e in extra],
    )  # fmt: skip
    return Rows(*(np.concatenate((getattr(rows, column), getattr(more, column))) for column in COLUMNS))


def _rows(**values: Any) -> Rows:
    """Columns that are not said are -1."""
    count = len(values["category"])
    types = {column: getattr(NO_ROWS, column).dtype for column in COLUMNS}
    return Rows(*(np.array(values.get(column, np.full(count, -1)), types[column]) for column in COLUMNS))


def _describe(job: PlantedJob, stage: Any, column: int, one: tuple[Any, ...], clarity: Clarity) -> Collective:
    kind, family, elements, sequence, other = one
    shape = job.shape
    if family == "stray":
        ends = {"target": other} if kind == "send" else {"source": other}
        return Collective(
            name=kind, group_name="log", group_ranks=str(list(shape.stray_ranks)), group_size=2, elements_in=elements,
            elements_out=elements, data_type="bfloat16", **ends,
        )  # fmt: skip
    if family == "pp":
        peer = int(shape.stage(other)[column])
        mine = int(stage.ranks[column])
        ends = {"target": peer} if kind == "send" else {"source": peer}
        members = tuple(shape.rank(mine // (shape.pp * shape.tp), p, mine % shape.tp) for p in range(shape.pp))
        return Collective(
            name=kind, group_name="pp", group_ranks=str(list(members)), group_size=len(members), elements_in=elements,
            elements_out=elements, data_type="bfloat16", sequence=sequence if clarity.pair_sequence else None, **ends,
        )  # fmt: skip
    group = next(g for g in stage.groups[family] if column in g)
    members = tuple(int(rank) for rank in stage.ranks[group])
    if kind == "barrier":
        return Collective(elements_in=1)  # all that gloo says
    if not clarity.groups:
        return Collective()
    return Collective(
        name=_KINDS[kind], group_name=f"{family}_{members[0]}", group_ranks=str(list(members)), group_size=len(members),
        elements_in=elements, elements_out=elements, data_type="bfloat16",
        sequence=sequence if clarity.sequence else None,
    )  # fmt: skip


def samples_of(job: PlantedJob, trace: Trace) -> RankSamples | None:
    """The device's clock, sampled every 10 ms; None where the fault plants no clocks."""
    clocks = job.fault.clock_megahertz
    rank = trace.metadata.rank
    if clocks is None or rank is None:
        return None
    marks = [(n, s, d) for n, s, d in zip(trace.rows.name, trace.rows.start_ns, trace.rows.duration_ns, strict=True)]
    steps = sorted((s, d) for n, s, d in marks if trace.names[n].startswith("ProfilerStep"))
    at: list[int] = []
    clock: list[int | None] = []
    for number, (start, length) in enumerate(steps):
        for moment in range(int(start), int(start + length), 10_000_000):
            at.append(moment)
            clock.append(int(clocks[rank, number]))
    return RankSamples(rank=rank, device=DeviceColumns(at_unix_ns=at, sm_clock_megahertz=clock))


def json_of(trace: Trace) -> str:
    """The trace as Kineto writes it."""
    rows = trace.rows
    written = {
        Category.KERNEL: "kernel", Category.RUNTIME: "cuda_runtime", Category.ANNOTATION: "user_annotation",
        Category.COLLECTION: "python_function", Category.OPERATOR: "cpu_op",
    }  # fmt: skip
    events = []
    for number in range(len(rows)):
        device, thread = trace.places[rows.place[number]]
        args: dict[str, Any] = {}
        on_device = rows.category[number] == Category.KERNEL
        if on_device:
            args |= {"device": int(device), "stream": int(thread)}
        if rows.correlation[number] >= 0:
            args["correlation"] = int(rows.correlation[number])
        if rows.shape[number] >= 0:
            grid, block = trace.shapes[rows.shape[number]]
            args |= {"grid": Digits(grid.decode()), "block": Digits(block.decode())}
        if rows.collective[number] >= 0:
            args |= _arguments(trace.collectives[rows.collective[number]])
        start = Digits(microseconds(int(rows.start_ns[number]) - BASE_NS))
        events.append(
            {
                "ph": "X", "cat": written[Category(rows.category[number])], "name": trace.names[rows.name[number]],
                "pid": int(device), "tid": int(thread), "ts": start,
                "dur": Digits(microseconds(int(rows.duration_ns[number]))), "args": args,
            }
        )  # fmt: skip
    head = {"backend": "nccl", "rank": trace.metadata.rank, "world_size": trace.metadata.world_size}
    return to_json({"schemaVersion": 1, "distributedInfo": head, "traceEvents": events, "baseTimeNanoseconds": BASE_NS})


def _arguments(collective: Collective) -> dict[str, Any]:
    named = {
        "Collective name": collective.name, "Process Group Name": collective.group_name,
        "Process Group Ranks": collective.group_ranks, "Group size": collective.group_size,
        "In msg nelems": collective.elements_in, "Out msg nelems": collective.elements_out,
        "dtype": collective.data_type, "Src Rank": collective.source, "Dst Rank": collective.target,
        "Seq": collective.sequence,
    }  # fmt: skip
    return {name: value for name, value in named.items() if value not in (None, "")}
