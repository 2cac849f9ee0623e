"""Advice of a report, by what speaks for a finding: what is known is used, and never asked for again."""

import importlib
import inspect
import pkgutil
from typing import get_args

import pytest
from fleetprof_analyzer import findings
from fleetprof_analyzer.findings.allocation import Allocation
from fleetprof_analyzer.findings.cpu_contention import FullHosts, WaitsForCores
from fleetprof_analyzer.findings.data_loading import DataLoading, HostLoading
from fleetprof_analyzer.findings.exposed_communication import ExposedCommunication
from fleetprof_analyzer.findings.exposed_copies import ExposedCopies
from fleetprof_analyzer.findings.finding import FindingFacts
from fleetprof_analyzer.findings.growing_memory import GrowingMemory
from fleetprof_analyzer.findings.held_up import HeldUp
from fleetprof_analyzer.findings.idle_device import IdleDevice
from fleetprof_analyzer.findings.known_causes import ProvenCause
from fleetprof_analyzer.findings.launch_bound import LaunchBound
from fleetprof_analyzer.findings.long_iterations import SomeLongIterations
from fleetprof_analyzer.findings.optimizer import Optimizer
from fleetprof_analyzer.findings.python import HostSilence, PythonBetweenOperators
from fleetprof_analyzer.findings.straggler_advice import straggler_advice
from fleetprof_analyzer.findings.synchronization import Synchronization
from fleetprof_analyzer.findings.tiny_launches import TinyLaunches
from fleetprof_analyzer.findings.waiting import Waiting
from fleetprof_analyzer.job.stragglers.causes.explanation import PARTS, PARTS_ON_HOST
from fleetprof_analyzer.words.text import capital
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.rank_tables import MemoryGrowth
from fleetprof_api.report.report_tables import IdlePlace
from fleetprof_api.report.stragglers import Cause, Evidence, LateHost, Straggler, Stragglers
from msgspec.structs import replace

HERE = PlaceInCode(file="/home/me/train.py", line=41, function="read_batch")
PACKAGE = PlaceInCode(file="/home/me/data/__init__.py", line=7, function="<module>")
CALLS, TIME = "calls per iteration", "ns per iteration"
STACKS = "a capture of its stacks names the line (--ranks 2 --collect Stacks --iterations 3)"
EVEN = "give all ranks even shares, by tokens and not by samples; sort or pack sequences by length"
READ = "keep losses and metrics on the device, and read them (.item(), .cpu(), print) only now and then"
POWER = "check power limit, temperature and cooling of the GPU of rank 2 (nvidia-smi -q -d PERFORMANCE)"
ITEM = Evidence(measure="operator aten::item", value=50, usual=1, unit=CALLS)
MORE = Evidence(measure="operator aten::mm", value=12, usual=4, unit=CALLS)
SLOWER = Evidence(measure="operator aten::mm", value=9e6, usual=4e6, unit=TIME)
LARGER = Evidence(measure="operator aten::mm on [[8, 512]]", value=4096, usual=1024, unit="elements of one input")
SILENT = Evidence(measure="its main thread runs nothing between zero_grad and aten::randn", value=9, usual=1, unit=TIME)
LATE = Evidence(measure="late iterations", value=5, usual=0, unit="of 20")
KERNELS = Evidence(measure="kernels", value=90, usual=60, unit=CALLS)
CLOCK = Evidence(measure="clock of the device", value=900, usual=1400, unit="MHz")
COLLECTED = Evidence(measure="runs of the collector", value=9, usual=0, unit=TIME)
PAUSED = Evidence(measure="pauses in which no thread of the host did anything", value=9, usual=0, unit=TIME)
ONE_CORE = Evidence(measure="cores that it may use", value=1, usual=4, unit="cores")
FOUR_CORES = Evidence(measure="cores that it may use", value=4, usual=4, unit="cores")
GROWTH = MemoryGrowth(
    of="process", bytes_per_iteration=4 << 20, grown_steps=10, steps=11, first_bytes=400 << 20, last_bytes=444 << 20
)
EIGHT_THREADS = Evidence(measure="threads of PyTorch", value=8, usual=8, unit="threads")


def part(name: str, value: float) -> Evidence:
    """A part of a rank's time."""
    return Evidence(measure=name, value=value, usual=1, unit=TIME)


def late(cause: Cause, *evidence: Evidence, place: PlaceInCode | None = None, every: int = 0) -> Straggler:
    """Rank 2, for this cause."""
    return Straggler(rank=2, lateness_ns=1, cause=cause, evidence=[*evidence], place=place, every=every)


