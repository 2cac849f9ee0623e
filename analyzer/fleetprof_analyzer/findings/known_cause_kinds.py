"""The table of known causes: the proof of each, the share from which on it is told, its sentence and its advice.

docs/measures.md#known-causes follows these rows. Guarantees: pure; figures are those of the rank with the most.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fleetprof_api.report.rank_tables import KnownCause, KnownCauseName

from fleetprof_analyzer.job.sentence_guard import SentenceGuard


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCauseKind:
    """A cause that `rank.causes` finds on one rank; docs/measures.md#known-causes follows these rows.

    `evidence` proves it; `program` below bench/real/programs has it planted. Findings of kinds in `explains` are not
    told beside it where it takes half of what they do. `message` says what the evidence shows, of so many iterations;
    `advice` says what to try, and holds each of the `options`.
    """

    name: KnownCauseName
    evidence: str
    least_permille: int
    program: str
    explains: tuple[str, ...]
    message: Callable[[KnownCause, int], str]
    advice: str
    options: tuple[str, ...]

    @property
    def guard(self) -> SentenceGuard:
        """The guard of its finding."""
        return SentenceGuard(
            place=f"finding {self.name}",
            figure="ranks.causes.gain_permille",
            whole="the median rank's iterations",
            least_permille=self.least_permille,
            words=self.evidence,
            part="host",
        )


def _say_collector(known: KnownCause, of_iterations: int) -> str:
    runs = "a run" if known.count == 1 else f"{known.count} runs"
    longest = f"{known.longest_ns / 1e6:,.0f} ms"
    when = f"in {known.iterations} of {of_iterations} iterations" if known.iterations else "before these iterations"
    return f"the garbage collector of Python stops the training thread: {runs} of up to {longest} {when}"


def _say_reductions(known: KnownCause, _of_iterations: int) -> str:
    return (
        f"gradients are reduced over the ranks in each of the {known.count} backward passes of an optimizer's step, "
        "where the last one would do"
    )


def _say_cores(known: KnownCause, _of_iterations: int) -> str:
    cores = f"{known.count / 1000:g} of the machine's {known.of / 1000:g} cores"
    return f"the process and its workers may use {cores}, and the training thread waits for one"


def _say_small(known: KnownCause, _of_iterations: int) -> str:
    if known.message_bytes is None:
        size = "that carry little (their sizes were not recorded)"
    else:
        size = f"of {known.message_bytes:,} B on average"
    return f"the training thread calls {known.count} collectives {size} in each iteration, outside of the backward pass"


def _in_iterations(what: str) -> Callable[[KnownCause, int], str]:
    """`the training thread writes checkpoints, in 3 of 12 iterations`."""
    return lambda known, of_iterations: f"{what}, in {known.iterations} of {of_iterations} iterations"


KINDS: Final = (
    KnownCauseKind(
        name="garbage_collection",
        evidence=(
            "runs of Python's collector of 1 ms and longer (`gc.callbacks` in the samples, or its frames); where four "
            "and more that were heard before the iterations took twice the share of time, that share"
        ),
        least_permille=50,
        program="causes/collector",
        explains=("python", "launch_bound", "optimizer", "data_loading", "long_iterations", "allocation"),
        message=_say_collector,
        advice=(
            "call gc.freeze() once all is loaded, gc.disable(), and gc.collect() every few hundred iterations; keep "
            "fewer small objects (tensors or arrays in place of lists and dicts)"
        ),
        options=("gc.freeze", "gc.disable", "gc.collect"),
    ),
    KnownCauseKind(
        name="repeated_reduction",
        evidence=(
            "several backward passes between two steps of the optimizer that go through the same functions, each with "
            "as many reductions of gradients (called where gradients are accumulated) as the last; the communication "
            "of all but one that nothing hides"
        ),
        least_permille=50,
        program="causes/accumulation_synced",
        explains=("exposed_communication",),
        message=_say_reductions,
        advice=(
            "run all backward passes but the last under no_sync() (DDP; FSDP2: set_requires_gradient_sync(False), "
            "which keeps whole gradients in memory)"
        ),
        options=("no_sync()", "set_requires_gradient_sync(False)"),
    ),
    KnownCauseKind(
        name="small_collectives",
        evidence=(
            "ten and more collectives in an iteration that the training thread itself calls, outside of operators and "
            "of the ranges of DDP, FSDP and the optimizer, of 4 KiB at most; where sizes were not recorded, the "
            "shortest tenth of them is over in 1 ms"
        ),
        least_permille=50,
        program="causes/metrics_reduced",
        explains=("exposed_communication", "synchronization", "python", "launch_bound"),
        message=_say_small,
        advice=(
            "put the values into one tensor and reduce it once, and only where they are read: every n-th iteration "
            "(Lightning: self.log without sync_dist=True in each step)"
        ),
        options=("sync_dist=True",),
    ),
    KnownCauseKind(
        name="unused_parameters",
        evidence=(
            "rows `torch.distributed.ddp.reducer::search_unused_parameters`, which are there with this option alone; "
            "their time, and that of the notes that DDP then writes and reads of each parameter"
        ),
        least_permille=2,
        program="causes/unused_searched",
        explains=("python", "launch_bound"),
        message=_in_iterations("DistributedDataParallel searches the graph for parameters that the step does not use"),
        advice=(
            "leave out find_unused_parameters=True if each step uses all parameters (PyTorch warns where it does), or "
            "set static_graph=True if the same ones are always unused"
        ),
        options=("find_unused_parameters=True", "static_graph=True"),
    ),
    KnownCauseKind(
        name="few_cores",
        evidence=(
            "an affinity or a limit of the control group below the machine's cores, and a training thread that waits "
            "for a core for 5 % of the samples; half a core of the machine is idle, or one core is all that it may "
            "use; what it waits, and no more than its work on all cores of the machine would save"
        ),
        least_permille=50,
        program="causes/one_core",
        explains=("data_loading", "cpu_contention", "python", "launch_bound"),
        message=_say_cores,
        advice=(
            "allow it more cores (taskset, numactl, os.sched_setaffinity, OMP_PROC_BIND=false; Slurm: --cpus-per-task; "
            "in a pod its CPU limit); more workers would share the same ones"
        ),
        options=("taskset", "os.sched_setaffinity", "OMP_PROC_BIND=false", "--cpus-per-task"),
    ),
    KnownCauseKind(
        name="compilation",
        evidence=(
            "code of torch.compile's compiler on the stack of samples, or 5 ms and more between `TorchDynamo Cache "
            "Lookup` and a `Torch-Compiled Region` that is new"
        ),
        least_permille=50,
        program="causes/lengths_compiled",
        explains=("python", "launch_bound", "long_iterations"),
        message=_in_iterations("torch.compile compiles again"),
        advice=(
            "see why with TORCH_LOGS=recompiles; pad inputs to a few lengths, or let them vary (mark_dynamic, "
            "dynamic=True); give numbers that change in each step as tensors"
        ),
        options=("TORCH_LOGS=recompiles", "mark_dynamic", "dynamic=True"),
    ),
    KnownCauseKind(
        name="workers_started",
        evidence=(
            "iterations in which samples show the DataLoader starting or ending worker processes, and those that are "
            "longer by half as much with the same rows: what these take longer than the others"
        ),
        least_permille=30,
        program="causes/short_epochs",
        explains=("data_loading", "python", "long_iterations"),
        message=_in_iterations("the DataLoader starts its worker processes again"),
        advice=(
            "set persistent_workers=True in the DataLoader, and keep one DataLoader over all epochs; each further "
            "worker would make it longer"
        ),
        options=("persistent_workers=True",),
    ),
    KnownCauseKind(
        name="checkpoint",
        evidence=(
            "iterations in which samples show `torch.save`, `torch.distributed.checkpoint` or safetensors at work, and "
            "those that are longer by half as much in the same host gap, with no other function in it: what these take "
            "longer than the others"
        ),
        least_permille=30,
        program="causes/checkpoints",
        explains=("python", "synchronization", "exposed_copies", "long_iterations"),
        message=_in_iterations("the training thread writes a checkpoint"),
        advice=(
            "write it beside the training (torch.distributed.checkpoint.async_save), or less often, or to a faster "
            "disk first"
        ),
        options=("torch.distributed.checkpoint.async_save",),
    ),
    KnownCauseKind(
        name="evaluation",
        evidence=(
            "three and more operators of the model's layers that autograd does not go back through, in at most half of "
            "the iterations; from the first to the last of them, and what these iterations take longer, up to half as "
            "much again"
        ),
        least_permille=100,
        program="causes/evaluations",
        explains=("python", "launch_bound", "synchronization", "long_iterations"),
        message=_in_iterations("the model runs without a backward pass (evaluation, generation)"),
        advice=(
            "evaluate less often (eval_steps, val_check_interval), on fewer batches (limit_val_batches), or in another "
            "job"
        ),
        options=("eval_steps", "val_check_interval", "limit_val_batches"),
    ),
    KnownCauseKind(
        name="logging",
        evidence=(
            "`logging` or a tracker's package (wandb, mlflow, tensorboard, tqdm …) on the stack of samples, below the "
            "user's own code; without a device also what the line that calls it works out itself"
        ),
        least_permille=30,
        program="causes/logs",
        explains=("python", "launch_bound", "synchronization", "long_iterations"),
        message=_in_iterations("the training thread logs"),
        advice=(
            "log every n-th iteration (logging_steps, log_every_n_steps), and write on another thread "
            "(logging.handlers.QueueHandler)"
        ),
        options=("logging_steps", "log_every_n_steps", "logging.handlers.QueueHandler"),
    ),
)
