"""Energy per iteration is what was planted, by counter and by power; what samples do not cover is not made up."""

import gzip
import itertools
import json

import numpy as np
import pytest
from fleetprof_analyzer.capture.store import analyze_capture
from fleetprof_analyzer.rank.measures.energy import LONGEST_GAP_NS, Energies, measure_energy
from fleetprof_api import keys
from fleetprof_api.samples import DeviceColumns
from harness.memory_store import MemoryStore
from harness.traces.planted.traces import plant_capture
from hypothesis import given
from hypothesis import strategies as st

MS = 1_000_000
START = 1_795_000_000_000_000_000


def samples(
    *, power: list[int | None] | None = None, energy: list[int | None] | None = None, every_ms: int = 10
) -> DeviceColumns:
    count = len(power or energy or [])
    at = [START + number * every_ms * MS for number in range(count)]
    return DeviceColumns(at_unix_ns=at, power_milliwatts=power or [], energy_millijoules=energy or [])


def energy_of(device: DeviceColumns, *iterations_ms: tuple[float, float]) -> Energies:
    bounds = np.array([[START + round(at * MS) for at in iteration] for iteration in iterations_ms], np.int64)
    return measure_energy(device, bounds[:, 0], bounds[:, 1])


@pytest.mark.parametrize(
    ("power", "iteration_ms", "millijoules"),
    [
        ([400_000] * 5, (0, 40), 16_000),  # 400 W for 40 ms
        ([400_000] * 5, (5, 25), 8_000),
        ([0, 100_000], (0, 10), 500),  # a ramp: half of it
        ([0, 100_000], (0, 5), 250),  # a piece counts in proportion to its part
        ([100_000, 300_000, 100_000], (0, 20), 4_000),
        ([400_000, None, 400_000], (0, 20), 8_000),  # one that is missing: its neighbours stand for it
        ([400_000, 400_000], (0, 11), None),  # ends after the last sample
        ([400_000, 400_000], (-1, 5), None),  # begins before the first
        ([400_000], (0, 0), None),
        ([None, None], (0, 10), None),
    ],
)
def test_power_is_integrated_by_the_trapezoid_rule(
    power: list[int | None], iteration_ms: tuple[float, float], millijoules: int | None
) -> None:
    found = energy_of(samples(power=power), iteration_ms)
    assert found == Energies([millijoules], "none" if millijoules is None else "power")


@pytest.mark.parametrize(
    ("counter", "iteration_ms", "millijoules"),
    [
        ([0, 7000, 11_000, 15_000, 19_000], (10, 40), 12_000),
        ([0, 7000, 11_000, 15_000, 19_000], (15, 35), 8_000),
        # Renewed every 20 ms, read every 10 ms: what stands still tells no time.
        ([50, 90, 90, 8090, 8090, 16_090], (10, 50), 16_000),
        ([50, 90, 90, 8090, 8090, 16_090], (25, 35), 4_000),
        ([50, 90, 90, 8090, 8090], (25, 40), None),  # not renewed any more
        ([90, 8090], (0, 10), None),  # nothing tells since when the first reading stood
        ([0, 7000, 11_000, 40, 4040, 8040], (40, 50), 4_000),  # after the driver was loaded anew
        ([0, 7000, 11_000, 40, 4040, 8040], (10, 50), None),  # over it
        ([0, 7000, None, 15_000], (10, 30), 8_000),
        ([2**70, 7000, 11_000, 15_000, -5], (20, 30), 4_000),  # what cannot be is not there
    ],
)
def test_the_counter_is_taken_by_its_differences(
    counter: list[int | None], iteration_ms: tuple[float, float], millijoules: int | None
) -> None:
    found = energy_of(samples(energy=counter), iteration_ms)
    assert found == Energies([millijoules], "none" if millijoules is None else "counter")


