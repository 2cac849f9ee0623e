"""Uneven work that is nobody's fault: a stage that is too heavy, or work that moves from rank to rank.

Work cannot vanish, so these what-ifs share it out evenly (means), where faults are set to what peers need (medians).
Guarantees: pure.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from fleetprof_api.report.stragglers import Cause

from fleetprof_analyzer.job.stragglers.causes.loaders import loading_ns
from fleetprof_analyzer.job.stragglers.lateness.movement import explained_share, restlessness
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.lateness.reference import take_off
from fleetprof_analyzer.job.stragglers.lateness.turns import find_likeliest_order, iterations_to_decide, measure_turns
from fleetprof_analyzer.job.stragglers.moving_pauses import pauses_move
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.thresholds import (
    FEW_ITERATIONS,
    HALF,
    LEAST,
    LEAST_BESIDE_NOISE,
    LEAST_PAUSE,
    MOST,
    USUAL,
)
from fleetprof_analyzer.trace.trace import Bools, Int64s

_LEAST_STAGE_EXCESS: Final = 0.08
_PAUSE_DEVIATIONS: Final = 9.0  # median absolute ones, six standard deviations of noise
_PAUSES: Final[tuple[Cause, ...]] = ("garbage_collection", "data_loading", "host")
# By waits for a core; in the order in which they are looked at.
_MOST_EXPLAINED: Final[dict[Cause, float]] = {
    "garbage_collection": 0.5, "data_loading": 0.5, "host": 0.5, "unequal_work": 0.2,
}  # fmt: skip
_LEAST_OF_RESTLESSNESS: Final = 0.3  # of what moves most


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Gains as shares of the window; `heaviest` holds the ranks (positions) of a stage that is too heavy, else none."""

    stage_gain: float
    moving_gain: float
    heaviest: list[int]
    excess: float  # of the heaviest role over the mean of the others
    cause: Cause  # of that excess
    lateness_ns: int
    moves: Cause | None  # what moves from rank to rank, where it costs enough; None: nothing that is a rank's own doing
    by_turns: bool  # the ranks pause in turns, which no noise does
    untold_gain: float = 0.0  # what a heavy stage may cost, where the traces do not tell it
    turns_need: int | None = None  # iterations that would decide whether they do; None: there is no doubt


