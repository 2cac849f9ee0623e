"""The speed of a device at what others run as well: the same kernels, for as many threads.

It tells a slow device from more work, whatever shapes a rank has in an iteration. It also finds slow devices of which
the own time says nothing: in a pipeline without data parallelism, whose stages share only their layers' kernels, and
where work moves from rank to rank. Guarantees: pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, FoundBy, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.excess import least_z
from fleetprof_analyzer.job.stragglers.lateness.own_time import Floats, OwnTime
from fleetprof_analyzer.job.stragglers.replay.replay import Replay
from fleetprof_analyzer.job.stragglers.thresholds import FEWEST, SAME_COUNT, SAME_SIZE, SEVERAL, SIGMA
from fleetprof_analyzer.rank.communication.operations import Signature
from fleetprof_analyzer.rank.communication.work import LEAST_TOLD, Pace, measure_pace

_LEAST_FACTOR: Final = 0.06


@dataclass(frozen=True, slots=True)
class Kernels:
    """The launches of some ranks together, by kernel."""

    ranks: int
    by_kernel: dict[int, Signature]

    @staticmethod
    def of(ranks: Iterable[Sequence[Signature]]) -> "Kernels":
        """Adds the kernels of ranks."""
        sums: dict[int, Signature] = {}
        count = 0
        for count, signatures in enumerate(ranks, 1):  # noqa: B007
            for one in signatures:
                sums[one.kernel] = _add(sums[one.kernel], one) if one.kernel in sums else one
        return Kernels(count, sums)

    def without(self, signatures: Sequence[Signature]) -> "Kernels":
        """Without one of these ranks."""
        left = dict(self.by_kernel)
        for one in signatures:
            left[one.kernel] = _add(left[one.kernel], one, -1)
        return Kernels(self.ranks - 1, {kernel: one for kernel, one in left.items() if one.timed > 0})


def _add(one: Signature, other: Signature, sign: int = 1) -> Signature:
    mine, more = msgspec.structs.astuple(one), msgspec.structs.astuple(other)
    return Signature(one.kernel, *(a + sign * b for a, b in zip(mine[1:], more[1:], strict=True)))


@dataclass(frozen=True, slots=True)
class Speed:
    """A device beside others: `factor` times as long for the same work; `varies`: launches of a kernel differ in size.

    `fixed` is the share of that time which does not grow with the launches.
    """

    factor: float
    varies: bool
    fixed: float
    kernels: int  # shared


@dataclass(slots=True)
class _Shared:
    """Kernels that both sides have: what they took here, what that takes on the others, and what those took."""

    kernels: int = 0
    took_ns: float = 0.0
    expected_ns: float = 0.0
    fixed_ns: float = 0.0
    usual_ns: float = 0.0

    def add(self, one: Signature, pace: Pace, others: Signature) -> None:
        self.kernels += 1
        self.took_ns += _time_ns(one)
        self.expected_ns += one.count / one.timed * pace.expect_ns(one.timed, one.timed_threads)
        self.fixed_ns += one.count * pace.fixed_ns
        self.usual_ns += _time_ns(others)


def compare_speed(mine: Sequence[Signature], others: Kernels, *, by_calls: bool = False) -> Speed | None:
    """None where no kernel is shared. `by_calls`: each has the same work, however many threads it has.

    A kernel whose launches are all of one size may have any work inside: where others vary, these tell. Kernels that
    only one side has stand for each other where they are as many: they were chosen for the same work.
    """
    whole, by_size = _Shared(), _Shared()
    for one in mine:
        same = others.by_kernel.get(one.kernel)
        if same is None:
            continue
        pace = Pace(same.timed_ns / same.timed, 0.0, 0.0, varies=False) if by_calls else measure_pace(same)
        whole.add(one, pace, same)
        if pace.varies or abs(one.timed_threads / one.timed - pace.threads) > SAME_SIZE * pace.threads:
            by_size.add(one, pace, same)
    varies = not by_calls and by_size.expected_ns >= LEAST_TOLD * whole.expected_ns
    sums = by_size if varies else whole
    if sums.expected_ns <= 0:
        return None
    took_ns, expected_ns = sums.took_ns, sums.expected_ns
    kernels = {one.kernel for one in mine}
    alone = [one for one in mine if one.kernel not in others.by_kernel]
    lacking = [one for kernel, one in others.by_kernel.items() if kernel not in kernels]
    calls, lacking_calls = sum(one.count for one in alone), sum(one.count for one in lacking) / others.ranks
    if alone and lacking and abs(calls - lacking_calls) <= SAME_COUNT * lacking_calls:
        larger = sums.expected_ns / sums.usual_ns  # and these as well, beside what all of the others took
        took_ns += sum(_time_ns(one) for one in alone)
        expected_ns += larger * sum(_time_ns(one) for one in lacking)
    return Speed(took_ns / expected_ns, varies, max(sums.fixed_ns / sums.expected_ns, 0.0), whole.kernels)


def _time_ns(one: Signature) -> float:
    return one.count * one.timed_ns / one.timed


def given_work_ns(table: OwnTime, rank: int, speed: Speed) -> Floats:
    """The time that its kernels would take at the others' pace, ns per iteration, shape (K,); nan where unsaid."""
    work = table.work[rank]
    mean = float(np.nanmean(work)) if np.isfinite(work).any() else np.nan
    return np.asarray((speed.fixed * mean + (1 - speed.fixed) * work) / speed.factor)


