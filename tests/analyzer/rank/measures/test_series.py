"""Samples become short series: means of time buckets, counters as rates, nothing for what was never measured."""

from fleetprof_analyzer.rank.measures.series import POINTS, device_series, host_series
from fleetprof_api.report.report import Series
from fleetprof_api.samples import DeviceColumns, HostColumns
from hypothesis import given
from hypothesis import strategies as st

S = 10**9


def test_values_carry_their_unit() -> None:
    columns = DeviceColumns(at_unix_ns=[S, 2 * S], utilization_permille=[905, 100], power_milliwatts=[420_500, None])
    assert device_series(columns) == [
        Series(name="utilization", unit="%", at_unix_ns=[S, 2 * S], values=[90.5, 10.0]),
        Series(name="power", unit="W", at_unix_ns=[S], values=[420.5]),
    ]


def test_reasons_of_throttling_become_shares_of_the_time() -> None:
    idle, capped, hot = 0x1, 0x4, 0x40
    reasons = [idle, capped, capped | hot, None]
    assert device_series(DeviceColumns(at_unix_ns=[S, 2 * S, 3 * S, 4 * S], throttle_reasons=reasons)) == [
        Series(name="throttled_by_power", unit="%", at_unix_ns=[S, 2 * S, 3 * S], values=[0.0, 100.0, 100.0]),
        Series(name="throttled_by_thermal", unit="%", at_unix_ns=[S, 2 * S, 3 * S], values=[0.0, 0.0, 100.0]),
    ]
    assert device_series(DeviceColumns(at_unix_ns=[S], throttle_reasons=[idle])) == []


def test_what_was_never_measured_is_no_series() -> None:
    assert device_series(DeviceColumns(at_unix_ns=[S], sm_active_permille=[None])) == []
    assert device_series(DeviceColumns()) == []
    assert host_series(HostColumns()) == []


def test_byte_counters_become_rates_and_a_new_count_gives_none() -> None:
    columns = HostColumns(at_unix_ns=[0, S, 3 * S, 4 * S, 5 * S], network_received_bytes=[1000, 3000, 4000, 10, 30])
    (series,) = host_series(columns)
    assert (series.name, series.unit) == ("network_received", "bytes/s")
    assert list(zip(series.at_unix_ns, series.values, strict=True)) == [(S, 2000), (3 * S, 500), (5 * S, 20)]


def test_long_samples_are_thinned_to_means() -> None:
    count = POINTS * 10
    columns = HostColumns(
        at_unix_ns=[n * S for n in range(count)], cpu_busy_permille=[10 * (n % 10) for n in range(count)]
    )
    (series,) = host_series(columns)
    assert len(series.values) == POINTS
    assert set(series.values) == {4.5}


@given(st.lists(st.tuples(st.integers(0, 10**12), st.one_of(st.none(), st.integers(0, 1000))), max_size=300))
def test_any_samples_give_at_most_the_points_within_their_range(points: list[tuple[int, int | None]]) -> None:
    columns = HostColumns(at_unix_ns=[at for at, _ in points], cpu_busy_permille=[value for _, value in points])
    known = [value / 10 for _, value in points if value is not None]
    for series in host_series(columns):
        assert len(series.values) == len(series.at_unix_ns) <= POINTS
        assert series.at_unix_ns == sorted(series.at_unix_ns)
        assert all(value is not None and min(known) <= value <= max(known) for value in series.values)
