"""What is worth doing on CPU-only ranks, where no device stands idle: what all of their training threads spend time on.

Guarantees: pure; a finding takes the share of the median rank, so that one rank's fault, which the straggler verdict
tells, is none of all; its place is that of the rank with the most of it.
"""

from collections.abc import Sequence
from statistics import median_low
from typing import Final

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import Silence

from fleetprof_analyzer.job.findings import guards
from fleetprof_analyzer.job.findings.busy_cores import are_cores_busy
from fleetprof_analyzer.job.findings.found import FullHosts, HostLoading, HostSilence, MeasuredFinding, WaitsForCores

_FEWEST_COMPARED: Final = 5  # iterations


def find_host_findings(ranks: Sequence[Rank]) -> list[MeasuredFinding]:
    """Of CPU-only ranks. Rules: docs/measures.md#findings."""
    found = [_loading(ranks), _silences(ranks), _cores(ranks)]
    return [finding for finding in found if finding is not None]


def _loading(ranks: Sequence[Rank]) -> MeasuredFinding | None:
    times = [rank.data_loading_ns or _of_stage(rank, "data_loading") for rank in ranks]
    # Waits before the first operator lie outside of `span`, and those of other threads outside of the iterations.
    wholes = [max(rank.time_ns.span, _in_iterations(rank), time) for rank, time in zip(ranks, times, strict=True)]
    permille = _median_permille(times, wholes)
    if not guards.HOST_LOADING.allows(permille, 1000):
        return None
    return MeasuredFinding(
        kind="data_loading",
        facts=HostLoading(len(ranks), are_cores_busy(ranks)),
        guard=guards.HOST_LOADING,
        gain_permille=permille,
        measure="ranks.data_loading_ns",
        value_ns=sum(times),
        place=_loading_place(ranks, times),
    )


def _loading_place(ranks: Sequence[Rank], times_ns: Sequence[int]) -> PlaceInCode | None:
    """Where the rank is that waits for longest, of those whose thread was sampled."""
    places = [
        (time_ns, place)
        for rank, time_ns in zip(ranks, times_ns, strict=True)
        if rank.stages is not None and (place := rank.stages.loading_place or _silent_place(rank)) is not None
    ]
    return max(places, key=lambda one: one[0], default=(0, None))[1]


def _silent_place(rank: Rank) -> PlaceInCode | None:
    """Of a rank whose batches come from a plain generator, where no stage is the loader's: where it is silent."""
    longest = _longest_silence([rank])
    if longest is None or _of_stage(rank, "data_loading") or 2 * longest.time_ns < (rank.data_loading_ns or 0):
        return None
    return longest.place


def _silences(ranks: Sequence[Rank]) -> MeasuredFinding | None:
    times = [_of_stage(rank, "host") for rank in ranks]
    permille = _median_permille(times, [_in_iterations(rank) for rank in ranks])
    if not guards.HOST_SILENCE.allows(permille, 1000):
        return None
    longest = _main_silence(ranks)
    return MeasuredFinding(
        kind="python",
        facts=HostSilence(None if longest is None else (longest.after, longest.before), len(ranks)),
        guard=guards.HOST_SILENCE,
        gain_permille=permille,
        measure="ranks.stages.host",
        value_ns=sum(times),
        names=[] if longest is None else [name for name in (longest.after, longest.before) if name],
        place=None if longest is None else longest.place,
    )


def _cores(ranks: Sequence[Rank]) -> MeasuredFinding | None:
    used = [rank.cores for rank in ranks if rank.cores is not None and rank.cores.waited_ns is not None]
    if not used or len(used) < len(ranks):
        return _full_hosts(ranks)
    waited = [one.waited_ns or 0 for one in used]
    permille = _median_permille(waited, [one.sampled_ns for one in used])
    if not guards.WAITS_FOR_CORES.allows(permille, 1000):
        return None
    return MeasuredFinding(
        kind="cpu_contention",
        facts=WaitsForCores(len(ranks)),
        guard=guards.WAITS_FOR_CORES,
        gain_permille=permille,
        measure="ranks.cores.waited_ns",
        value_ns=sum(waited),
    )


def _full_hosts(ranks: Sequence[Rank]) -> MeasuredFinding | None:
    """Where the threads were not sampled: all hosts are full, and iterations that do the same differ in length."""
    busy = [rank.cores.host_busy_permille for rank in ranks if rank.cores is not None]
    known = [permille for permille in busy if permille is not None]
    if not known or len(known) < len(ranks) or not guards.FULL_HOSTS.allows(min(known), 1000):
        return None
    lengths = [[one.duration_ns for one in rank.iterations if one.complete is not False] for rank in ranks]
    longer = [sum(each) - min(each) * len(each) if len(each) >= _FEWEST_COMPARED else 0 for each in lengths]
    permille = _median_permille(longer, [sum(each) for each in lengths])
    if not guards.UNEVEN_ITERATIONS.allows(permille, 1000):
        return None
    return MeasuredFinding(
        kind="cpu_contention",
        facts=FullHosts(median_low(known), len(ranks)),
        guard=guards.UNEVEN_ITERATIONS,
        gain_permille=permille,
        measure="ranks.cores.host_busy_permille",
        value_ns=sum(longer),
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


def _main_silence(ranks: Sequence[Rank]) -> Silence | None:
    """The longest silence, if it holds half of what its rank is silent; else nothing is said of where."""
    found = [(one, rank) for rank in ranks if rank.stages is not None for one in rank.stages.silences]
    if not found:
        return None
    longest, rank = max(found, key=lambda one: one[0].time_ns)
    return longest if guards.SILENCE_BETWEEN.allows(longest.time_ns, _of_stage(rank, "host")) else None


def find_longest_place(ranks: Sequence[Rank]) -> PlaceInCode | None:
    """The line of code in which some rank is silent for longest."""
    longest = _longest_silence(ranks)
    return None if longest is None else longest.place
