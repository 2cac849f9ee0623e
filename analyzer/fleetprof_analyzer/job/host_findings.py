"""What is worth doing on CPU-only ranks, where no device stands idle: what all of their training threads spend time on.

Guarantees: pure; a finding takes the share of the median rank, so that one rank's fault, which the straggler verdict
tells, is none of all; its place is that of the rank with the most of it.
"""

from collections.abc import Sequence
from statistics import median_low
from typing import Final

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import Silence

_DATA_PERMILLE: Final = 30
_HOST_PERMILLE: Final = 50
_WAITED_PERMILLE: Final = 100


def find_host_findings(ranks: Sequence[Rank]) -> list[Finding]:
    """Of CPU-only ranks. Rules: docs/measures.md#findings."""
    found = [_loading(ranks), _silences(ranks), _cores(ranks)]
    return [finding for finding in found if finding is not None]


def _loading(ranks: Sequence[Rank]) -> Finding | None:
    times = [rank.data_loading_ns or _of_stage(rank, "data_loading") for rank in ranks]
    permille = _median_permille(times, [rank.time_ns.span for rank in ranks])
    if permille < _DATA_PERMILLE:
        return None
    return Finding(
        kind="data_loading",
        message="the training threads of all ranks wait for the next batch",
        advice="more workers in the DataLoader, prefetching, or cheaper preparation of samples",
        gain_permille=permille,
        measure="ranks.data_loading_ns",
        value_ns=sum(times),
    )


def _silences(ranks: Sequence[Rank]) -> Finding | None:
    times = [_of_stage(rank, "host") for rank in ranks]
    permille = _median_permille(times, [_in_iterations(rank) for rank in ranks])
    if permille < _HOST_PERMILLE:
        return None
    longest = _longest_silence(ranks)
    between = "" if longest is None else f", most of it between {longest.after or 'the start'} and {longest.before}"
    return Finding(
        kind="python",
        message=f"the training threads of all ranks run no operator{between}",
        advice="move work out of the training loop, or do it less often",
        gain_permille=permille,
        measure="ranks.stages.host",
        value_ns=sum(times),
        names=[] if longest is None else [name for name in (longest.after, longest.before) if name],
        place=find_longest_place(ranks),
    )


def _cores(ranks: Sequence[Rank]) -> Finding | None:
    used = [rank.cores for rank in ranks if rank.cores is not None and rank.cores.waited_ns is not None]
    if not used or len(used) < len(ranks):
        return None
    waited = [one.waited_ns or 0 for one in used]
    permille = _median_permille(waited, [one.sampled_ns for one in used])
    if permille < _WAITED_PERMILLE:
        return None
    return Finding(
        kind="cpu_contention",
        message="the training threads of all ranks are ready to run and wait for a core",
        advice="fewer ranks, threads (OMP_NUM_THREADS) and other programs on these cores, or a larger CPU limit",
        gain_permille=permille,
        measure="ranks.cores.waited_ns",
        value_ns=sum(waited),
    )


def _median_permille(times_ns: Sequence[int], spans_ns: Sequence[int]) -> int:
    shares = [1000 * time // span for time, span in zip(times_ns, spans_ns, strict=True) if span > 0]
    return median_low(shares) if shares else 0


def _of_stage(rank: Rank, name: str) -> int:
    stages = [] if rank.stages is None else rank.stages.stages
    return sum(stage.time_ns for stage in stages if stage.stage == name)


def _in_iterations(rank: Rank) -> int:
    return 0 if rank.stages is None else sum(stage.time_ns for stage in rank.stages.stages)


def _longest_silence(ranks: Sequence[Rank]) -> Silence | None:
    silences = [silence for rank in ranks if rank.stages is not None for silence in rank.stages.silences]
    return max(silences, key=lambda silence: silence.time_ns, default=None)


def find_longest_place(ranks: Sequence[Rank]) -> PlaceInCode | None:
    """The line of code in which some rank is silent for longest."""
    longest = _longest_silence(ranks)
    return None if longest is None else longest.place
