"""Known causes as findings: what proves each, from which share on it is told, what is said, and what to try.

Guarantees: pure; what all ranks of a kind lose to one cause, by the median rank; figures are those of the rank with
the most; where it is open whether a rank is late, what is proven of that rank alone is told of it; a cause that the
verdict on stragglers names is not told once more; a finding that a cause explains is left out, because its advice would
be another one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Final

from fleetprof_api.report.rank_tables import KnownCause, KnownCauseName
from fleetprof_api.report.report import Rank
from fleetprof_api.report.stragglers import Cause, Stragglers

from fleetprof_analyzer.findings.finding import FindingRule, MeasuredFinding, RanksOfKind
from fleetprof_analyzer.job.sentence_guard import SentenceGuard

OF_CAUSES: Final = "ranks.causes"
"""The measure of every proven cause, by which a headline knows one."""
_EXPLAINS: Final = 0.5  # of what another finding takes
_OF_STRAGGLERS: Final[Mapping[KnownCauseName, Cause]] = {"garbage_collection": "garbage_collection"}
"""The name of a cause in a verdict on stragglers."""


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
            figure="ranks.causes.time_ns",
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
            "for a core for 5 % of the samples; half a core of the machine is idle, or one core is all that it may use"
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
            "those that are longer by half as much in the same silence, with no other function in it: what these take "
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
            "the iterations; from the first to the last of them"
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
            "user's own code"
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
KIND_OF: Final[Mapping[KnownCauseName, KnownCauseKind]] = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class ProvenCause:
    """A known cause on all ranks; `known` is that of the rank with the most, of so many iterations."""

    known: KnownCause
    of_iterations: int

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        kind = KIND_OF[self.known.cause]
        return kind.message(self.known, self.of_iterations), kind.advice


def leave_out_explained(found: Sequence[MeasuredFinding]) -> list[MeasuredFinding]:
    """The findings without those that a proven cause among them explains."""
    explained = {
        id(one)
        for one in found
        for cause in found
        if isinstance(cause.facts, ProvenCause)
        and one.kind in KIND_OF[cause.facts.known.cause].explains
        and cause.gain_permille >= _EXPLAINS * one.gain_permille
    }
    return [one for one in found if id(one) not in explained]


def _named_causes(found: Stragglers | None) -> set[Cause | None]:
    if found is None or found.verdict in ("nobody", "not_judged", "undecided"):
        return set()
    return {found.cause, *(one.cause for one in found.ranks)}


def _known(kind: KnownCauseKind, rank: Rank) -> KnownCause | None:
    return next((one for one in rank.causes if one.cause == kind.name), None)


def _share(kind: KnownCauseKind, rank: Rank) -> int:
    """Permille that the cause takes of the rank's iterations."""
    known, span = _known(kind, rank), sum(one.duration_ns for one in rank.iterations)
    return 0 if known is None or span <= 0 else 1000 * known.time_ns // span


def _is_named(kind: KnownCauseKind, view: RanksOfKind) -> bool:
    return _OF_STRAGGLERS.get(kind.name) in _named_causes(view.report.stragglers)


def _find_on_all(kind: KnownCauseKind, view: RanksOfKind) -> MeasuredFinding | None:
    if _is_named(kind, view):
        return None
    ranks = view.ranks
    here = [(one, rank) for rank in ranks if (one := _known(kind, rank)) is not None]
    shares = [_share(kind, rank) for rank in ranks if any(one.duration_ns > 0 for one in rank.iterations)]
    permille = median_low(shares) if shares else 0
    if not here or not kind.guard.allows(permille, 1000):
        return None
    most, rank = max(here, key=lambda one: (one[0].place is not None, one[0].time_ns))
    return MeasuredFinding(
        kind=kind.name,
        facts=ProvenCause(most, len(rank.iterations)),
        guard=kind.guard,
        gain_permille=permille,
        measure=OF_CAUSES,
        value_ns=sum(one.time_ns for one, _ in here),
        place=most.place,
    )


def _find_on_candidate(kind: KnownCauseKind, view: RanksOfKind) -> MeasuredFinding | None:
    """What takes more of the rank that may be late than of the others: that it is late is open, its cause is proven."""
    stragglers, ranks = view.report.stragglers, view.ranks
    candidate = None if stragglers is None or stragglers.verdict != "undecided" else stragglers.candidate
    if candidate is None or _is_named(kind, view):
        return None
    rank = next((rank for rank in ranks if rank.rank == candidate.rank), None)
    others = [_share(kind, rank) for rank in ranks if rank.rank != candidate.rank]
    if rank is None or not others or (known := _known(kind, rank)) is None:
        return None
    permille = min(_share(kind, rank) - median_low(others), round(1000 * candidate.gain))
    if not kind.guard.allows(permille, 1000):
        return None
    return MeasuredFinding(
        kind=kind.name,
        facts=ProvenCause(known, len(rank.iterations)),
        guard=kind.guard,
        gain_permille=permille,
        measure=OF_CAUSES,
        value_ns=known.time_ns,
        ranks=[candidate.rank],
        place=known.place,
    )


def _make_rules(kind: KnownCauseKind) -> tuple[FindingRule, FindingRule]:
    """Without a guard in the list of all: docs have a table of these alone."""
    return (
        FindingRule(kind.name, (), lambda view: _find_on_all(kind, view)),
        FindingRule(kind.name, (), lambda view: _find_on_candidate(kind, view)),
    )


RULES: Final = tuple(rule for kind in KINDS for rule in _make_rules(kind))
