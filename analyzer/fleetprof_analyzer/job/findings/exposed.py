"""What communication that nothing hides is made of, as far as sizes and times in the report tell.

Guarantees: pure; says nothing where it is not known whether ranks wait or send, nor on CPU-only ranks whose cores are
busy: there a transfer cannot be told from the wait for a core.
"""

from collections.abc import Sequence
from typing import Final

from fleetprof_api.report.report_tables import CommunicationStatistics
from fleetprof_api.report.stragglers import Stragglers

from fleetprof_analyzer.job.findings import guards
from fleetprof_analyzer.job.findings.found import ExposedCommunication

_SMALL_BYTES: Final = 1 << 20  # below it, larger messages would help (docs/measures.md#findings)
_BUCKETED: Final = frozenset(("all_reduce", "reduce_scatter", "all_gather"))


def judge_exposed(
    found: Stragglers | None,
    rows: Sequence[CommunicationStatistics],
    *,
    exposed: float,
    ranks: int,
    waits_for_cores: bool,
    iterations: int = 0,
) -> ExposedCommunication:
    """`exposed`: its share of the devices' time; `waits_for_cores`: the ranks have no device, and their cores are busy;
    `iterations`: of a rank, 0 where it is not known.

    Of a single rank nothing is known.
    """
    transfer_share = None if found is None else found.transfer_share
    if found is None or transfer_share is None:
        return ExposedCommunication("not_known", ranks=ranks)
    bubbles = found.pipeline
    if bubbles is not None and guards.SCHEDULE.allows(bubbles.share, exposed):
        return ExposedCommunication("schedule", pipeline=bubbles)
    if not guards.SENDING.allows(transfer_share, 1):
        return ExposedCommunication("waiting")
    if waits_for_cores:
        return ExposedCommunication("on_host")
    return ExposedCommunication("sending", _mean_bytes(rows, iterations))


def _mean_bytes(rows: Sequence[CommunicationStatistics], iterations: int) -> float | None:
    """Of the collectives that buckets or units fill; None where most time has no size, or no larger ones could be."""
    bucketed = [row for row in rows if row.kind in _BUCKETED]
    known = [(row.message_bytes, row.count, row.total_ns) for row in bucketed if row.message_bytes is not None]
    whole, calls = sum(row.total_ns for row in rows), sum(count for _, count, _ in known)
    if not calls or not guards.SIZES.allows(sum(total for _, _, total in known), whole):
        return None
    mean = sum(size * count for size, count, _ in known) / calls
    of_rank = sum(row.count / max(1, row.ranks) for row in bucketed if row.message_bytes is not None)
    if mean < _SMALL_BYTES and iterations and not guards.LARGER_MESSAGES.allows(of_rank, iterations):
        return None
    return mean
