"""Known causes in words: what the evidence shows, and what to try, with the option's name.

Guarantees: pure; a row for each cause of `rank.causes.registry`; figures are those of the rank with the most.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fleetprof_api.report.rank_tables import KnownCause, KnownCauseName

from fleetprof_analyzer.job.findings.found import ProvenCause


@dataclass(frozen=True, slots=True)
class CauseWords:
    """`message` says what the evidence shows; `advice` what to try, and holds each of the `options`."""

    message: Callable[[KnownCause, int], str]
    advice: str
    options: tuple[str, ...]


def say_proven_cause(facts: ProvenCause) -> tuple[str, str]:
    """(what it is, what to try)."""
    words = CAUSE_WORDS[facts.known.cause]
    return words.message(facts.known, facts.of_iterations), words.advice


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


CAUSE_WORDS: Final[Mapping[KnownCauseName, CauseWords]] = {
    "garbage_collection": CauseWords(
        _say_collector,
        "call gc.freeze() once all is loaded, gc.disable(), and gc.collect() every few hundred iterations; keep fewer "
        "small objects (tensors or arrays in place of lists and dicts)",
        ("gc.freeze", "gc.disable", "gc.collect"),
    ),
    "repeated_reduction": CauseWords(
        _say_reductions,
        "run all backward passes but the last under no_sync() (DDP; FSDP2: set_requires_gradient_sync(False), which "
        "keeps whole gradients in memory)",
        ("no_sync()", "set_requires_gradient_sync(False)"),
    ),
    "small_collectives": CauseWords(
        _say_small,
        "put the values into one tensor and reduce it once, and only where they are read: every n-th iteration "
        "(Lightning: self.log without sync_dist=True in each step)",
        ("sync_dist=True",),
    ),
    "unused_parameters": CauseWords(
        _in_iterations("DistributedDataParallel searches the graph for parameters that the step does not use"),
        "leave out find_unused_parameters=True if each step uses all parameters (PyTorch warns where it does), or set "
        "static_graph=True if the same ones are always unused",
        ("find_unused_parameters=True", "static_graph=True"),
    ),
    "few_cores": CauseWords(
        _say_cores,
        "allow it more cores (taskset, numactl, os.sched_setaffinity, OMP_PROC_BIND=false; Slurm: --cpus-per-task; in "
        "a pod its CPU limit); more workers would share the same ones",
        ("taskset", "os.sched_setaffinity", "OMP_PROC_BIND=false", "--cpus-per-task"),
    ),
    "compilation": CauseWords(
        _in_iterations("torch.compile compiles again"),
        "see why with TORCH_LOGS=recompiles; pad inputs to a few lengths, or let them vary (mark_dynamic, "
        "dynamic=True); give numbers that change in each step as tensors",
        ("TORCH_LOGS=recompiles", "mark_dynamic", "dynamic=True"),
    ),
    "workers_started": CauseWords(
        _in_iterations("the DataLoader starts its worker processes again"),
        "set persistent_workers=True in the DataLoader, and keep one DataLoader over all epochs; each further worker "
        "would make it longer",
        ("persistent_workers=True",),
    ),
    "checkpoint": CauseWords(
        _in_iterations("the training thread writes a checkpoint"),
        "write it beside the training (torch.distributed.checkpoint.async_save), or less often, or to a faster disk "
        "first",
        ("torch.distributed.checkpoint.async_save",),
    ),
    "evaluation": CauseWords(
        _in_iterations("the model runs without a backward pass (evaluation, generation)"),
        "evaluate less often (eval_steps, val_check_interval), on fewer batches (limit_val_batches), or in another job",
        ("eval_steps", "val_check_interval", "limit_val_batches"),
    ),
    "logging": CauseWords(
        _in_iterations("the training thread logs"),
        "log every n-th iteration (logging_steps, log_every_n_steps), and write on another thread "
        "(logging.handlers.QueueHandler)",
        ("logging_steps", "log_every_n_steps", "logging.handlers.QueueHandler"),
    ),
}
