"""Makes traces and whole captures with planted truth: what was put in is what a measure must find, exactly."""

import gzip
import json
import random
from dataclasses import dataclass, field
from typing import Any

import msgspec
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger, LedgerEntry, RankState, Reason
from fleetprof_api.samples import DeviceColumns, HostColumns, RankSamples, StepColumns
from fleetprof_store.base import Store

BASE_NS = 1_790_857_026_000_000_000
START_NS = BASE_NS + 4_316_232_000_000_123
MS = 1_000_000

COMPUTE = ("void gemm_kernel<float>(int)", "void at::native::softmax_warp_forward", "SyncBatchNorm_dmma")
COMMUNICATION = ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "rcclGenericKernel<1>")


def microseconds(nanoseconds: int) -> str:
    """As Kineto writes it: three decimals, no rounding."""
    sign = "-" if nanoseconds < 0 else ""
    whole, rest = divmod(abs(nanoseconds), 1000)
    return f"{sign}{whole}.{rest:03d}"


@dataclass(frozen=True)
class Digits:
    """A number that is written with exactly these digits; json would round them through a float."""

    digits: str


def to_json(value: Any, indent: int | None = None, depth: int = 0) -> str:
    """JSON as json.dumps writes it, with `Digits`."""
    if isinstance(value, Digits):
        return value.digits
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value)
    items = (
        [f"{json.dumps(key)}: {to_json(item, indent, depth + 1)}" for key, item in value.items()]
        if isinstance(value, dict)
        else [to_json(item, indent, depth + 1) for item in value]
    )
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if indent is None:
        return f"{opening}{', '.join(items)}{closing}"
    line, last = "\n" + " " * indent * (depth + 1), "\n" + " " * indent * depth
    return f"{opening}{line}{f',{line}'.join(items)}{last}{closing}"


def event(name: str, category: str, start_ns: int, duration_ns: int, pid: Any, tid: Any, **args: Any) -> dict[str, Any]:
    times = {"ts": Digits(microseconds(start_ns - BASE_NS)), "dur": Digits(microseconds(duration_ns))}
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, **times, "args": args}


@dataclass
class PlantedTrace:
    """A trace and its truth; `truth` has the names of TimeBreakdown."""

    document: dict[str, Any]
    truth: dict[str, int]
    starts_ns: list[int] = field(default_factory=list)
    durations_ns: list[int] = field(default_factory=list)

    def text(self, indent: int | None = None) -> str:
        """The file's content."""
        return to_json(self.document, indent)

    def gzipped(self, indent: int | None = None) -> bytes:
        return gzip.compress(self.text(indent).encode(), 1)