def find_imbalance(replay: Replay, table: OwnTime) -> Imbalance:
    """Compares the replay as measured with one of even roles and one of even ranks and iterations."""
    rank = replay.like[replay.layout.rank]
    inside = replay.iteration >= 0
    roles = np.unique(table.role)
    level = np.array([float(table.own_ns[table.role == role].mean()) for role in roles])
    of_role = dict(zip(roles.tolist(), level.tolist(), strict=True))
    top = int(level.argmax())
    cause: Cause = _find_excess(table, table.role == roles[top]) if len(roles) > 1 else "stage_imbalance"
    usual_level = np.full(len(roles), level.mean())
    if cause != "stage_imbalance":
        # What is no work can vanish from a stage, and goes to no other.
        usual_level = level.copy()
        usual_level[top] = np.delete(level, top).mean()
    of_usual = dict(zip(roles.tolist(), usual_level.tolist(), strict=True))
    factor = np.array([of_usual[int(r)] / max(of_role[int(r)], 1.0) for r in table.role])[rank]
    regular = inside & (replay.program_position >= 0)
    key = table.role[rank].astype(np.int64) * (int(replay.program_position.max()) + 2) + replay.program_position
    keys, owner = np.unique(key[regular], return_inverse=True)
    # A rank that is always somewhat faster or slower stays so: what is left moves.
    always, always_busy = (_levels(table, times)[rank[regular]] for times in (table.own_ns, table.parts_ns["busy"]))

    def shared_by_role(times: Int64s) -> Int64s:
        return np.where(inside, np.rint(times * factor).astype(np.int64), times)

    def shared_by_all(times: Int64s, always: Floats) -> Int64s:
        total, count = np.bincount(owner, times[regular], len(keys)), np.bincount(owner, minlength=len(keys))
        shared = times.copy()
        shared[regular] = np.rint((total / count)[owner] * always).astype(np.int64)
        return shared

    def without_pauses(times: Int64s) -> Int64s:
        """A pause can vanish, where work has to be done by somebody."""
        usual = medians_by(times[regular], owner)[owner] * always
        above = times[regular] - usual
        limit = _PAUSE_DEVIATIONS * medians_by(np.rint(np.abs(above)).astype(np.int64), owner)[owner]
        found = times.copy()
        found[regular] = np.where(above > np.maximum(limit, least_pause_ns), np.rint(usual), times[regular])
        return found

    least_pause_ns = LEAST_PAUSE * float(np.median(table.own_ns))
    even_roles = replay.with_times(shared_by_role(replay.work_ns), shared_by_role(replay.host_ns), inside)
    even = replay.with_times(shared_by_all(replay.work_ns, always), shared_by_all(replay.host_ns, always), regular)
    busy_ns = np.minimum(replay.parts_ns["busy"], replay.work_ns)
    even_work = replay.with_times(
        replay.work_ns - busy_ns + shared_by_all(busy_ns, always_busy), replay.host_ns, regular
    )
    steady = replay.with_times(without_pauses(replay.work_ns), without_pauses(replay.host_ns), regular)
    outcome = replay.run([replay.as_measured(), even_roles, even, steady, even_work])
    measured = max(float(outcome.total_ns[0]), 1.0)
    stage_gain, moving_gain = (
        (measured - float(outcome.total_ns[1])) / measured,
        (measured - float(outcome.total_ns[2])) / measured,
    )
    untold_gain = 0.0
    if stage_gain < LEAST and not replay.has_host.any():
        # Without launches nothing says on which side of a wait work lies: the stage's shrinks, and nothing grows.
        lighter = replay.with_times(np.minimum(shared_by_role(replay.work_ns), replay.work_ns), replay.host_ns, inside)
        untold_gain = (measured - float(replay.run([lighter]).total_ns[0])) / measured
        stage_gain = untold_gain if stage_gain < 0 else stage_gain
    order = find_likeliest_order(table, replay.matched.iterations)
    turns = measure_turns(table, order)
    turns_gain = 0.0 if turns is None else 1 - _total_without(replay, table, turns) / measured
    by_turns = turns_gain >= LEAST_PAUSE
    moves: Cause | None = "host" if by_turns else None
    if not by_turns and moving_gain >= LEAST_BESIDE_NOISE and _is_of_several(table.own_ns):
        moves = _find_moving(replay, table, on_host=any(one.kind == "cpu" for one in replay.matched.ranks))
    if by_turns:
        moving_gain = turns_gain
    elif moves in _PAUSES:
        moving_gain = max(moving_gain, (measured - float(outcome.total_ns[3])) / measured)
    elif moves == "unequal_work":
        # The work alone is shared out: late batches and pauses stay where they are.
        moving_gain = (measured - float(outcome.total_ns[4])) / measured
        moves = moves if moving_gain >= LEAST_BESIDE_NOISE else None
    heaviest: list[int] = []
    excess = 0.0
    if len(roles) > 1:
        here = table.role == roles[top]
        # A stage is heavy on all of its ranks and has more work in most iterations: pauses of one are not the stage's.
        least = float(_lasting(table.own_ns[here], cause).min())
        excess = min(float(level[top]), least) / max(float(np.delete(level, top).mean()), 1.0) - 1
        heavy = stage_gain >= LEAST and excess >= _LEAST_STAGE_EXCESS
        heavy = heavy and not (cause == "data_loading" and _others_load_alike(table, here))
        if heavy and stage_gain > HALF * moving_gain:
            heaviest = np.flatnonzero(table.role == roles[top]).tolist()
    others = np.setdiff1d(np.arange(len(table.role)), heaviest)
    saved = (outcome.blocked_ns[others, 0] - outcome.blocked_ns[others, 1]).mean() if len(others) else 0.0
    return Imbalance(
        stage_gain,
        moving_gain,
        heaviest,
        excess,
        cause,
        max(round(float(saved) / max(len(replay.matched.iterations), 1)), 0),
        moves=moves,
        by_turns=by_turns,
        untold_gain=untold_gain if excess >= _LEAST_STAGE_EXCESS else 0.0,
        turns_need=None if by_turns else iterations_to_decide(order),
    )


