"""Which of the candidates truly hold the others up, and what each costs: decided by replay.

Several slow ranks hide each other, so all candidates are set to their peers' reference at once, and each is judged by
the time that comes back when it alone keeps its real times. Guarantees: pure; at most `_MOST` candidates are
replayed, or as many as are late with their hosts.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, FoundBy, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.lateness.reference import Reference, of_itself, of_other_iterations, of_peers
from fleetprof_analyzer.job.stragglers.replay.course import Scenario
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.thresholds import LEAST, LEAST_BESIDE_NOISE, LEAST_PAUSE

_MOST: Final = 16
_LEAST_GAIN: Final = 0.005
_LEAST_OF_FIRST: Final = 0.25


@dataclass(frozen=True, slots=True)
class Fault:
    """A candidate after its replay; gains are shares of the window's length."""

    candidate: Candidate
    lateness_ns: int
    gain: float
    gain_alone: float  # with all other candidates at their reference: what it costs when nobody hides it
    peers: int


@dataclass(frozen=True, slots=True)
class Judged:
    """`named` hold the others up; `others` were replayed and do not.

    `joint_gain` is that of all that are named together, of all candidates where none is.
    """

    named: list[Fault]
    others: list[Fault]
    joint_gain: float


def judge(replay: Replay, table: OwnTime, candidates: list[Candidate]) -> Judged:
    """Names the candidates that matter."""
    rest = candidates[: max(_MOST, int((table.late_with_host >= 0).sum()))]
    if not rest:
        return Judged([], [], 0.0)
    wanted = {candidate.rank: _reference(replay, table, candidate) for candidate in rest}
    ranks = list(wanted)
    measured = replay.as_measured()
    placed = {rank: replay.placed_like(rank, table.peers(rank)) for rank in ranks}

    def fixed(chosen: list[int]) -> Scenario:
        changed = np.zeros(len(replay.work_ns), np.bool_)
        work, host, lag = replay.work_ns.copy(), replay.host_ns.copy(), replay.lag_ns.copy()
        marks = measured.work_ns
        for rank in chosen:
            here = replay.layout.mark_rank == rank
            marks = np.where(here, placed[rank], marks)
            known = wanted[rank].known
            changed |= known
            work[known], host[known] = wanted[rank].work_ns[known], wanted[rank].host_ns[known]
            lag[known] = wanted[rank].lag_ns[known]
        return replay.with_times(work, host, changed, lag, marks)

    scenarios = [measured, fixed(ranks)]
    scenarios += [fixed([rank]) for rank in ranks]
    if len(ranks) > 1:
        scenarios += [fixed([other for other in ranks if other != rank]) for rank in ranks]
    outcome = replay.run(scenarios, goes_on=True)
    total = outcome.lasting_ns.astype(np.float64)
    alone = total[2 + len(ranks) :] if len(ranks) > 1 else total[:1]
    faults = []
    for number, candidate in enumerate(rest):
        others = np.delete(np.arange(len(outcome.blocked_ns)), candidate.rank)
        saved = outcome.blocked_ns[others, 0] - outcome.blocked_ns[others, 2 + number]
        late = float(saved.mean()) / max(len(replay.matched.iterations), 1) if len(others) else 0.0
        faults.append(
            Fault(
                candidate,
                lateness_ns=max(round(late), 0),
                gain=float((total[0] - total[2 + number]) / total[0]),
                gain_alone=float((alone[number] - total[1]) / total[0]),
                peers=len(table.peers(candidate.rank)),
            )
        )
    faults.sort(key=lambda fault: -fault.gain_alone)
    joint = float((total[0] - total[1]) / total[0])
    comes_and_goes = all(candidate.pattern == LatePattern.INTERMITTENT for candidate in rest)
    if joint < max(least_joint_gain(replay), LEAST_PAUSE if comes_and_goes else 0.0):
        return Judged([], faults, joint)
    least = max(_LEAST_GAIN, _LEAST_OF_FIRST * faults[0].gain_alone)
    named = [fault for fault in faults if fault.gain_alone >= least]
    # Who is late with a host is named with it, however little this rank adds to what the others of the host cost.
    hosts = {int(table.late_with_host[fault.candidate.rank]) for fault in named} - {-1}
    named = [fault for fault in faults if fault in named or table.late_with_host[fault.candidate.rank] in hosts]
    if len(named) < len(faults):
        # A suspect that is faster than its peers would slow the rest down.
        mended = replay.run([fixed([fault.candidate.rank for fault in named])], goes_on=True)
        joint = float((total[0] - mended.lasting_ns[0]) / total[0])
    return Judged(named, [fault for fault in faults if fault not in named], joint)


def least_joint_gain(replay: Replay) -> float:
    """The worth that all suspects together must have, share of the iteration."""
    on_host = any(one.kind == "cpu" for one in replay.matched.ranks)
    return LEAST_BESIDE_NOISE if on_host else LEAST


def _reference(replay: Replay, table: OwnTime, candidate: Candidate) -> Reference:
    if candidate.mended_ns is not None:
        mine = (replay.layout.rank == candidate.rank) & (replay.iteration >= 0)
        return Reference(*candidate.mended_ns, replay.lag_ns, mine)
    if candidate.by == FoundBy.BLOCKED:
        return of_other_iterations(replay, table, candidate)
    if len(table.peers(candidate.rank)):
        return of_peers(replay, table, candidate.rank)
    return of_itself(replay, candidate)