def find_candidates(replay: Replay, table: OwnTime) -> list[Candidate]:
    """Candidates, mended with a device as fast as the others'.

    A rank without peers is compared with all others. Among ranks of one role whose work differs, the own time says
    little of a device, and the same kernels all.
    """
    found: list[Candidate] = []
    if table.on_host or not table.signatures:
        return found
    ranks = list(range(len(table.role)))
    alone = {rank for rank in ranks if len(table.peers(rank)) == 0}
    roles = {int(role) for role in table.role if (table.role == role).sum() > 1}
    groups = [(np.flatnonzero(table.role == role).tolist(), False) for role in sorted(roles)]
    for members, is_alone in [*groups, *([(ranks, True)] if alone else [])]:
        for rank, above in _find_slow(table, members, whatever_varies=is_alone):
            if is_alone and rank not in alone:
                continue
            every = np.ones(table.own_ns.shape[1], np.bool_)
            less = np.rint(replay.parts_ns["busy"] * -np.expm1(-above)).astype(np.int64)
            mended, share = (replay.work_ns - less, replay.host_ns), float(np.expm1(above))
            found.append(Candidate(rank, LatePattern.PERSISTENT, share, every, FoundBy.KERNELS, mended))
    return found


def _find_slow(table: OwnTime, members: list[int], *, whatever_varies: bool) -> list[tuple[int, float]]:
    """(rank, logarithm of its factor) of those that stand out, the slowest first.

    The others are compared without it, because few of them would take its pace for usual.
    """
    slow: list[tuple[int, float]] = []
    factors = _factors(table, members, whatever_varies=whatever_varies)
    while len(factors) >= FEWEST:
        slowest = max(factors, key=lambda rank: factors[rank])
        if factors[slowest] <= _LEAST_FACTOR:
            break
        members = [rank for rank in members if rank != slowest]
        above, factors = factors[slowest], _factors(table, members, whatever_varies=whatever_varies)
        others = np.array([*factors.values()] or [0.0])
        spread = SIGMA * float(np.median(np.abs(others - np.median(others))))
        if above <= least_z(len(others)) * spread:
            break
        slow.append((slowest, above))
    return slow


def _factors(table: OwnTime, members: list[int], *, whatever_varies: bool) -> dict[int, float]:
    """The logarithm of the factor of each rank that can be compared with the other members."""
    together = Kernels.of(table.signatures[rank] for rank in members)
    speeds = {rank: compare_speed(table.signatures[rank], together.without(table.signatures[rank])) for rank in members}
    return {
        rank: float(np.log(speed.factor))
        for rank, speed in speeds.items()
        if speed is not None and speed.kernels >= SEVERAL and (whatever_varies or speed.varies)
    }
