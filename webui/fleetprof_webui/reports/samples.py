"""Device and host samples of a report over one time axis.

Guarantees: pure; of a bounded number of ranks and hosts at a time; times are offsets, because JavaScript cannot hold
Unix nanoseconds.
"""

from collections.abc import Collection
from typing import Final

from fleetprof_api.report.report import Report, Series

from fleetprof_webui.models.model import unix_ns
from fleetprof_webui.models.tables import SamplePage, SampleSeries

_MOST: Final = 8


def find_samples(report: Report, wanted: Collection[int]) -> SamplePage:
    """The samples of these ranks, else of the first that have any, late ones first; and of their hosts."""
    late = {one.rank for one in report.stragglers.ranks} if report.stragglers is not None else set()
    sampled = sorted((rank for rank in report.ranks if rank.device_series), key=lambda rank: rank.rank not in late)
    chosen = [rank for rank in sampled if rank.rank in wanted] if wanted else sampled[:_MOST]
    shown: set[int | None] = set(wanted) or {rank.rank for rank in chosen}
    of_hosts = [host for host in report.hosts if host.series and (not shown or set(host.ranks) & shown)]
    series = [("device", rank.host_name, [rank.rank], one) for rank in chosen for one in rank.device_series]
    series += [("host", host.host_name, list(host.ranks), one) for host in of_hosts[:_MOST] for one in host.series]
    origin = min((at for _, _, _, one in series for at in one.at_unix_ns), default=0)
    return SamplePage(
        origin_unix_ns=unix_ns(origin),
        series=[_series(of, host, ranks, one, origin) for of, host, ranks, one in series],
        ranks_with_samples=len(sampled),
        late=sorted(late),
    )


def _series(of: str, host_name: str, ranks: list[int | None], one: Series, origin: int) -> SampleSeries:
    return SampleSeries(
        of=of,
        host_name=host_name,
        ranks=ranks,
        name=one.name,
        unit=one.unit,
        at_ns=[at - origin for at in one.at_unix_ns],
        values=one.values,
    )
