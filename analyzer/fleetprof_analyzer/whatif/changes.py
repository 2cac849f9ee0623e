"""The difference of two captures of one workload, as the settings of a what-if that would have foretold it.

Guarantees: pure; several things that changed at once, or anything else, are no settings: a prediction covers them not.
"""

from dataclasses import dataclass

from fleetprof_api.report.report import Report

from fleetprof_analyzer.whatif.batch_sizes import sized_capture


@dataclass(frozen=True, slots=True)
class CapturedRun:
    """One capture of a workload: its iterations, ranks, samples of a rank's iteration, and whom the others waited for.

    `stragglers` is None where nobody could judge.
    """

    iteration_ns: list[float]
    ranks: int
    samples: float | None
    stragglers: tuple[int, ...] | None


def describe_run(report: Report) -> CapturedRun:
    """The run that a report is of."""
    sizes = {rank.samples_per_iteration for rank in report.ranks} - {None}
    samples = float(next(iter(sizes)) or 0) if len(sizes) == 1 else None
    found = report.stragglers
    judged = found is not None and found.verdict in ("nobody", "straggler")
    late = tuple(one.rank for one in found.ranks) if found is not None and judged else None
    return CapturedRun(sized_capture(report, samples or 0.0).iteration_ns, len(report.ranks), samples, late)


def find_settings(before: CapturedRun, after: CapturedRun) -> list[str]:
    """The settings with which `before` foretells `after`; empty where nothing changed that one covers."""
    settings = []
    if before.ranks != after.ranks:
        settings.append([f"ranks={after.ranks}"])
    if before.samples != after.samples:
        settings.append([f"batch_size={after.samples:g}"] if before.samples and after.samples else [])
    if before.stragglers and after.stragglers is not None and not {*before.stragglers} & {*after.stragglers}:
        settings.append([f"without-straggler={rank}" for rank in before.stragglers])
    return settings[0] if len(settings) == 1 else []
