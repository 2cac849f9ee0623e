"""The difference of two captures of one workload, as the settings of a what-if that would have foretold it.

Guarantees: pure; several things that changed at once, or anything else, are no settings: a prediction covers them not.
"""

from dataclasses import dataclass

from fleetprof_api.report.report import Report

from fleetprof_analyzer.whatif.batch_sizes import find_samples, sized_capture


@dataclass(frozen=True, slots=True)
class CapturedRun:
    """One capture of a workload: its iterations, its job's ranks and samples, and whom the others waited for.

    `ranks` are those of the job, also where fewer were captured; `samples` of an iteration, over all of them.
    `stragglers` is None where nobody could judge.
    """

    iteration_ns: list[float]
    ranks: int
    samples: float | None
    stragglers: tuple[int, ...] | None


def describe_run(report: Report) -> CapturedRun:
    """The run that a report is of."""
    samples = find_samples(report)
    found = report.stragglers
    judged = found is not None and found.verdict in ("nobody", "straggler")
    late = tuple(one.rank for one in found.ranks) if found is not None and judged else None
    world = max((rank.world_size for rank in report.ranks if rank.world_size is not None), default=0)
    iteration_ns = sized_capture(report, samples or 0.0).iteration_ns
    return CapturedRun(iteration_ns, max(world, len(report.ranks)), samples, late)


def find_settings(before: CapturedRun, after: CapturedRun) -> list[str]:
    """The settings with which `before` foretells `after`; empty where nothing changed that one covers."""
    settings = []
    if before.ranks != after.ranks:
        settings.append([f"ranks={after.ranks}"])
    if _samples_of_one(before) != _samples_of_one(after):
        settings.append([f"batch_size={after.samples:.0f}"] if before.samples and after.samples else [])
    if before.stragglers and after.stragglers is not None and not {*before.stragglers} & {*after.stragglers}:
        settings.append([f"without-straggler={rank}" for rank in before.stragglers])
    return settings[0] if len(settings) == 1 else []


def _samples_of_one(run: CapturedRun) -> float | None:
    """The samples of one rank: what stays with more ranks or fewer."""
    return run.samples / run.ranks if run.samples else None
