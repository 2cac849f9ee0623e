"""The time of training threads on ranks without a GPU, where no device stands idle.

Guarantees: pure; a finding takes the share of the median rank, so that one rank's fault, which the straggler verdict
tells, is none of all.
"""

from collections.abc import Sequence
from statistics import median_low

from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import Silence


def median_permille(times_ns: Sequence[int], spans_ns: Sequence[int]) -> int:
    """The share of the median rank; 0 where no rank has a span."""
    shares = [1000 * time // span for time, span in zip(times_ns, spans_ns, strict=True) if span > 0]
    return median_low(shares) if shares else 0


def add_stage(rank: Rank, name: str) -> int:
    """The time of one stage, ns."""
    stages = [] if rank.stages is None else rank.stages.stages
    return sum(stage.time_ns for stage in stages if stage.stage == name)


def add_iterations(rank: Rank) -> int:
    """The time of all stages, ns."""
    return 0 if rank.stages is None else sum(stage.time_ns for stage in rank.stages.stages)


def find_longest_silence(ranks: Sequence[Rank]) -> Silence | None:
    """The longest silence of the training threads."""
    silences = [silence for rank in ranks if rank.stages is not None for silence in rank.stages.silences]
    return max(silences, key=lambda silence: silence.time_ns, default=None)


def name_threads(ranks: int, verb: str) -> str:
    """`the training threads of all ranks wait`, `the training thread waits`."""
    return f"the training threads of all ranks {verb}" if ranks > 1 else f"the training thread {verb}s"