def _lasting(own_ns: Int64s, cause: Cause) -> Floats:
    """The time that each rank of a stage, shape (n, K), takes in most iterations if the stage is heavy by that cause.

    Pauses come and go, and any rank may have them in half of the iterations by chance: a slow host is always slow.
    """
    if cause == "host":
        return np.asarray(np.quantile(own_ns, USUAL, axis=1, method="lower"))
    return np.asarray(np.median(own_ns, axis=1) if cause == "stage_imbalance" else own_ns.mean(axis=1))


def _find_excess(table: OwnTime, here: Bools) -> Cause:
    """Why the ranks `here`, shape (R,), take longer: more work, unless the loader or the host explains more of it."""
    if table.on_host:
        return "stage_imbalance"
    more = {part: float(values[here].mean() - values[~here].mean()) for part, values in table.parts_ns.items()}
    causes: dict[Cause, float] = {
        "stage_imbalance": more["busy"], "data_loading": more["data"], "host": more["host"] + more["collection"],
    }  # fmt: skip
    return max(causes, key=lambda cause: causes[cause])


def _levels(table: OwnTime, times_ns: Int64s) -> Floats:
    """Each rank's mean over that of its role, shape (R,), of times of shape (R, K)."""
    means = times_ns.mean(axis=1)
    of_role = np.array([means[table.role == role].mean() for role in table.role])
    return np.asarray(means / np.maximum(of_role, 1.0))


def _others_load_alike(table: OwnTime, here: Bools) -> bool:
    """Tells whether the loaders of other stages are about as slow: those of all ranks are, then."""
    loading = loading_ns(table).mean(axis=1)
    return float(loading[~here].max()) >= HALF * float(loading[here].mean())


def medians_by(values: Int64s, owner: Int64s) -> Int64s:
    """The lower median of the values of each owner 0, 1, ..., each of which has some."""
    count = np.bincount(owner)
    middle = np.cumsum(count) - count + (count - 1) // 2
    return np.asarray(values[np.lexsort((values, owner))][middle])


def _is_of_several(own_ns: Int64s) -> bool:
    """Tells if no rank and no iteration alone loses most of what is lost to times beyond what is usual for a rank."""
    above = np.maximum(own_ns - np.quantile(own_ns, USUAL, axis=1)[:, None], 0)
    lost, rank = above.max(axis=0), above.argmax(axis=0)
    of_rank = np.bincount(rank, lost, len(above))
    total = float(lost.sum())
    return float(lost.max()) <= HALF * total and float(of_rank.max()) <= MOST * total


def _total_without(replay: Replay, table: OwnTime, beyond_ns: Floats) -> float:
    """The window's length if each rank took so much less in each iteration, shape (R, K)."""
    less = sum((replay.work_ns - take_off(replay, table, rank, mine) for rank, mine in enumerate(beyond_ns)), 0)
    shorter = replay.with_times(replay.work_ns - less, replay.host_ns, replay.iteration >= 0)
    return float(replay.run([shorter]).total_ns[0])


def _find_moving(replay: Replay, table: OwnTime, *, on_host: bool) -> Cause | None:
    """The cause of what moves most; None where it is that ranks wait for cores, or work on a host that may be so."""
    parts = table.parts_ns
    causes: dict[Cause, Int64s] = {
        "unequal_work": parts["busy"], "data_loading": parts["data"], "garbage_collection": parts["collection"],
        "host": parts["host"],
    }  # fmt: skip
    moving = {cause: restlessness(values) for cause, values in causes.items()}
    most = max(moving, key=lambda one: moving[one])
    if not on_host:
        return most
    if table.own_ns.shape[1] < FEW_ITERATIONS:
        return None
    # Work on a host that others use is always restless: what pauses is looked at first.
    for cause, limit in _MOST_EXPLAINED.items():
        explained = _explained_by_waits(table, causes[cause])
        is_moving = cause != "unequal_work" if explained is None else explained <= limit
        if is_moving and moving[cause] >= _LEAST_OF_RESTLESSNESS * moving[most]:
            return cause if cause != "host" or pauses_move(replay, table) else None
    return None


def _explained_by_waits(table: OwnTime, values: Int64s) -> float | None:
    """The share of what moves that goes with the ranks' waits for a core (r²); None where these were not sampled."""
    known = table.sampled()
    if known is None or table.waited_ns.shape != values.shape:
        return None
    return explained_share(values[:, known], table.waited_ns[:, known])