@pytest.mark.parametrize(("one", "advice"), [
    (late("data_loading"),
     "give rank 2 more workers and prefetching; compare its storage, its shard and its samples with the others'"),
    (late("data_loading", place=HERE),
     "look at what train.py:41 read_batch does on rank 2: its storage, its shard, samples that take longer"),
    (late("data_loading", place=PACKAGE, every=5),
     "look at what data/__init__.py:7 does on rank 2 in every 5th batch: a new file or shard may begin there"),
    (late("data_loading", every=5),
     "look at what the loader of rank 2 does in every 5th batch: a new file or shard may begin there"),
    (late("host", LATE),
     f"look at what else runs on the cores of rank 2, and at what its Python does more than the others'; {STACKS}"),
    (late("host", LATE, place=HERE),
     "look at what train.py:41 read_batch does on rank 2: make it cheaper, do it less often, or on another thread"),
    (late("host", MORE, SILENT, place=HERE, every=5),
     "look at what train.py:41 read_batch does on rank 2 in every 5th iteration: do it less often, on another thread, "
     "or at the same iterations on all ranks"),
    (late("host", ITEM, place=HERE), f"look at train.py:41 read_batch on rank 2: rank 2 waits in aten::item: {READ}"),
    (late("host", ITEM, SILENT), f"rank 2 waits in aten::item: {READ}"),
    (late("host", MORE, SILENT),
     "find out why rank 2 calls aten::mm 12 times per iteration and the others 4 times"),
    (late("host", SLOWER),
     "aten::mm takes longer on rank 2 for as many calls: look at its inputs, hooks around it, and its cores"),
    (late("host", LATE, SILENT), f"look at your code between zero_grad and aten::randn on rank 2; {STACKS}"),
    (late("host", LATE, every=22),
     "look at what rank 2 does in every 22nd iteration: do it less often, on another thread, or at the same iterations "
     f"on all ranks; {STACKS}"),
    (late("garbage_collection", COLLECTED),
     "call gc.freeze() after the start, gc.disable(), and gc.collect() at the same iterations on all ranks"),
    (late("garbage_collection", PAUSED),
     "run once with gc.disable() on rank 2: if the pauses go, call gc.collect() at the same iterations on all ranks"),
    (late("cpu_contention", LATE),
     "give rank 2 cores of its own: look at what else runs there (top, pidstat), its affinity, and its container's "
     "CPU limit"),
    (late("cpu_contention", ONE_CORE, EIGHT_THREADS),
     "give rank 2 as many cores as the others: 1 is allowed there, 4 elsewhere"),
    (late("cpu_contention", FOUR_CORES, EIGHT_THREADS),
     "use no more threads than cores on rank 2: 8 threads, 4 cores (OMP_NUM_THREADS, torch.set_num_threads)"),
    (late("unequal_work", LARGER), EVEN),
    (late("unequal_work"), f"{EVEN}; a capture with shapes shows which inputs are larger (--collect Shapes)"),
    (late("unequal_work", KERNELS),
     "look for what rank 2 alone computes, such as metrics, or more micro-batches than the others"),
    (late("slow_gpu"),
     "run rank 2 on another GPU: if the slowness stays with the GPU, it is the GPU; look at its clocks, temperature "
     "and ECC counts (--collect DeviceMetrics)"),
    (late("device_wait"),
     "look in the timeline at what the device of rank 2 waits for before its collectives begin (wait_event, a host "
     "function, another device): its host launched them in time"),
    (late("throttling", CLOCK), POWER),
    (late("throttling"), f"{POWER}; a capture with --collect DeviceMetrics shows whether its clock drops"),
    (late("network"),
     "check the links of rank 2 (nvidia-smi nvlink --errorcounters), its adapter's counters and cable, and the path "
     "that NCCL took (NCCL_DEBUG=INFO)"),
    (late("stage_imbalance"),
     "move layers from the stage of rank 2 to others; the embedding and the head count as layers"),
    (late("mixed", part(PARTS["data"], 5), part(PARTS["host"], 3)),
     "begin with data loading: give rank 2 more workers and prefetching; compare its storage, its shard and its "
     "samples with the others'"),
    (late("mixed", part(PARTS["data"], 3), part(PARTS_ON_HOST["host"], 5), place=HERE),
     "begin with time outside of operators and data loading: look at what train.py:41 read_batch does on rank 2: make "
     "it cheaper, do it less often, or on another thread"),
    (late("mixed", part(PARTS["busy"], 5)),
     "begin with work on the device: run rank 2 on another GPU: if the slowness stays with the GPU, it is the GPU; "
     "look at its clocks, temperature and ECC counts (--collect DeviceMetrics)"),
])  # fmt: skip
def test_against_a_late_rank(one: Straggler, advice: str) -> None:
    found = Stragglers(verdict="straggler", ranks=[one], gain=0.2)
    assert straggler_advice(found, one.place) == advice
    assert len(advice) <= 300  # what views show


