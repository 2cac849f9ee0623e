"""The report of one capture, or of a folder of traces: `report.json`.

Guarantees: versioned (`schema_version`, readers refuse a newer one through `read_report`); published as JSON Schema
(api/schemas/report.v1.schema.json, made by `json_schema`); every duration is an integer of nanoseconds, every share is
left to whoever shows it. Definitions with formulas: docs/measures.md. Absolute times are Unix nanoseconds: they pass
2^53, so a reader in JavaScript must not parse them as plain numbers where it needs the last digits.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from fleetprof_api.errors import FleetprofError
from fleetprof_api.kernel_class import KernelClass
from fleetprof_api.ledger import LedgerEntry
from fleetprof_api.process.foreign_json import OutOfBounds, pass_door
from fleetprof_api.report.capture_cost import CaptureCost
from fleetprof_api.report.efficiency import Efficiency, RankFlops, Throughput
from fleetprof_api.report.energy import Energy, WorstGpu
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.heterogeneity import Heterogeneity
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.module_tree import ModuleTree
from fleetprof_api.report.prediction import Predictions
from fleetprof_api.report.rank_tables import (
    DeviceWorkStatistics,
    KnownCause,
    MemoryGrowth,
    MemoryPeak,
    OperatorLaunches,
)
from fleetprof_api.report.report_tables import (
    CommunicationStatistics,
    CopyStatistics,
    CoreUse,
    IdlePlace,
    IterationMarks,
    KernelOutlier,
    KernelStatistics,
    LaunchStatistics,
    Stages,
)
from fleetprof_api.report.start_skew import StartSkew
from fleetprof_api.report.stragglers import Stragglers

SCHEMA_VERSION: Final = 1
MOST_REPORT_BYTES: Final = 64 << 20
"""Of `report.json`: one of 10,000 ranks has as much. What reads it takes some 200 MiB of memory at most."""
_SCHEMA_ID: Final = "https://fleetprof.io/schemas/report.v1.schema.json"

Ns = Annotated[int, Meta(description="duration, ns", ge=0)]


class UnreadableReport(FleetprofError, ValueError):
    """The bytes are no report that this version reads; the message says why and what to do."""


class TimeBreakdown(msgspec.Struct, kw_only=True, frozen=True):
    """The time by its use, ns: span = compute + exposed_communication + exposed_memory + idle + unrecorded, exactly.

    `time_basis` of the rank says what "work" is: rows of the device, or operators on the host (docs/measures.md).
    """

    span: Annotated[
        int, Meta(description="first start to last end of work, without the recorder's pauses, ns", ge=0)
    ] = 0
    compute: Annotated[int, Meta(description="union of compute, ns", ge=0)] = 0
    overlapped_communication: Annotated[
        int, Meta(description="communication while compute ran, ns; a part of compute", ge=0)
    ] = 0
    exposed_communication: Annotated[int, Meta(description="communication without compute, ns", ge=0)] = 0
    exposed_memory: Annotated[
        int, Meta(description="memory operations without compute and without communication, ns", ge=0)
    ] = 0
    idle: Annotated[int, Meta(description="none of them, ns", ge=0)] = 0
    unrecorded: Annotated[int, Meta(description="work was launched that is not in the trace, ns", ge=0)] = 0


UnrecordedReason = Literal["paused", "work_missing", "no_device_rows"]


class UnrecordedTime(msgspec.Struct, kw_only=True, frozen=True):
    """Time between the first start and the last end of work that was not recorded, for one reason."""

    reason: Annotated[
        UnrecordedReason,
        Meta(description="paused: of the recorder, no part of the span; the others are `TimeBreakdown.unrecorded`"),
    ]
    time_ns: Annotated[int, Meta(description="sum over devices, ns", ge=0)]


class StreamIdle(msgspec.Struct, kw_only=True, frozen=True):
    """HTA's categories, ns: gaps of each stream by itself, summed; no part of the device's idle time."""

    host_wait: Annotated[int, Meta(description="launched after what ran before had ended", ge=0)] = 0
    kernel_wait: Annotated[int, Meta(description="launched before, and a gap below 30 µs", ge=0)] = 0
    other: Annotated[int, Meta(description="launched before, and a longer gap; or no launch record", ge=0)] = 0


class DeviceTime(msgspec.Struct, kw_only=True, frozen=True):
    """One device of a rank, over all its streams."""

    device: str
    time_ns: TimeBreakdown
    idle_ns: IdleCauses | None = None
    stream_idle_ns: StreamIdle | None = None
    work_count: int = 0


class Iteration(msgspec.Struct, kw_only=True, frozen=True):
    """One training iteration on one rank."""

    index: Annotated[int, Meta(description="iteration number; `Rank.index_from` says how it is known")]
    start_ns: Annotated[int, Meta(description="Unix ns, or ns of the trace's clock where `time_origin` is trace")]
    duration_ns: Ns
    step: Annotated[
        int | None, Meta(description="first optimizer step in it, in KinetoStepTracker's count; null without the agent")
    ] = None
    complete: Annotated[
        bool | None, Meta(description="false: cut by the window; null: the trace cannot tell (first one, no agent)")
    ] = True
    time_ns: Annotated[
        TimeBreakdown | None, Meta(description="time within it, summed over devices; of the host on a CPU-only rank")
    ] = None
    energy_mj: Annotated[
        int | None, Meta(description="energy of the rank's sampled device within it, mJ; null: samples are missing")
    ] = None
    idle_ns: Annotated[
        IdleCauses | None, Meta(description="causes of time_ns.idle, summed over devices; null on a CPU-only rank")
    ] = None


class Series(msgspec.Struct, kw_only=True, frozen=True):
    """One measured quantity over time, thinned for charts: each value is the mean of its time bucket."""

    name: str
    unit: str
    at_unix_ns: list[int]
    values: list[float | None]


class HostSeries(msgspec.Struct, kw_only=True, frozen=True):
    """Samples of one host, shared by its ranks."""

    host_name: str
    ranks: list[int]
    series: list[Series]


class Rank(msgspec.Struct, kw_only=True, frozen=True):
    """One trace. `rank` is null where nothing says which rank it is; equal ranks are kept side by side."""

    rank: int | None
    source: Annotated[str, Meta(description="file name, or object key below the request")]
    kind: Annotated[Literal["gpu", "cpu"], Meta(description="gpu: has device work; cpu: has host work only")]
    time_basis: Annotated[
        Literal["device", "host"],
        Meta(description="device: rows of the GPU; host: operators and collective ranges of a CPU-only rank"),
    ]
    time_ns: TimeBreakdown
    idle_ns: Annotated[IdleCauses | None, Meta(description="sum over devices; null on a CPU-only rank")] = None
    devices: list[DeviceTime] = []
    start_ns: Annotated[int, Meta(description="start of the first recorded iteration, else of the first row")] = 0
    time_origin: Annotated[
        Literal["unix", "trace"], Meta(description="unix: start_ns are Unix ns; trace: the trace has no absolute time")
    ] = "unix"
    iterations: list[Iteration] = []
    iterations_from: Annotated[
        IterationMarks, Meta(description="the marks that bound iterations; named_range: a range that the user named")
    ] = "none"
    index_from: Annotated[
        Literal["agent", "profiler_step", "position", "none"],
        Meta(description="agent: its step times lie in the marks; position: counted from 0 in this trace"),
    ] = "none"
    steps_per_iteration: int = 1
    first_step: Annotated[int | None, Meta(description="first complete optimizer step recorded, as measured")] = None
    stages: Stages | None = None
    launches: LaunchStatistics | None = None
    copies: list[CopyStatistics] = []
    truncated: bool = False
    recorded_permille: Annotated[
        int | None,
        Meta(description="operators in the trace of those that ran; below 500 idle causes and launches mean little"),
    ] = None
    event_count: int = 0
    trace_bytes: Annotated[int, Meta(description="length of the trace, decompressed, bytes")] = 0
    trace_id: str = ""
    host_name: str = ""
    node_name: Annotated[str, Meta(description="where its pod ran, by Kubernetes' word; empty: not known")] = ""
    samples_per_iteration: Annotated[
        int | None, Meta(description="training samples of an iteration over all ranks of the job, by the pod's label")
    ] = None
    torch_version: str = ""
    device_name: str = ""
    device_series: list[Series] = []
    energy_from: Annotated[
        Literal["counter", "power", "none"],
        Meta(description="counter: the device's own count of energy; power: integral of its sampled power"),
    ] = "none"
    iteration_energy_mj: Annotated[
        int | None, Meta(description="mean energy of its iterations, of those where it is known, mJ")
    ] = None
    sample_energy_uj: Annotated[
        int | None,
        Meta(description="its part of the energy of a training sample, µJ; the parts of all ranks are the job's"),
    ] = None
    world_size: Annotated[int | None, Meta(description="ranks of the job, where trace or samples say it")] = None
    memory: Annotated[
        list[MemoryPeak], Meta(description="by device; empty where the trace has no events of PyTorch's allocators")
    ] = []
    memory_growth: Annotated[
        MemoryGrowth | None, Meta(description="null: it does not grow, or samples and trace do not tell")
    ] = None
    device_work: Annotated[
        list[DeviceWorkStatistics], Meta(description="this rank's own: each class of work, then its longest kernels")
    ] = []
    data_loading_ns: Annotated[
        int | None, Meta(description="union of all waits for a batch, on any thread; null: none is marked")
    ] = None
    idle_places: Annotated[
        list[IdlePlace], Meta(description="where the causes of idle time lie that make a finding; the most first")
    ] = []
    cores: Annotated[CoreUse | None, Meta(description="how its training thread came to run; null: not sampled")] = None
    unrecorded: Annotated[list[UnrecordedTime], Meta(description="what was not recorded, by reason")] = []
    causes: Annotated[
        list[KnownCause], Meta(description="causes that trace or samples prove; the most time first")
    ] = []
    flops: Annotated[
        RankFlops | None,
        Meta(description="floating-point operations; null: `collect` had no Shapes, or nothing is whole"),
    ] = None
    lost: Annotated[
        list[str],
        Meta(description="sections that a fault of the analyzer cost, and what needs them; `problems` say why"),
    ] = []


class KindTotal(msgspec.Struct, kw_only=True, frozen=True):
    """Sum over all ranks of one kind; GPU and CPU ranks are never added together."""

    kind: Literal["gpu", "cpu"]
    time_basis: Literal["device", "host"]
    ranks: int
    time_ns: TimeBreakdown
    idle_ns: IdleCauses | None = None
    unrecorded: Annotated[list[UnrecordedTime], Meta(description="what was not recorded, by reason")] = []


class Problem(msgspec.Struct, kw_only=True, frozen=True):
    """Something that was lost, repaired or doubted while reading, counted. Kinds: docs/measures.md."""

    kind: str
    message: str
    count: int = 1
    source: str = ""
    rank: int | None = None


class RequestInfo(msgspec.Struct, kw_only=True, frozen=True):
    """The request, and its end as a whole."""

    uid: str
    name: str = ""
    namespace: str = ""
    target: str = ""
    start_mode: Annotated[str, Meta(description='"step" (same optimizer step everywhere), "time", or ""')] = ""
    asked_first_step: int | None = None
    asked_start_unix_ns: int | None = None
    asked_iterations: int | None = None
    asked_duration_ns: int | None = None
    submitted_unix_ns: int = 0
    armed_unix_ns: int = 0
    completed_unix_ns: int = 0
    outcome: str = ""
    message: str = ""
    requester: Annotated[
        str, Meta(description='who asked, by admission\'s word; "unknown" where nobody vouches, "" in local mode')
    ] = ""
    collect: Annotated[
        list[str] | None, Meta(description="what was recorded beyond the usual: Stacks, Shapes, …; null: not known")
    ] = None


class Report(msgspec.Struct, kw_only=True, frozen=True):
    """`report.json`, whole. `ranks` is sorted by rank, unknown ranks last, then by source."""

    schema_version: int = SCHEMA_VERSION
    made_by: str = ""
    made_unix_ns: int = 0
    title: str = ""
    request: RequestInfo | None = None
    totals: list[KindTotal] = []
    # Before the ranks, which may be megabytes: the hub reads no further.
    start: StartSkew = msgspec.field(default_factory=StartSkew)
    whole_traces: Annotated[
        list[int], Meta(description="ranks whose whole trace to open first; what `traces: Auto` stores")
    ] = []
    ranks: list[Rank] = []
    capture_cost: CaptureCost | None = None
    stragglers: Stragglers | None = None
    ledger: list[LedgerEntry] = []
    hosts: list[HostSeries] = []
    findings: Annotated[list[Finding], Meta(description="what to do, the largest potential saving first")] = []
    kernels: list[KernelStatistics] = []
    kernel_outliers: list[KernelOutlier] = []
    communication: list[CommunicationStatistics] = []
    problems: list[Problem] = []
    heterogeneity: Annotated[list[Heterogeneity], Meta(description="how far ranks differ, by kind")] = []
    energy: Energy | None = None
    worst_gpu: WorstGpu | None = None
    kernel_classes: Annotated[
        list[KernelStatistics], Meta(description="device work of each class over all ranks; their name is (all)")
    ] = []
    launching_operators: Annotated[list[OperatorLaunches], Meta(description="by their own device time")] = []
    asked_kernel_classes: Annotated[list[KernelClass], Meta(description="as asked, before the built-in table")] = []
    efficiency: Annotated[list[Efficiency], Meta(description="by kind of device; empty: `collect` had no Shapes")] = []
    throughput: Annotated[Throughput | None, Meta(description="null: nothing says what an iteration goes through")] = (
        None
    )
    module_tree: Annotated[
        ModuleTree | None, Meta(description="time and memory by module; null: `collect` had no ModuleTree")
    ] = None
    predictions: Annotated[
        Predictions | None, Meta(description="the iteration under changes; null: not of a capture in a store")
    ] = None


def json_schema() -> dict[str, Any]:
    """The published JSON Schema (draft 2020-12) of `report.json`."""
    schema = msgspec.json.schema(Report)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": _SCHEMA_ID, **schema}


def write_report(report: Report) -> bytes:
    """`report.json`: UTF-8, keys in the order of the schema, indented unless that would pass `MOST_REPORT_BYTES`."""
    data = msgspec.json.encode(report)
    indented = msgspec.json.format(data, indent=1) + b"\n"
    return indented if len(indented) <= MOST_REPORT_BYTES else data


def read_report(data: bytes) -> Report:
    """A report from its bytes, its texts printable. Raises UnreadableReport, also for a newer schema version."""
    if len(data) > MOST_REPORT_BYTES:
        raise UnreadableReport(f"it is larger than {MOST_REPORT_BYTES >> 20} MiB")
    try:
        data = pass_door(data)
        version = msgspec.json.decode(data, type=_Version).schema_version
        if version > SCHEMA_VERSION:
            raise UnreadableReport(
                f"report has schema version {version}, this fleetprof reads up to {SCHEMA_VERSION}: upgrade fleetprof"
            )
        return msgspec.json.decode(data, type=Report)
    except (OutOfBounds, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableReport(f"not a fleetprof report: {error}") from None


class _Version(msgspec.Struct):
    schema_version: int
