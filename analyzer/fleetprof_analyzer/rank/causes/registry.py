"""The table of known causes: what proves each, and from which share of the iterations on it is a finding.

docs/measures.md#known-causes and the tests follow this table, and `words.known_causes` has a row for each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fleetprof_api.report.rank_tables import KnownCause, KnownCauseName

from fleetprof_analyzer.rank.causes.collector import find_collector
from fleetprof_analyzer.rank.causes.compilation import find_compilations
from fleetprof_analyzer.rank.causes.evaluation import find_evaluation
from fleetprof_analyzer.rank.causes.few_cores import find_few_cores
from fleetprof_analyzer.rank.causes.gradient_reductions import find_repeated_reductions
from fleetprof_analyzer.rank.causes.known_code import LOGS, SAVES, WORKERS_START
from fleetprof_analyzer.rank.causes.pauses import in_pauses
from fleetprof_analyzer.rank.causes.rank_view import RankView
from fleetprof_analyzer.rank.causes.small_collectives import find_small_collectives
from fleetprof_analyzer.rank.causes.stacks import in_stacks
from fleetprof_analyzer.rank.causes.unused_parameters import find_unused_parameters


@dataclass(frozen=True, slots=True)
class CauseRule:
    """A cause, its evidence as docs say it, and its function.

    `program` below bench/real/programs has it planted. Findings of the kinds in `explains` are not told beside it where
    it takes half of what they do: their advice would be another.
    """

    name: KnownCauseName
    evidence: str
    find: Callable[[RankView], KnownCause | None]
    least_permille: int
    program: str
    explains: tuple[str, ...]


CAUSE_RULES: Final = (
    CauseRule(
        "garbage_collection",
        "runs of Python's collector of 1 ms and longer (`gc.callbacks` in the samples, or its frames); where four and "
        "more that were heard before the iterations took twice the share of time, that share",
        find_collector,
        50,
        "causes/collector",
        ("python", "launch_bound", "optimizer", "data_loading", "long_iterations", "allocation"),
    ),
    CauseRule(
        "repeated_reduction",
        "several backward passes between two steps of the optimizer that go through the same functions, each with as "
        "many reductions of gradients (called where gradients are accumulated) as the last; the communication of all "
        "but one that nothing hides",
        find_repeated_reductions,
        50,
        "causes/accumulation_synced",
        ("exposed_communication",),
    ),
    CauseRule(
        "small_collectives",
        "ten and more collectives in an iteration that the training thread itself calls, outside of operators and of "
        "the ranges of DDP, FSDP and the optimizer, of 4 KiB at most; where sizes were not recorded, the shortest "
        "tenth of them is over in 1 ms",
        find_small_collectives,
        50,
        "causes/metrics_reduced",
        ("exposed_communication", "synchronization", "python", "launch_bound"),
    ),
    CauseRule(
        "unused_parameters",
        "rows `torch.distributed.ddp.reducer::search_unused_parameters`, which are there with this option alone",
        find_unused_parameters,
        2,
        "causes/unused_searched",
        ("python", "launch_bound"),
    ),
    CauseRule(
        "few_cores",
        "an affinity or a limit of the control group below the machine's cores, and a training thread that waits for a "
        "core for 5 % of the samples; half a core of the machine is idle, or one core is all that it may use",
        find_few_cores,
        50,
        "causes/one_core",
        ("data_loading", "cpu_contention", "python", "launch_bound"),
    ),
    CauseRule(
        "compilation",
        "code of torch.compile's compiler on the stack of samples, or 5 ms and more between `TorchDynamo Cache Lookup` "
        "and a `Torch-Compiled Region` that is new",
        find_compilations,
        50,
        "causes/lengths_compiled",
        ("python", "launch_bound", "long_iterations"),
    ),
    CauseRule(
        "workers_started",
        "iterations in which samples show the DataLoader starting or ending worker processes, and those that are "
        "longer by half as much with the same rows: what these take longer than the others",
        in_pauses("workers_started", WORKERS_START),
        30,
        "causes/short_epochs",
        ("data_loading", "python", "long_iterations"),
    ),
    CauseRule(
        "checkpoint",
        "iterations in which samples show `torch.save`, `torch.distributed.checkpoint` or safetensors at work, and "
        "those that are longer by half as much in the same silence, with no other function in it: what these take "
        "longer than the others",
        in_pauses("checkpoint", SAVES),
        30,
        "causes/checkpoints",
        ("python", "synchronization", "exposed_copies", "long_iterations"),
    ),
    CauseRule(
        "evaluation",
        "three and more operators of the model's layers that autograd does not go back through, in at most half of the "
        "iterations; from the first to the last of them",
        find_evaluation,
        100,
        "causes/evaluations",
        ("python", "launch_bound", "synchronization", "long_iterations"),
    ),
    CauseRule(
        "logging",
        "`logging` or a tracker's package (wandb, mlflow, tensorboard, tqdm …) on the stack of samples, below the "
        "user's own code",
        in_stacks("logging", LOGS),
        30,
        "causes/logs",
        ("python", "launch_bound", "synchronization", "long_iterations"),
    ),
)


def find_known_causes(view: RankView) -> list[KnownCause]:
    """The causes that are proven on one rank, the most time first."""
    found = [cause for rule in CAUSE_RULES if (cause := rule.find(view)) is not None and cause.time_ns > 0]
    return sorted(found, key=lambda cause: (-cause.time_ns, cause.cause))
