"""Ranks of one job as Kineto writes them, made to collide: equal processes, threads, streams and arrows everywhere.

Time runs in iterations of 10 ms. In each, a rank loads data, launches a kernel, and all leave an all-reduce together.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.traces.planted.traces import Digits, microseconds, to_json

BASE_NS = 1_790_857_026_000_000_000
MS = 1_000_000
ITERATION_NS = 10 * MS
FIRST = 7  # number of the first iteration
PID, THREAD, STREAM, NETWORK = 77, 78, 7, 20


@dataclass(frozen=True)
class PlantedRank:
    """One rank and how its clock is off. `late_ns` is how much later it comes to each all-reduce."""

    number: int
    skew_ns: int = 0
    late_ns: int = 0
    iterations: int = 4
    groups: bool = True  # its collectives say their process group
    talks: bool = True  # it has collectives
    host: str = ""
    noted_late_ns: tuple[int, ...] = (0,)  # by how much it notes the end of each iteration's collective too late


def collective_end_ns(iteration: int) -> int:
    """The time at which all leave the all-reduce of an iteration, in true time from BASE_NS on."""
    return iteration * ITERATION_NS + 8 * MS


def plant_rank(rank: PlantedRank) -> dict[str, Any]:
    """The document; every event with a duration has a `tag` of its own."""
    events: list[dict[str, Any]] = []
    begin = FIRST * ITERATION_NS

    def add(phase: str, category: str, name: str, start: int, pid: Any, tid: Any, **rest: Any) -> None:
        time = Digits(microseconds(start + rank.skew_ns))
        events.append({"ph": phase, "cat": category, "name": name, "pid": pid, "tid": tid, "ts": time, **rest})

    def work(category: str, name: str, start: int, length: int, pid: Any, tid: Any, **args: Any) -> None:
        arguments = {"tag": f"{rank.number}/{len(events)}", **args}
        add("X", category, name, start, pid, tid, dur=Digits(microseconds(length)), args=arguments)

    def launch(kernel: str, call: int, start: int, length: int, stream: int, **args: Any) -> None:
        number = 1 + len(events)
        work("cuda_runtime", "cudaLaunchKernel", call, 20_000, PID, PID, correlation=number)
        add("s", "ac2g", "ac2g", call, PID, PID, id=number)
        work("kernel", kernel, start, length, 0, stream, correlation=number, device=0, stream=stream, **args)
        add("f", "ac2g", "ac2g", start, 0, stream, id=number, bp="e")

    work("python_function", "train.py(1): <module>", begin, rank.iterations * ITERATION_NS, PID, PID)
    for index in range(FIRST, FIRST + rank.iterations):
        now = index * ITERATION_NS
        work("user_annotation", f"ProfilerStep#{index}", now, ITERATION_NS, PID, PID)
        work("user_annotation", "enumerate(DataLoader)#_Iter.__next__", now + 100_000, MS, PID, PID)
        work("cpu_op", "aten::mm", now + 2 * MS, MS, PID, PID, **{"Sequence number": index})
        add("s", "fwdbwd", "fwdbwd", now + 2 * MS, PID, PID, id=index)
        launch("gemm", now + 2 * MS + 500_000, now + 2 * MS + 600_000, MS, STREAM)
        work("cpu_op", "autograd::engine::evaluate_function: MmBackward0", now + 3_500_000, MS, PID, THREAD)
        add("f", "fwdbwd", "fwdbwd", now + 3_500_000, PID, THREAD, id=index, bp="e")
        if rank.talks:
            arguments = {"Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Float"}
            if rank.groups:
                arguments |= {"Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]", "Group size": 4}
                arguments["Seq"] = index
            start, late = now + 5 * MS + rank.late_ns, rank.noted_late_ns[index % len(rank.noted_late_ns)]
            length = collective_end_ns(index) + late - start
            launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start - 50_000, start, length, NETWORK, **arguments)
        add("i", "cpu_instant_event", "[memory]", now + 2_100_000, PID, PID, s="t", args={"Bytes": 512})
        add("C", "counters", "GPU power", now + 4 * MS, 0, 0, args={"W": 300 + index})
    for name, pid, tid, args in (
        ("process_name", PID, 0, {"name": "python3"}),
        ("process_labels", PID, 0, {"labels": "CPU"}),
        ("process_name", 0, 0, {"name": "python3"}),
        ("process_labels", 0, 0, {"labels": "GPU 0"}),
        ("process_name", 1, 0, {"name": "python3"}),
        ("process_labels", 1, 0, {"labels": "GPU 1"}),
        ("thread_name", PID, PID, {"name": "thread 77 (python3)"}),
        ("thread_name", 0, STREAM, {"name": "stream 7 "}),
    ):
        events.append({"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args})
    return {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank.number, "world_size": 4},
        "baseTimeNanoseconds": BASE_NS,
        "host_name": rank.host,
        "traceEvents": events,
    }


def write_ranks(folder: Path, *ranks: PlantedRank, indent: int | None = None) -> dict[int, dict[str, Any]]:
    """Writes rank0.json … and returns the documents by rank."""
    documents = {rank.number: plant_rank(rank) for rank in ranks}
    for number, document in documents.items():
        (folder / f"rank{number}.json").write_text(to_json(document, indent))
    return documents


def lasting(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Its events with a duration, with `start_ns` and `duration_ns` of the file's times."""
    plain = json.loads(to_json(document))
    found = []
    for event, parsed in zip(document["traceEvents"], plain["traceEvents"], strict=True):
        if event["ph"] == "X":
            start, length = (int(event[key].digits.replace(".", "")) for key in ("ts", "dur"))
            found.append({**parsed, "start_ns": start, "duration_ns": length})
    return found