ON_CORES = "what else runs on its cores (top, pidstat), the clocks of its CPUs, memory that it swaps"
WITH_HOST: dict[Cause, str] = {
    "data_loading": "drain the node gpu-07, or look at it: its path to the storage, its disk and page cache, what else "
    "runs on its cores",
    "host": f"drain the node gpu-07, or look at it: {ON_CORES}",
    "device_wait": "drain the node gpu-07, or look at it: what its devices wait for (wait_event, host functions), as "
    "the timeline shows it",
    "garbage_collection": "call gc.freeze() after the start, gc.disable(), and gc.collect() at the same iterations on "
    "all ranks",
    "cpu_contention": f"drain the node gpu-07, or look at it: {ON_CORES}, the CPU limits of its pods",
    "unequal_work": f"{EVEN}; a capture with shapes shows which inputs are larger (--collect Shapes)",
    "slow_gpu": "drain the node gpu-07, or look at it: power limit, temperature, clocks and ECC counts of its GPUs "
    "(nvidia-smi -q, --collect DeviceMetrics)",
    "throttling": "drain the node gpu-07, or look at it: power, temperature and cooling of its GPUs (nvidia-smi -q -d "
    "PERFORMANCE)",
    "network": "drain the node gpu-07, or look at it: its adapters, cables and switch, and the path that NCCL took "
    "(NCCL_DEBUG=INFO)",
    "mixed": "drain the node gpu-07, or look at it: its GPUs (nvidia-smi -q), its path to the storage, and what else "
    "runs on its cores",
}


@pytest.mark.parametrize("cause", WITH_HOST)
def test_against_a_late_host(cause: Cause) -> None:
    host = LateHost(name="gpu-07", ranks=[2, 3], captured=2, others=3, cause=cause)
    found = Stragglers(verdict="straggler", ranks=[late(cause)], hosts=[host], gain=0.2)
    assert straggler_advice(found, HERE) == WITH_HOST[cause]


def test_every_cause_that_a_host_can_have_has_its_advice() -> None:
    assert {*WITH_HOST} == {*get_args(Cause)} - {"stage_imbalance"}


@pytest.mark.parametrize("cause", get_args(Cause))
def test_no_cause_is_without_advice_whatever_speaks_for_it(cause: Cause) -> None:
    for evidence in ([], [LATE], [part(name, 2) for name in {**PARTS, **PARTS_ON_HOST}.values()]):
        one = late(cause, *evidence)
        assert straggler_advice(Stragglers(verdict="straggler", ranks=[one], gain=0.2), None)


@pytest.mark.parametrize(("found", "place", "advice"), [
    (Stragglers(verdict="slow_link", gain=0.1), None,
     "check the links between these ranks: their nodes' adapters, switch and placement, and NCCL_DEBUG=INFO"),
    (Stragglers(verdict="heavy_stage", ranks=[late("stage_imbalance"), Straggler(rank=3, lateness_ns=1, cause="host")]),
     None, "move layers from the stage of ranks 2 and 3 to others; the embedding and the head count as layers"),
    (Stragglers(verdict="moving_imbalance", cause="unequal_work"), None,
     "make batches of even work: sort or pack sequences by length, and share them out by tokens"),
    (Stragglers(verdict="moving_imbalance", cause="data_loading"), None,
     "give the DataLoaders more workers and prefetching, so that a slow batch is ready in time"),
    (Stragglers(verdict="moving_imbalance", cause="data_loading"), HERE,
     "give the DataLoaders more workers and prefetching, so that a slow batch is ready in time, or make train.py:41 "
     "read_batch cheaper"),
    (Stragglers(verdict="moving_imbalance", cause="garbage_collection"), None,
     "call gc.disable(), and gc.collect() at the same iterations on all ranks"),
    (Stragglers(verdict="moving_imbalance", cause="host"), None,
     "make pauses (checkpoints, logging, evaluation) at the same iterations on all ranks"),
    (Stragglers(verdict="moving_imbalance", cause="host"), HERE,
     "let all ranks pass train.py:41 read_batch at the same iterations, or do it on another thread"),
    (Stragglers(verdict="nobody"), None, ""),
])  # fmt: skip
def test_against_what_is_no_single_ranks_fault(found: Stragglers, place: PlaceInCode | None, advice: str) -> None:
    assert straggler_advice(found, place) == advice


