"""From what a rank did itself beside its peers to the cause: one table in, one word out."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.causes.explanation import explain
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime

RANKS, ITERATIONS, LATE_RANK = 4, 6, 2
LATE = np.array([False, True, False, True, True, False])
US = 1000


def tabulate(
    *, quiet: bool = True, always: bool = False, hosts_us: dict[str, int] | None = None, **excess_us: int
) -> OwnTime:
    """Every rank works 10 ms and spends 2 ms beside it; rank 2 has so much more in its late iterations, or `always`.

    `hosts_us`: what its host itself took longer for, where that was recorded.
    """
    late = np.ones(ITERATIONS, bool) if always else LATE
    usual = {"busy": 10_000, "data": 0, "collection": 0, "host": 2_000}
    parts = {name: np.full((RANKS, ITERATIONS), value * US, np.int64) for name, value in usual.items()}
    for name, value in excess_us.items():
        parts[name][LATE_RANK, late] += value * US
    pause = np.zeros((RANKS, ITERATIONS), np.int64)
    pause[LATE_RANK, late] = excess_us.get("host", 0) * US
    unsaid = np.full((RANKS, ITERATIONS), np.nan)
    role = np.zeros(RANKS, np.int64)
    own = np.asarray(sum(parts.values()))
    host = {name: np.zeros((RANKS, ITERATIONS), np.int64) for name in ("data", "collection", "host")}
    for name, value in (hosts_us or {}).items():
        host[name][LATE_RANK, late] = value * US
    quiet_ns = pause if quiet else pause // 2
    return OwnTime(role, own, parts, np.asarray(sum(host.values())), host, pause, quiet_ns, unsaid, unsaid)


@pytest.mark.parametrize(("table", "on_gpu", "pattern", "cause"), [
    (tabulate(host=30_000),                     False, "intermittent", "garbage_collection"),
    (tabulate(host=30_000, busy=2_000),         False, "intermittent", "garbage_collection"),
    # A core that others use: operators take longer too (measured: 16 ms of 53 ms, with 32 ms of silence).
    (tabulate(host=32_000, busy=16_000),        False, "intermittent", "host"),
    (tabulate(host=30_000, busy=16_000),        True,  "intermittent", "garbage_collection"),  # the device's work
    (tabulate(host=30_000, always=True),        False, "persistent",   "host"),
    (tabulate(host=30_000),                     False, "persistent",   "garbage_collection"),  # three are without
    (tabulate(host=30_000, quiet=False),        False, "intermittent", "host"),
    (tabulate(collection=20_000, busy=10_000),  False, "intermittent", "garbage_collection"),  # its own frames
    (tabulate(data=30_000, host=5_000),         False, "intermittent", "data_loading"),
    # The gaps are those of a loader that its host usually hides: what is longer is launching.
    (tabulate(data=20_000, hosts_us={"host": 50_000}),               True, "persistent", "host"),
    (tabulate(host=20_000, hosts_us={"data": 19_000, "host": 2000}), True, "persistent", "data_loading"),
    (tabulate(busy=30_000),                     False, "persistent",   "host"),
    (tabulate(busy=30_000, always=True),        True,  "persistent",   "slow_gpu"),
    (tabulate(busy=30_000),                     True,  "persistent",   "throttling"),  # three are as fast as usual
])  # fmt: skip
def test_the_cause(table: OwnTime, on_gpu: bool, pattern: str, cause: str) -> None:
    late = LATE if pattern == "intermittent" else np.ones(ITERATIONS, bool)
    found = explain(
        table, Candidate(LATE_RANK, LatePattern(pattern), 1.0, late), on_gpu=on_gpu, indices=list(range(ITERATIONS))
    )
    assert found.cause == cause


@pytest.mark.parametrize(("pattern", "per"), [("intermittent", "late iteration"), ("persistent", "iteration")])
def test_a_mean_over_the_late_iterations_says_so(pattern: str, per: str) -> None:
    late = LATE if pattern == "intermittent" else np.ones(ITERATIONS, bool)
    table = tabulate(collection=20_000)
    found = explain(
        table, Candidate(LATE_RANK, LatePattern(pattern), 1.0, late), on_gpu=False, indices=list(range(ITERATIONS))
    )
    times = [one for one in found.evidence if one.unit.startswith("ns ")]
    assert {one.unit for one in times} == {f"ns per {per}"}
    assert {round(one.value) for one in times} == {20_000 * US if pattern == "intermittent" else 10_000 * US}
