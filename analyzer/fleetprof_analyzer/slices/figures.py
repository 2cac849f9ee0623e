"""Figures of a report that several slices hold. Pure."""

from statistics import median_low

from fleetprof_api.report.report import Rank, Report


def measured_ranks(report: Report) -> list[Rank]:
    """The ranks that the first total is of: those with GPUs where there are any."""
    return [rank for rank in report.ranks if report.totals and rank.kind == report.totals[0].kind]


def find_iteration_ns(report: Report) -> int | None:
    """The median length of an iteration, ns; None where no iteration is known."""
    durations = [iteration.duration_ns for rank in measured_ranks(report) for iteration in rank.iterations]
    return median_low(durations) if durations else None


def find_power_mw(report: Report) -> int | None:
    """Mean power of all sampled devices within iterations, mW; None where it is not known."""
    iteration_ns = find_iteration_ns(report)
    if report.energy is None or not iteration_ns:
        return None
    return report.energy.mean_mj * 1_000_000_000 // iteration_ns


def lateness_by_rank(report: Report) -> dict[int, int]:
    """ns per iteration that the others wait for a rank, of the ranks that the report lists."""
    late = report.stragglers
    return {} if late is None else {one.rank: one.lateness_ns for one in [*late.ranks, *late.order]}
