"""Samples of one rank around a capture: its iterations' ends, its device, its host.

Made by the sidecar (`samples.json.gz`), read by the analyzer. Columns of equal length; a value that the source could
not give is null. Times are Unix nanoseconds of the rank's own host. Sources: PyTorch's KinetoStepTracker for steps,
NVML (nvml.h) for devices, /proc for hosts.
"""

from typing import Final

import msgspec

SCHEMA_VERSION: Final = 1
# Limits of the file: what a sidecar writes at most (50,000 rows) has 9 MiB, a tenth of that as gzip.
MOST_BYTES: Final = 4 << 20  # compressed
MOST_DECODED_BYTES: Final = 16 << 20  # as objects of Python ten times that


class StepColumns(msgspec.Struct, kw_only=True):
    """Ends of optimizer steps as the agent saw them. Shape: equal lengths."""

    step: list[int] = []  # KinetoStepTracker.current_step() after the step
    end_unix_ns: list[int] = []


class DeviceColumns(msgspec.Struct, kw_only=True):
    """NVML samples of the rank's device. Shape: equal lengths, null where not supported."""

    at_unix_ns: list[int] = []
    utilization_permille: list[int | None] = []  # nvmlDeviceGetUtilizationRates().gpu
    memory_utilization_permille: list[int | None] = []
    memory_used_bytes: list[int | None] = []
    power_milliwatts: list[int | None] = []
    energy_millijoules: list[int | None] = []  # since driver load; differences count
    temperature_celsius: list[int | None] = []
    sm_clock_megahertz: list[int | None] = []
    memory_clock_megahertz: list[int | None] = []
    throttle_reasons: list[int | None] = []  # bit mask of nvmlClocksEventReason*
    sm_active_permille: list[int | None] = []  # GPM, Hopper and later
    sm_occupancy_permille: list[int | None] = []
    tensor_active_permille: list[int | None] = []
    dram_active_permille: list[int | None] = []


class HostColumns(msgspec.Struct, kw_only=True):
    """Samples of the host (or pod) that the sidecar runs on. Shape: equal lengths."""

    at_unix_ns: list[int] = []
    cpu_busy_permille: list[int | None] = []  # of all cores
    memory_available_bytes: list[int | None] = []
    network_received_bytes: list[int | None] = []  # counters, all interfaces but loopback; differences count
    network_sent_bytes: list[int | None] = []
    infiniband_received_bytes: list[int | None] = []
    infiniband_sent_bytes: list[int | None] = []


class CodePlace(msgspec.Struct, kw_only=True, frozen=True):
    """A line of Python, as a frame of a stack shows it."""

    file: str  # co_filename, its end if it is long; `cell In[3]` for a notebook's
    function: str  # co_qualname, co_name before Python 3.11
    line: int
    generator: bool = False  # its function is a generator


class CollectionColumns(msgspec.Struct, kw_only=True):
    """Runs of Python's garbage collector of 1 ms and longer, around the window. Shape: equal lengths. Source: gc."""

    start_unix_ns: list[int] = []
    duration_ns: list[int] = []


class HeldColumns(msgspec.Struct, kw_only=True):
    """Memory of the trainer before its recording began. Shape: equal lengths. Source: /proc/self/statm (proc(5))."""

    at_unix_ns: list[int] = []
    own_bytes: list[int] = []  # resident, without files' pages and shared memory


MOST_MODULES: Final = 4096


class ModuleColumns(msgspec.Struct, kw_only=True):
    """The modules that ran in the marked iteration, named as in its marks. Shape: equal lengths. Source: torch.nn.

    Bytes are of this rank, null where PyTorch does not tell them at once.
    """

    name: list[str] = []  # dotted, behind the class of its root
    class_name: list[str] = []
    file: list[str] = []  # of the class's forward; empty: not known
    line: list[int] = []
    call_file: list[str] = []  # of the line of the job that called it first
    call_line: list[int] = []
    calls: list[int] = []
    parameter_bytes: list[int | None] = []  # its own, without those of modules in it; a shared one in the first only
    gradient_bytes: list[int | None] = []  # of these, at the end of the optimizer's step
    optimizer_bytes: list[int | None] = []  # state of the optimizer for these
    output_bytes: list[int | None] = []  # what all its calls returned
    saved_bytes: list[int | None] = []  # its own operators' tensors for backward, in the forward with the most
    rows: list[int | None] = []  # of a root: of the first tensor that it was given, over all forwards
    indices: list[int | None] = []  # of an embedding: elements that it was given, over all forwards


class ThreadColumns(msgspec.Struct, kw_only=True):
    """The training thread around the window, as the agent in its process sampled it. Shape: equal lengths.

    Counters count since the process began: differences count. Sources: sys._current_frames(),
    /proc/self/task/*/schedstat (proc(5)), clock_gettime(2), getrusage(2).
    """

    at_unix_ns: list[int] = []
    stack: list[int | None] = []  # index into RankSamples.stacks; null: no Python frame
    ran_ns: list[int | None] = []  # the thread on a core
    waited_ns: list[int | None] = []  # the thread ready to run, waiting for a core
    process_ran_ns: list[int | None] = []  # all threads of the process on a core
    process_waited_ns: list[int | None] = []  # all threads of the process waiting for a core, summed
    involuntary_switches: list[int | None] = []  # of the process


class RankSamples(msgspec.Struct, kw_only=True):
    """`samples.json.gz` of one rank."""

    schema_version: int = SCHEMA_VERSION
    rank: int
    local_rank: int | None = None
    world_size: int | None = None
    pid: int = 0
    host_name: str = ""
    node_name: str = ""  # where the pod runs, by Kubernetes' word
    samples_per_iteration: int | None = None  # training samples of an iteration over all ranks, by the pod's label
    torch_version: str = ""
    python_version: str = ""
    device_kind: str = ""
    device_name: str = ""
    agent: bool = False
    steps_per_iteration: int = 1
    armed_unix_ns: int = 0  # Kineto took the config
    started_unix_ns: int = 0  # first sign of tracing
    written_unix_ns: int = 0  # the trace was complete on disk
    trace_id: str = ""
    steps: StepColumns = msgspec.field(default_factory=StepColumns)
    device: DeviceColumns = msgspec.field(default_factory=DeviceColumns)
    host: HostColumns = msgspec.field(default_factory=HostColumns)
    thread: ThreadColumns = msgspec.field(default_factory=ThreadColumns)
    places: list[CodePlace] = []
    collections: CollectionColumns = msgspec.field(default_factory=CollectionColumns)
    held: HeldColumns = msgspec.field(default_factory=HeldColumns)
    stacks: list[list[int]] = []  # indices into `places`, the innermost frame first
    modules: ModuleColumns = msgspec.field(default_factory=ModuleColumns)
    host_cores: int | None = None  # of the machine that the sidecar runs on
    usable_cores: int | None = None  # the process' affinity
    cpu_limit_millicores: int | None = None  # its control group's quota; null: none
    torch_threads: int | None = None  # torch.get_num_threads()
