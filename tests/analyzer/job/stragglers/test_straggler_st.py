"""A real job with a published answer (ByteDance StragglerAnalysis, job ST): the last pipeline stage holds it up.

Its trace is a table of operations, not Kineto's: the importer here makes rows of it as a reader would have.
"""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fleetprof_analyzer.rank.communication.extraction import extract_operations
from fleetprof_analyzer.rank.communication.operations import RankOperations
from fleetprof_analyzer.rank.iterations import RecordingTerms, find_iterations
from fleetprof_analyzer.trace.problems import Problems
from fleetprof_analyzer.trace.trace import COLUMNS, NO_ROWS, Category, Collective, Rows, Trace, TraceMetadata
from harness.traces.straggler_sections import stragglers_of

STAGES, REPLICAS = 4, 2
LAUNCH_S = 8e-6
HOSTS = ("none", "just before", "far ahead", "waits at the end", "waits unseen at the end")
"""The host's ways of launching device work: not recorded, 20 µs before it starts, one call after the other from
the iteration's begin on, and so with a wait at the iteration's end that is recorded or is not."""
SLOWDOWN = 1.1787  # published: as measured over with all operations of one kind equally long
COLLECTIVES = {
    "params-all-gather": "all_gather", "grads-reduce-scatter": "reduce_scatter",
    "embedding-grads-all-reduce": "all_reduce", "optimizer-clip-main-grad": "all_reduce",
}  # fmt: skip
LOCAL = ("forward-compute", "backward-compute", "optimizer")


def members(operation: str, stage: int, replica: int) -> list[int]:
    """Ranks go by stage, then by replica. Clipping gradients takes their norm over all ranks."""
    if operation == "optimizer-clip-main-grad":
        return list(range(STAGES * REPLICAS))
    if operation == "embedding-grads-all-reduce":
        return [replica, (STAGES - 1) * REPLICAS + replica]
    return [stage * REPLICAS + other for other in range(REPLICAS)]


def describe(row: dict[str, Any]) -> Collective | None:
    operation, stage, replica = row["optype"], row["stage"], row["dp_rank"]
    if operation in COLLECTIVES:
        ranks = members(operation, stage, replica)
        return Collective(
            name=COLLECTIVES[operation], group_name=operation, group_ranks=str(ranks), group_size=len(ranks)
        )
    if operation in LOCAL:
        return None
    way, action = operation.split("-")
    forth = (way == "forward") == (action == "send")
    other = (stage + (1 if forth else -1)) * REPLICAS + replica
    return Collective(
        name=action, group_name="pipeline", group_size=STAGES, **{"target" if action == "send" else "source": other}
    )


def add_launches(table: list[dict[str, int]], names: dict[str, int], host: str, begin_ns: dict[int, int]) -> None:
    """Adds a call for each kernel, in the order in which the kernels start, and marks which call it was."""
    kernels = [row for row in table if row["category"] == Category.KERNEL]
    free_ns = 0
    steps = sorted(begin_ns.values())
    for number, row in enumerate(sorted(kernels, key=lambda one: one["start_ns"])):
        step_ns = max(one for one in steps if one <= row["start_ns"])
        early_ns = step_ns if host != "just before" else row["start_ns"] - round((20e-6 + LAUNCH_S) * 1e9)
        start_ns = min(max(early_ns, free_ns, step_ns), row["start_ns"] - 1000)
        free_ns = start_ns + round(LAUNCH_S * 1e9)
        row["correlation"] = number + 1
        table.append(
            {
                "category": Category.RUNTIME, "name": names.setdefault("cudaLaunchKernel", len(names)), "place": 0,
                "start_ns": start_ns, "duration_ns": free_ns - start_ns, "correlation": number + 1,
            }
        )  # fmt: skip
        following = [one for one in steps if one > step_ns]
        if host == "waits at the end" and row is max(
            (one for one in kernels if step_ns <= one["start_ns"] < (following[0] if following else 1 << 62)),
            key=lambda one: one["start_ns"],
        ):
            end_ns = row["start_ns"] + row["duration_ns"]
            table.append(
                {
                    "category": Category.RUNTIME, "name": names.setdefault("cudaDeviceSynchronize", len(names)),
                    "place": 0, "start_ns": free_ns, "duration_ns": end_ns + 10_000 - free_ns,
                }
            )  # fmt: skip


