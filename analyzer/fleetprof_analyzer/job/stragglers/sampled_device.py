"""The sampled GPU of a rank that the others wait for: its clock beside its peers', and its throttling.

Guarantees: pure; None where nothing was sampled on it, or where the verdict names no device.
"""

from collections.abc import Sequence
from statistics import fmean, median
from typing import Final, NamedTuple

from fleetprof_api.report.report import Rank, Report, Series
from fleetprof_api.report.stragglers import Straggler
from fleetprof_api.worst_gpu import CLOCK_UNDER_PEERS

_OF_DEVICES: Final = ("slow_gpu", "throttling")
_THROTTLED: Final = "throttled_by_"
_CLOCK: Final = "clock of the device"
_THROTTLED_MORE: Final = 20.0  # percent of the samples: all GPUs of a model meet their power limit now and then


class SampledDevice(NamedTuple):
    """`clock`: of its peers' clock, a share; None: not lower, or not known. `throttled_by`: reasons, the most first."""

    rank: int
    node_name: str
    clock: float | None
    throttled_by: Sequence[str]


def find_sampled_device(report: Report) -> SampledDevice | None:
    """The sampled device of the first rank that the verdict names."""
    found = report.stragglers
    if found is None or found.verdict != "straggler" or not found.ranks or found.ranks[0].cause not in _OF_DEVICES:
        return None
    late = found.ranks[0]
    sampled = [rank for rank in report.ranks if rank.device_series]
    mine = next((rank for rank in sampled if rank.rank == late.rank), None)
    if mine is None:
        return None
    others = [_share_throttled(rank) for rank in sampled if rank is not mine]
    more = {
        reason: share - (median([other.get(reason, 0.0) for other in others]) if others else 0.0)
        for reason, share in _share_throttled(mine).items()
    }
    reasons = sorted((reason for reason, by in more.items() if by >= _THROTTLED_MORE), key=lambda reason: -more[reason])
    return SampledDevice(late.rank, mine.node_name or mine.host_name, _find_clock(report, late), reasons)


def _find_clock(report: Report, late: Straggler) -> float | None:
    """In its late iterations where that is known, else over all samples."""
    clock = next((one for one in late.evidence if one.measure == _CLOCK and one.usual > 0), None)
    if clock is not None:
        return clock.value / clock.usual
    worst = report.worst_gpu
    if worst is None or worst.rank != late.rank or worst.sm_clock_permille is None:
        return None
    share = worst.sm_clock_permille / 1000
    return share if share <= CLOCK_UNDER_PEERS else None


def _share_throttled(rank: Rank) -> dict[str, float]:
    """By reason, percent of the samples of the window; of all samples where none lies in it."""
    return {
        series.name.removeprefix(_THROTTLED): fmean(values)
        for series in rank.device_series
        if series.name.startswith(_THROTTLED) and (values := _in_window(rank, series))
    }


def _in_window(rank: Rank, series: Series) -> list[float]:
    known = [(at, value) for at, value in zip(series.at_unix_ns, series.values, strict=True) if value is not None]
    end_ns = rank.start_ns + rank.time_ns.span
    inside = [value for at, value in known if rank.start_ns <= at <= end_ns] if rank.time_origin == "unix" else []
    return inside or [value for _, value in known]
