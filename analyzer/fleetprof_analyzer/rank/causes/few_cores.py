"""A process that may use few of its machine's cores and waits for one: by its affinity, or its control group's limit.

Guarantees: pure; where nothing is left of the machine, only one core for all threads and workers is named.
"""

from typing import Final

from fleetprof_api.report.rank_tables import KnownCause

from fleetprof_analyzer.rank.causes.rank_view import RankView
from fleetprof_analyzer.rank.measures.core_use import measure_core_use
from fleetprof_analyzer.rank.measures.data_loading import measure_data_loading
from fleetprof_analyzer.trace.intervals import length

_WORKERS: Final = "_MultiProcessingDataLoaderIter"
_LEAST_WAITED: Final = 0.05  # of what was sampled
_LEFT: Final = 0.5  # cores of the machine that nobody uses


def find_few_cores(view: RankView) -> KnownCause | None:
    """`count` is how many cores it may use, in thousandths, `of` how many the machine has, likewise.

    It takes what the thread waits for a core and, where workers share these cores, for their batches; no more than what
    all cores of the machine would save.
    """
    use = measure_core_use(view.samples, view.iterations)
    machine = None if view.samples is None else view.samples.host_cores
    if use is None or machine is None or not use.waited_ns or use.waited_ns < _LEAST_WAITED * use.sampled_ns:
        return None
    allowed = min(1000 * (use.usable_cores or machine), use.cpu_limit_millicores or 1000 * machine)
    busy = 1000 if use.host_busy_permille is None else use.host_busy_permille
    if allowed >= 1000 * machine or (machine * (1000 - busy) < 1000 * _LEFT and allowed > 1000):
        return None
    shared = any(_WORKERS in name for name in view.trace.names)
    loading = measure_data_loading(view.trace, (view.whole[0][:0], view.whole[1][:0])) if shared else 0
    # The same work on all cores of the machine: it takes no less than their share of the time.
    most = length(view.whole) * (1000 * machine - allowed) // (1000 * machine)
    return KnownCause(
        cause="few_cores",
        time_ns=min(max(use.waited_ns, loading or 0), most, length(view.free)),
        count=allowed,
        of=1000 * machine,
        iterations=len(view.iterations),
    )