@pytest.mark.parametrize(("gap_ns", "known"), [(LONGEST_GAP_NS, True), (LONGEST_GAP_NS + 1, False)])
def test_nothing_is_told_over_a_gap(gap_ns: int, known: bool) -> None:
    device = DeviceColumns(at_unix_ns=[0, gap_ns, gap_ns + MS], power_milliwatts=[1000] * 3)
    found = measure_energy(device, np.array([10, gap_ns]), np.array([20, gap_ns + MS]))
    assert [value is not None for value in found.millijoules] == [known, True]


def test_the_counter_goes_before_power_and_power_where_it_covers_more() -> None:
    both = samples(power=[1_000_000] * 6, energy=[0, 4000, 8000, 12_000, 16_000, 20_000])
    assert energy_of(both, (10, 20), (20, 30)) == Energies([4000, 4000], "counter")
    assert energy_of(both, (0, 10), (10, 20)) == Energies([10_000, 10_000], "power")


def test_the_order_of_samples_does_not_matter_and_a_time_is_read_once() -> None:
    device = DeviceColumns(at_unix_ns=[20, 10, 0, 10], power_milliwatts=[10**9, 10**9, 10**9, 0])
    assert measure_energy(device, np.array([0]), np.array([20])).millijoules == [20]


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 700_000)), min_size=2, max_size=40),
    st.lists(st.integers(-50, 450), min_size=2, max_size=12, unique=True),
)
def test_the_parts_of_a_time_add_up_to_it(power: list[int | None], edges_ms: list[int]) -> None:
    edges = sorted(edges_ms)
    device = samples(power=power)
    parts = energy_of(device, *itertools.pairwise(edges)).millijoules
    (whole,) = energy_of(device, (edges[0], edges[-1])).millijoules
    assert (whole is None) == (None in parts)
    if whole is not None:
        assert whole == pytest.approx(sum(part or 0 for part in parts), abs=len(parts))


def test_a_report_has_the_energy_of_every_iteration_and_rank_and_of_the_job() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=2, iterations=3)
    for rank, watts in ((0, 500), (1, 300)):
        key = keys.samples_key("default", planted.uid, rank)
        document = json.loads(gzip.decompress(store.get(key)))
        document["samples_per_iteration"] = 16
        document["device"]["power_milliwatts"] = [watts * 1000] * len(document["device"]["at_unix_ns"])
        store.put(key, gzip.compress(json.dumps(document).encode()))
    report = analyze_capture(store, "default", planted.uid)
    expected = [
        [round(watts * length / MS) for length in planted.traces[rank].durations_ns]
        for rank, watts in ((0, 500), (1, 300))
    ]
    assert [[i.energy_mj for i in rank.iterations] for rank in report.ranks] == expected
    assert [rank.energy_from for rank in report.ranks] == ["power", "power"]
    assert report.energy is not None
    assert report.energy.energy_mj == [first + second for first, second in zip(*expected, strict=True)]
    assert (report.energy.ranks, report.energy.iterations) == (2, [412, 413, 414])
    # A rank's mean iteration, its part of each of the 16 samples, and the parts of both together.
    assert [rank.iteration_energy_mj for rank in report.ranks] == [sum(found) // 3 for found in expected]
    parts = [1000 * sum(found) / 3 / 16 for found in expected]
    assert [rank.sample_energy_uj for rank in report.ranks] == [round(part) for part in parts]
    assert report.energy.samples_per_iteration == 16
    assert sum(parts) == pytest.approx(1000 * report.energy.mean_mj / 16, abs=1000 / 16)


def test_where_one_rank_has_no_samples_there_is_no_sum() -> None:
    store = MemoryStore()
    planted = plant_capture(store, ranks=2, iterations=3)
    store.delete([keys.samples_key("default", planted.uid, 1)])
    report = analyze_capture(store, "default", planted.uid)
    assert [i.energy_mj is None for rank in report.ranks for i in rank.iterations] == [False] * 3 + [True] * 3
    assert [rank.iteration_energy_mj is None for rank in report.ranks] == [False, True]
    assert [rank.sample_energy_uj for rank in report.ranks] == [None, None], "no label says how many samples"
    assert report.energy is None
