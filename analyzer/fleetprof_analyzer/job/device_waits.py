"""Tells a late rank whose work was launched in time, and begins late on its device, from one whose host is late.

Guarantees: pure; a host is not blamed for time in which its work was launched and did not begin; where idle causes are
not known, or the trace is a sample, the verdict stays as it is.
"""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Final

from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import Rank
from fleetprof_api.report.stragglers import Straggler, Stragglers
from msgspec.structs import replace

from fleetprof_analyzer.job.sentence_guard import SentenceGuard

WAITS_ON_DEVICE: Final = SentenceGuard(
    place="verdict: its device", figure="idle_ns.waiting beyond the other ranks'", whole="stragglers.ranks.lateness_ns",
    least_permille=500, words="M % waits for its device, …", below="its host code",
)  # fmt: skip


def name_device_waits(found: Stragglers, ranks: Sequence[Rank]) -> Stragglers:
    """The section with the cause `device_wait` where it is that, and not `host`."""
    known = {rank.rank: rank for rank in ranks if rank.idle_ns is not None and rank.iterations}
    named = {one.rank for one in found.ranks}
    others = [rank for number, rank in known.items() if number not in named]
    if not others or found.hosts or found.verdict != "straggler":
        return found
    return replace(found, ranks=[_judge(one, known.get(one.rank), others) for one in found.ranks])


def _judge(late: Straggler, rank: Rank | None, others: Sequence[Rank]) -> Straggler:
    if late.cause != "host" or rank is None:
        return late
    on_device = _beyond(rank, others, lambda idle: idle.waiting - idle.waiting_short)
    on_host = _beyond(rank, others, lambda idle: idle.host + idle.optimizer + idle.synchronization + idle.launching)
    is_device = WAITS_ON_DEVICE.allows(on_device, late.lateness_ns) and on_device > on_host
    return replace(late, cause="device_wait", place=None) if is_device else late


def _beyond(rank: Rank, others: Sequence[Rank], time_ns: Callable[[IdleCauses], int]) -> float:
    """The idle time of this kind per iteration beyond that of the other ranks, ns."""

    def of_iteration(one: Rank) -> float:
        return 0.0 if one.idle_ns is None else time_ns(one.idle_ns) / len(one.iterations)

    return of_iteration(rank) - median(of_iteration(one) for one in others)