def plant(
    rank: int,
    *,
    world_size: int = 4,
    iterations: int = 3,
    seed: int = 0,
    start_ns: int = START_NS,
    segments: int = 6,
    slow: float = 1.0,
    wait_ns: int = 0,
    trace_id: str = "",
    distributed: bool = True,
) -> PlantedTrace:
    """A GPU rank: iterations made of compute, compute over communication, communication, copies and gaps.

    Several streams; decoys that are no work (cuda_sync, gpu_user_annotation, runtime rows, python frames).
    """
    make = random.Random(f"{seed}/{rank}")
    common = random.Random(seed)
    events: list[dict[str, Any]] = []
    truth = dict.fromkeys(
        ("span", "compute", "overlapped_communication", "exposed_communication", "exposed_memory", "idle"), 0
    )
    now = start_ns
    planted = PlantedTrace({}, truth)
    work_begin = work_end = None

    def work(name: str, category: str, begin: int, length: int, stream: int) -> None:
        nonlocal work_begin, work_end
        events.append(event(name, category, begin, length, 0, stream, stream=stream, device=0, correlation=len(events)))
        events.append(
            event("cudaLaunchKernel", "cuda_runtime", begin - 9000, 4000, 77, 77, correlation=len(events) - 1)
        )
        work_begin = begin if work_begin is None else min(work_begin, begin)
        work_end = begin + length if work_end is None else max(work_end, begin + length)

    for number in range(iterations):
        begin = now
        for part in range(segments):
            long = common.randint(200_000, 900_000)
            compute = int(long * slow) + make.randint(0, 9_999)
            hidden, exposed = common.randint(50_000, 150_000), common.randint(30_000, 200_000) + wait_ns // segments
            copy, gap = make.randint(1, 20_000), make.randint(1, 60_000)
            if number == 0 and part == 0:
                gap = 0
            now += gap
            truth["idle"] += gap
            # Two halves on two streams that overlap by some: the union counts once.
            half = compute * 3 // 5
            work(make.choice(COMPUTE), "kernel", now, half, 7)
            work(make.choice(COMPUTE), "kernel", now + compute - half, half, 9)
            work(COMMUNICATION[0], "kernel", now + compute - hidden, hidden + exposed, 20)
            truth["compute"] += compute
            truth["overlapped_communication"] += hidden
            truth["exposed_communication"] += exposed
            now += compute + exposed
            work("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", now - exposed // 2, exposed // 2 + copy, 21)
            truth["exposed_memory"] += copy
            now += copy
            events.append(event("Stream Wait Event", "cuda_sync", now, 30_000, 0, 7, stream=7, device=0))
            events.append(event("forward", "gpu_user_annotation", begin, 90_000, 0, 7, stream=7, device=0))
            events.append(event("train.py(3): <module> },{", "python_function", begin, 90_000, 77, 77))
            events.append(event("aten::mm", "cpu_op", begin + part * 1000, 900, 77, 77))
        mark = 40_000 + make.randint(0, 5_000)
        tail = make.randint(mark, 2 * mark)
        events.append(event("Optimizer.step#AdamW.step", "user_annotation", now + tail - mark, mark, 77, 77))
        now += tail
        if number + 1 < iterations:
            truth["idle"] += tail
        planted.starts_ns.append(begin)
        planted.durations_ns.append(now - begin)
    assert work_begin is not None
    assert work_end is not None
    truth["span"] = work_end - work_begin
    make.shuffle(events)
    head: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]}
    if distributed:
        head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size}
    if trace_id:
        head["trace_id"] = trace_id
    markers = [
        {
            "ph": "i",
            "name": "Iteration Start: PyTorch Profiler",
            "ts": Digits(microseconds(start_ns - BASE_NS)),
            "s": "g",
        },
        {"ph": "i", "name": "Record Window End", "ts": Digits(microseconds(now + 1000 - BASE_NS)), "s": "g"},
    ]
    planted.document = {
        **head,
        "traceEvents": [*events, *markers],
        "traceName": f"/tmp/r{rank}.json",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }
    return planted


@dataclass
class PlantedCapture:
    """A capture as the hub leaves it in a store, ready to be analysed."""

    uid: str
    first_step: int
    traces: dict[int, PlantedTrace]