def trace_of(rank: int, rows: list[dict[str, Any]], lengths: dict[int, float], offset_s: float, host: str) -> Trace:
    names: dict[str, int] = {}
    collectives: dict[Collective, int] = {}
    places: dict[tuple[str, str], int] = {("77", "77"): 0}
    table: list[dict[str, int]] = []
    begin = {step: offset_s + sum(length for other, length in lengths.items() if other < step) for step in lengths}

    def add(
        category: Category, name: str, place: tuple[str, str], start_s: float, length_s: float, collective: int
    ) -> None:
        start = round(start_s * 1e9)
        table.append(
            {
                "category": category, "name": names.setdefault(name, len(names)), "collective": collective,
                "place": places.setdefault(place, len(places)), "start_ns": start,
                "duration_ns": round((start_s + length_s) * 1e9) - start,
            }
        )  # fmt: skip

    for step, length in lengths.items():
        add(Category.ANNOTATION, f"ProfilerStep#{step}", ("77", "77"), begin[step], length, -1)
    for row in sorted(rows, key=lambda one: (one["step"], one["start_ts"])):
        if row["duration"] <= 0 or row["optype"] in ("gc", "layernorm-grads-all-reduce"):
            continue
        arguments = describe(row)
        number = -1 if arguments is None else collectives.setdefault(arguments, len(collectives))
        name = row["optype"] if arguments is None else f"ncclDevKernel_{row['optype']}"
        stream = "7" if arguments is None else row["optype"]
        add(Category.KERNEL, name, ("0", stream), begin[row["step"]] + row["start_ts"], row["duration"], number)
    if host != "none":
        add_launches(table, names, host, {step: round(start * 1e9) for step, start in begin.items()})
    columns = {name: [one.get(name, -1) for one in table] for name in COLUMNS}
    return Trace(
        source=f"rank{rank}", metadata=TraceMetadata(rank=rank, world_size=STAGES * REPLICAS),
        rows=Rows(*(np.array(columns[name], getattr(NO_ROWS, name).dtype) for name in COLUMNS)),
        names=list(names), places=list(places), collectives=list(collectives),
    )  # fmt: skip


def import_job(path: Path, skew_s: float, host: str) -> list[RankOperations]:
    parquet = pytest.importorskip("pyarrow.parquet", reason="reading the job's Parquet file takes pyarrow")
    rows = parquet.read_table(path).to_pylist()
    lengths = {
        step: max(row["start_ts"] + row["duration"] for row in rows if row["step"] == step) + 1e-3
        for step in sorted({row["step"] for row in rows})
    }
    clocks = random.Random(1)
    found = []
    for rank in range(STAGES * REPLICAS):
        offset = 100 + clocks.uniform(-skew_s, skew_s)
        trace = trace_of(rank, [row for row in rows if row["rank"] == rank], lengths, offset, host)
        iterations = find_iterations(trace, None, RecordingTerms(), Problems())
        operations = extract_operations(trace, iterations, None, rank_number=rank)
        assert operations is not None
        found.append(operations)
    return found


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("skew_s", [0.0, 5.0])
def test_the_last_stage_is_too_heavy(shared_traces: Path, skew_s: float, host: str) -> None:
    found = stragglers_of(import_job(shared_traces / "straggler_st" / "trace-ST.parquet", skew_s, host))
    assert found is not None
    assert found.verdict == "heavy_stage"
    assert [(one.rank, one.cause) for one in found.ranks] == [(6, "stage_imbalance"), (7, "stage_imbalance")]
    # What the published slowdown says could be won, less what is no matter of stages.
    assert 0.10 < found.gain < 1 - 1 / SLOWDOWN
    assert found.fidelity == pytest.approx(1, abs=0.03)
    assert found.unmatched == 0
