"""The share in which a rank's training thread came to run within its iterations (docs/measures.md#waiting-for-a-core).

Guarantees: pure; sums over the iterations that samples cover; None where nothing was sampled.
"""

from collections.abc import Sequence

from fleetprof_api.report.report import Iteration
from fleetprof_api.report.report_tables import CoreUse
from fleetprof_api.samples import RankSamples

from fleetprof_analyzer.rank.communication.core_waits import waits_by_iteration


def measure_core_use(samples: RankSamples | None, iterations: Sequence[Iteration]) -> CoreUse | None:
    """The sums, ns; `samples` and `iterations` on one clock."""
    bounds = [(one.start_ns, one.start_ns + one.duration_ns) for one in iterations]
    waits = waits_by_iteration(samples, bounds)
    if samples is None or (
        not samples.thread.at_unix_ns and samples.usable_cores is None and waits.host_busy_permille is None
    ):
        return None
    covered = [end - start for (start, end), ran in zip(bounds, waits.ran_ns, strict=False) if ran is not None]

    def add(values: Sequence[float | None]) -> int | None:
        known = [value for value in values if value is not None]
        return round(sum(known)) if known else None

    return CoreUse(
        sampled_ns=sum(covered),
        ran_ns=add(waits.ran_ns),
        waited_ns=add(waits.waited_ns),
        involuntary_switches=add(waits.involuntary_switches),
        usable_cores=waits.usable_cores,
        cpu_limit_millicores=waits.cpu_limit_millicores,
        torch_threads=waits.torch_threads,
        host_busy_permille=waits.host_busy_permille,
    )