def plant_capture(
    store: Store,
    *,
    ranks: int = 4,
    iterations: int = 5,
    uid: str = "demo",
    first_step: int = 412,
    before: int = 40,
    after: int = 40,
    slowdown: float = 1.06,
    residue: float = 1.0,
    stall_ns: int = 45 * MS,
    failed: tuple[int, ...] = (),
    agent: bool = True,
    host_name: str = "node-a",
    start_late_ns: dict[int, int] | None = None,
) -> PlantedCapture:
    """Writes request, ledger, traces and samples. Step times before and after carry 1 % of noise."""
    noise = random.Random(uid)
    typical = 6 * MS
    entries, traces = [], {}
    earlier = [int(typical / slowdown * noise.gauss(1, 0.01)) for _ in range(before)]
    later = [int(typical / slowdown * residue * noise.gauss(1, 0.01)) for _ in range(after)]
    for rank in range(ranks):
        late = (start_late_ns or {}).get(rank, rank % 16 * 137_000)
        entry = LedgerEntry(
            rank=rank, process_id=f"p{rank}", sidecar_id="s", pod_name=f"trainer-{rank}", node_name=host_name,
            pid=100 + rank, rank_source="RANK_AGENT", asked_unix_ns=START_NS - 1800 * MS,
            armed_unix_ns=START_NS - 400 * MS,
        )  # fmt: skip
        entries.append(entry)
        if rank in failed:
            entry.state, entry.reason, entry.failed_unix_ns = RankState.FAILED, Reason.PROCESS_EXITED, START_NS + 5 * MS
            entry.message = "the process ended 5 ms after the window began; its trace was never written"
            continue
        trace = plant(
            rank, world_size=ranks, iterations=iterations, seed=1, start_ns=START_NS + late,
            slow=1.25 if rank == 2 else 1.0, wait_ns=0 if rank == 2 else 900_000, trace_id=f"{uid}-r{rank}",
        )  # fmt: skip
        traces[rank] = trace
        data = trace.gzipped()
        end = trace.starts_ns[-1] + trace.durations_ns[-1]
        written = end + 220 * MS
        entry.state = RankState.UPLOADED
        entry.started_unix_ns, entry.written_unix_ns, entry.uploaded_unix_ns = (
            START_NS + late,
            written,
            written + 90 * MS,
        )
        entry.trace_bytes, entry.compressed_bytes = len(trace.text()), len(data)
        store.put(keys.trace_key("default", uid, rank), data)
        # The agent's hook runs inside the optimizer's annotation, some µs before its end.
        ends = [start + length - 7_000 for start, length in zip(trace.starts_ns, trace.durations_ns, strict=True)]
        ends.insert(0, trace.starts_ns[0] - 7_000)
        for length in reversed(earlier):
            ends.insert(0, ends[0] - length)
        ends.append(ends[-1] + typical + stall_ns)
        while ends[-1] < written:
            ends.append(ends[-1] + typical)
        for length in later:
            ends.append(ends[-1] + length)
        steps = list(range(first_step - 1 - before, first_step - 1 - before + len(ends)))
        at = list(range(ends[0], ends[-1], 10 * MS))
        samples = RankSamples(
            rank=rank, local_rank=rank, world_size=ranks, pid=100 + rank, host_name=host_name, torch_version="2.15.0",
            device_kind="cuda", device_name="NVIDIA H100 80GB HBM3", agent=agent, armed_unix_ns=ends[before] - 3 * MS,
            started_unix_ns=START_NS + late, written_unix_ns=written, trace_id=f"{uid}-r{rank}",
            steps=StepColumns(step=steps, end_unix_ns=ends) if agent else StepColumns(),
            device=DeviceColumns(
                at_unix_ns=at,
                utilization_permille=[900 - 60 * (rank % 8) + noise.randint(-30, 30) for _ in at],
                power_milliwatts=[520_000 - 9000 * (rank % 8) + noise.randint(-9000, 9000) for _ in at],
                temperature_celsius=[61 + rank % 8 for _ in at],
                sm_clock_megahertz=[1755 - (250 if rank == 2 else 0) for _ in at],
                memory_used_bytes=[61_000_000_000 + rank % 8 * 10**9 for _ in at],
                sm_active_permille=[None for _ in at],
            ),
            host=HostColumns(
                at_unix_ns=at,
                cpu_busy_permille=[310 + noise.randint(-40, 40) for _ in at],
                memory_available_bytes=[800_000_000_000 for _ in at],
                network_received_bytes=[number * 3_000_000 for number in range(len(at))],
                network_sent_bytes=[number * 2_900_000 for number in range(len(at))],
            ),
        )  # fmt: skip
        store.put(keys.samples_key("default", uid, rank), gzip.compress(msgspec.json.encode(samples)))
    request = {
        "apiVersion": "fleetprof.io/v1alpha1", "kind": "ProfileRequest", "metadata": {"name": "llama-look"},
        "spec": {
            "target": {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}},
            "window": {"iterations": iterations},
        },
    }  # fmt: skip
    store.put(keys.request_key("default", uid), json.dumps(request).encode())
    ledger = Ledger(
        uid=uid, name="llama-look", namespace="default", start_mode="step", first_step=first_step,
        submitted_unix_ns=START_NS - 2000 * MS, armed_unix_ns=START_NS - 400 * MS,
        completed_unix_ns=START_NS + 700 * MS, outcome="PartiallyCaptured" if failed else "Complete", entries=entries,
        message=f"{len(failed)} of {ranks} ranks failed" if failed else "",
    )  # fmt: skip
    store.put(keys.ledger_key("default", uid), msgspec.json.encode(ledger))
    return PlantedCapture(uid, first_step, traces)
