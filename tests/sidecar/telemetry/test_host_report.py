"""Rates of links between two readings."""

import pytest
from fleetprof_sidecar.samples.links import NetworkLink
from fleetprof_sidecar.telemetry.host_report import Links, measure_links

S = 10**9


@pytest.mark.parametrize(
    ("before", "now", "rates"),
    [
        ({"a": NetworkLink(0, 0, 1000)}, {"a": NetworkLink(100, 500, 1000)}, (50, 250, 250)),
        (
            {"a": NetworkLink(0, 0, 1000), "b": NetworkLink(0, 0, 100)},
            {"a": NetworkLink(100, 0, 1000), "b": NetworkLink(0, 180, 100)},
            (50, 90, 900),
        ),
        ({"a": NetworkLink(0, 0)}, {"a": NetworkLink(100, 0)}, (50, 0, None)),
        ({"a": NetworkLink(500, 0, 10)}, {"a": NetworkLink(0, 0, 10)}, (0, 0, None)),
        ({}, {"a": NetworkLink(100, 0, 10)}, (0, 0, None)),
        (None, {"a": NetworkLink(100, 0, 10)}, (None, None, None)),
        ({"a": NetworkLink(0, 0, 10)}, None, (None, None, None)),
    ],
    ids=["one", "the busiest counts", "no speed", "made anew", "has just come", "first reading", "unreadable now"],
)
def test_links_between_two_readings(before: Links | None, now: Links | None, rates: tuple[int | None, ...]) -> None:
    assert measure_links(before, now, 2 * S) == rates
