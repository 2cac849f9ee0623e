"""Device and host samples of a report over one time axis.

Guarantees: pure; times are offsets, because JavaScript cannot hold Unix nanoseconds.
"""

from fleetprof_api.report.report import Report, Series
from fleetprof_api.slices.slice import unix_ns
from fleetprof_api.slices.tables import SampleSeries, SampleSlice

from fleetprof_analyzer.slices.chosen_ranks import list_late


def make_samples(report: Report, most: int) -> SampleSlice:
    """The slice: the samples of at most so many ranks, those that the verdict names first; and of their hosts."""
    late = list_late(report)
    sampled = sorted((rank for rank in report.ranks if rank.device_series), key=lambda rank: rank.rank not in late)
    chosen = sampled[:most]
    shown = {rank.rank for rank in chosen}
    of_hosts = [host for host in report.hosts if host.series and (not shown or set(host.ranks) & shown)][:most]
    series = [("device", rank.host_name, [rank.rank], one) for rank in chosen for one in rank.device_series]
    series += [("host", host.host_name, list(host.ranks), one) for host in of_hosts for one in host.series]
    origin = min((at for _, _, _, one in series for at in one.at_unix_ns), default=0)
    return SampleSlice(
        origin_unix_ns=unix_ns(origin),
        series=[_series(of, host, ranks, one, origin) for of, host, ranks, one in series],
        ranks_with_samples=len(sampled),
        late=sorted(rank for rank in late if rank is not None),
        cut=len(sampled) - len(chosen),
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