def at(idle: type[IdleDevice], *names: str) -> IdleDevice:
    """Idle time at a line."""
    return idle(IdlePlace(kind="python", time_ns=1, count=1, place=HERE), names=names)


IDLE: list[tuple[IdleDevice, str]] = [
    (DataLoading(),
     "give the DataLoader more workers, prefetching and pinned memory, or prepare samples more cheaply"),
    (at(DataLoading),
     "give the DataLoader more workers, prefetching and pinned memory, or make train.py:41 read_batch cheaper"),
    (Synchronization(names=["aten::item"]), f"find what calls aten::item: {READ}"),
    (at(Synchronization, "aten::item"),
     f"find what calls aten::item (look at train.py:41 read_batch): {READ}"),
    (at(Synchronization, "aten::mm"),
     f"look at train.py:41 read_batch: leave out torch.cuda.synchronize(), copy from pinned memory, and {READ}"),
    (Synchronization(),
     f"leave out torch.cuda.synchronize(), copy from pinned memory, and {READ}"),
    (LaunchBound(),
     "try torch.compile or CUDA graphs, which launch many kernels at once, or a larger batch"),
    (LaunchBound(compiled=True),
     "torch.compile is in use: let it record CUDA graphs (mode='reduce-overhead'), compile what it leaves out "
     "(TORCH_LOGS=graph_breaks), or take a larger batch"),
    (PythonBetweenOperators(),
     "a capture of stacks names the line of code there (--collect Stacks --iterations 3)"),
    (at(PythonBetweenOperators), "look at train.py:41 read_batch: do it less often, or on another thread"),
    (Allocation(),
     "keep shapes the same, leave out torch.cuda.empty_cache() in the loop, and try "
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
    (Optimizer(), "make the optimizer with fused=True, or else with foreach=True"),
    (Optimizer(step="foreach"), "make the optimizer with fused=True"),
    (Optimizer(step="fused"),
     "record the step, which is fused already, in a CUDA graph (capturable=True), or compile it"),
    (Optimizer(zero_grad="drops"),
     "call zero_grad() while the device still has work, before the loss is read (.item())"),
    (Optimizer(zero_grad="zeroes"),
     "let zero_grad() drop the gradients (set_to_none=True, the default), which launches nothing"),
    (Waiting(),
     "look in the timeline at what the host, other ranks and other devices do until the gap ends: the work waits for "
     "one of them (wait_event, a host function, a receive), or for what is not in the trace"),
]  # fmt: skip


BETWEEN = IdlePlace(kind="python", time_ns=1, count=1, after="aten::mm", before="aten::add")


@pytest.mark.parametrize(("facts", "message"), [
    (PythonBetweenOperators(BETWEEN, 500),
     "The GPU waits for Python between operators, most of it between aten::mm and aten::add"),
    (PythonBetweenOperators(BETWEEN, 499),
     "The GPU waits for Python between operators, 49 % of it between aten::mm and aten::add"),
    (PythonBetweenOperators(), "The GPU waits for Python between operators"),
    (Optimizer(), "The GPU waits for the optimizer's host code"),
    (Optimizer(zero_grad="drops"), "The GPU waits for zero_grad() on the host"),
    (HostLoading(1), "The training thread waits for the next batch"),
    (HostLoading(2), "The training threads of all ranks wait for the next batch"),
    (HostSilence(None, 1), "The training thread runs no operator"),
    (HostSilence(("a", "b"), 2), "The training threads of all ranks run no operator, most of it between a and b"),
    (WaitsForCores(1), "The training thread waits for a core, though ready to run"),
    (GrowingMemory(GROWTH), "Memory of the training process grows by 4.00 MiB an iteration before the recording: "
     "from 400 MiB to 444 MiB"),
    (GrowingMemory(replace(GROWTH, of="cuda:1")), "Memory of PyTorch's allocator on cuda:1 grows by 4.00 MiB an "
     "iteration: from 400 MiB to 444 MiB"),
    (FullHosts(990, 1), "All cores of the rank's host are busy (99 %), and iterations differ in length; whether the "
     "training threads wait for a core was not sampled"),
    (ExposedCommunication("not_known"), "No computation hides the communication"),
    (ExposedCommunication("not_known", ranks=2), "No computation hides the communication; the ranks could not be "
     "compared, so whether they send or wait is not known"),
])  # fmt: skip
def test_a_sentence_says_no_more_than_its_facts(facts: FindingFacts, message: str) -> None:
    assert capital(facts.say()[0]) == message


OTHERS: list[tuple[FindingFacts, str]] = [
    (ExposedCommunication("not_known"),
     "capture all ranks: one rank's trace does not tell sending from waiting"),
    (ExposedCommunication("not_known", ranks=4),
     "look in the timeline whether the ranks begin the longest together: if so they send, else they wait for the last"),
    (ExposedCommunication("waiting"),
     "make work and pauses even over the ranks; sending takes the smaller part of that time"),
    (ExposedCommunication("on_host"),
     "leave each rank a core for sending beside those of its threads (OMP_NUM_THREADS), and capture again"),
    (ExposedCommunication("sending"),
     "look in the timeline at what runs beside the longest: let it begin earlier, during the backward pass, or send "
     "less often (gradient accumulation)"),
    (ExposedCommunication("sending", 4096.0), "send fewer and larger messages (DDP: bucket_cap_mb)"),
    (ExposedCommunication("sending", 25.0 * (1 << 20)),
     "send fewer bytes (gradient accumulation, another sharding, a smaller data type), or send them during the "
     "backward pass"),
    (ExposedCopies(pageable=True),
     "copy from pinned host memory with non_blocking=True (pin_memory=True in the DataLoader)"),
    (ExposedCopies(pageable=False),
     "look at the longest copies: leave out what is copied or transposed twice"),
    (HostLoading(4), "give the DataLoader more workers and prefetching, or prepare samples more cheaply"),
    (HostLoading(4, place=HERE),
     "give the DataLoader more workers and prefetching, or make train.py:41 read_batch cheaper"),
    (HostLoading(4, cores_busy=True, place=HERE),
     "make train.py:41 read_batch cheaper: the cores are busy, and more workers would share them"),
    (HostSilence(("zero_grad", "aten::randn"), 4),
     "do the work there less often, or on another thread; a capture of more iterations may name its line"),
    (HostSilence(("zero_grad", "aten::randn"), 4, place=HERE),
     "look at train.py:41 read_batch: do it less often, or on another thread"),
    (WaitsForCores(4),
     "run fewer ranks, threads (OMP_NUM_THREADS) and other programs on these cores, or raise the CPU limit"),
    (FullHosts(990, 4),
     "run fewer ranks, threads (OMP_NUM_THREADS) and other programs on these cores; a capture of more iterations "
     "samples the training threads, unless it is told not to (--thread-samples Never)"),
    (GrowingMemory(GROWTH),
     "keep numbers of past iterations (loss.item(), .detach()) and not tensors, each of which keeps its graph, and "
     "bound caches and lists; tracemalloc shows the lines that allocated what Python holds"),
    (GrowingMemory(replace(GROWTH, of="cuda:1")),
     "keep numbers of past iterations (loss.item(), .detach()) and not tensors, each of which keeps its graph, and "
     "bound caches and lists; torch.cuda.memory._record_memory_history() shows the lines that allocated what is held"),
    (SomeLongIterations([10, 20, 30], 30, 5.0, 10, None, place=HERE),
     "look at train.py:41 read_batch (evaluation, a checkpoint, logging?): do it less often, or on another thread or "
     "in another process"),
    (SomeLongIterations([12], 20, 5.0, 0, "host"),
     "look at what the loop does in iteration 12 only (evaluation, a checkpoint, logging?): do that less often, or on "
     "another thread or in another process"),
    (SomeLongIterations([1, 2, 5, 9, 30], 40, 5.0, 0, "other"),
     "look at what the loop does in iterations 1, 2, 5, 9 and 30 only (evaluation, a checkpoint, logging?): do that "
     "less often, or on another thread or in another process"),
    (TinyLaunches("Net.embed", 1300, 4000),
     "compile or fuse Net.embed (torch.compile), or give it more at once: launches cost the host time"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "advice"), [*IDLE, *OTHERS])
def test_against_what_all_ranks_spend_time_on(facts: FindingFacts, advice: str) -> None:
    assert facts.say()[1] == advice


def test_every_finding_has_its_advice() -> None:
    rows = {type(facts) for facts, _ in [*IDLE, *OTHERS]}
    modules = [importlib.import_module(f"fleetprof_analyzer.findings.{one.name}")
               for one in pkgutil.iter_modules(findings.__path__)]  # fmt: skip
    classes = {one for module in modules for one in vars(module).values() if inspect.isclass(one)}
    facts = {one for one in classes if hasattr(one, "say") and not inspect.isabstract(one) and one is not FindingFacts}
    assert facts - {HeldUp, ProvenCause} == rows
