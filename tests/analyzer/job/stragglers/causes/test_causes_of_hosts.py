"""The causes of a late CPU-only rank: a core that others use, more work, other operators, a pause in a rhythm."""

from dataclasses import replace

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.causes.explanation import Explained, explain
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.excess import find_candidates
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.rank.communication.core_waits import CoreWaits
from fleetprof_analyzer.rank.communication.operator_use import OperatorUse

RANKS, ITERATIONS, LATE_RANK = 4, 9, 2
MS = 1_000_000


def tabulate(*, late: str = "xxxxxxxxx", **excess_ms: int) -> OwnTime:
    """Every rank's operators take 10 ms and other Python 2 ms; rank 2 has so much more in its late iterations."""
    parts = {name: np.zeros((RANKS, ITERATIONS), np.int64) for name in ("busy", "data", "collection", "host")}
    parts["busy"] += 10 * MS
    parts["host"] += 2 * MS
    chosen = np.array([one == "x" for one in late])
    for name, value in excess_ms.items():
        parts[name][LATE_RANK, chosen] += value * MS
    nothing, unsaid = np.zeros((RANKS, ITERATIONS), np.int64), np.full((RANKS, ITERATIONS), np.nan)
    pause = nothing.copy()
    pause[LATE_RANK, chosen] = excess_ms.get("host", 0) * MS
    hosts = dict.fromkeys(("data", "collection", "host"), nothing)
    return OwnTime(
        np.zeros(RANKS, np.int64), np.asarray(sum(parts.values())), parts, nothing, hosts, pause, pause, unsaid, unsaid
    )


def on_cores(
    table: OwnTime, *, ran_ms: tuple[int, int], waited_ms: tuple[int, int], cores: int = 1, threads: int = 1
) -> OwnTime:
    """The same with samples of the training threads: (rank 2, its peers)."""
    ran, waited = (
        np.full((RANKS, ITERATIONS), ran_ms[1] * MS, float),
        np.full((RANKS, ITERATIONS), waited_ms[1] * MS, float),
    )
    ran[LATE_RANK], waited[LATE_RANK] = ran_ms[0] * MS, waited_ms[0] * MS
    uses = [CoreWaits(usable_cores=2, torch_threads=1)] * RANKS
    uses[LATE_RANK] = CoreWaits(usable_cores=cores, torch_threads=threads)
    return replace(table, ran_ns=ran, waited_ns=waited, involuntary_switches=waited / MS, cores=uses)


def with_operators(table: OwnTime, *, batch: float = 1.0, step: float = 1.0, items: int = 0) -> OwnTime:
    """The same with operators of the batch of 100 µs and of the parameters of 10 µs, on rank 2 so many times that."""

    def uses(batch: float, step: float, items: int) -> list[OperatorUse]:
        found = [OperatorUse(f"aten::{n}", False, 900, round(90 * MS * batch), round(0.1 * MS * batch)) for n in "abcd"]
        found.append(OperatorUse("aten::lerp_", True, 900, round(9 * MS * step), round(0.01 * MS * step)))
        return [*found, *([OperatorUse("aten::item", False, items, items * MS // 10, MS // 10)] if items else [])]

    return replace(
        table, operators=[uses(batch, step, items) if rank == LATE_RANK else uses(1, 1, 0) for rank in range(RANKS)]
    )


def explained(table: OwnTime, late: str = "xxxxxxxxx", *, on_gpu: bool = False) -> Explained:
    chosen = np.array([one == "x" for one in late])
    pattern = "persistent" if chosen.all() else "intermittent"
    return explain(
        table, Candidate(LATE_RANK, LatePattern(pattern), 1.0, chosen), on_gpu=on_gpu, indices=list(range(ITERATIONS))
    )


SLOW = tabulate(busy=25, host=5)


@pytest.mark.parametrize(("table", "cause"), [
    (SLOW,                                                              "host"),
    (on_cores(SLOW, ran_ms=(12, 12), waited_ms=(31, 1)),                "cpu_contention"),
    (on_cores(SLOW, ran_ms=(42, 12), waited_ms=(1, 1)),                 "host"),
    (on_cores(SLOW, ran_ms=(22, 12), waited_ms=(40, 10)),               "host"),  # and longer at each turn
    (on_cores(SLOW, ran_ms=(13, 12), waited_ms=(40, 10)),               "cpu_contention"),
    # On a machine that is full all wait as long as they run: who runs longer waits longer.
    (on_cores(SLOW, ran_ms=(27, 12), waited_ms=(27, 12)),               "host"),
    (with_operators(SLOW, batch=3.5),                                   "unequal_work"),
    (with_operators(SLOW, batch=3.5, step=3.5),                         "host"),
    (on_cores(with_operators(SLOW, batch=3.5), ran_ms=(42, 12), waited_ms=(1, 1)), "unequal_work"),
    (with_operators(SLOW, items=2000),                                  "host"),
    (with_operators(tabulate(data=30), batch=1.3),                      "data_loading"),
    (on_cores(tabulate(data=30, busy=35, host=5), ran_ms=(47, 12), waited_ms=(31, 30)), "host"),
    (on_cores(tabulate(data=30, busy=35, host=5), ran_ms=(13, 12), waited_ms=(70, 1)),  "cpu_contention"),
    # A hook sleeps inside an operator: neither on a core nor waiting for one, and no loader's fault.
    (on_cores(tabulate(data=1, busy=40), ran_ms=(13, 12), waited_ms=(8, 20)),           "host"),
])  # fmt: skip
def test_the_cause(table: OwnTime, cause: str) -> None:
    assert explained(table).cause == cause


@pytest.mark.parametrize(("on_gpu", "cause"), [(False, "unequal_work"), (True, "host")])
def test_beside_a_device_operators_that_take_longer_are_no_more_work(on_gpu: bool, cause: str) -> None:
    """They launch it and wait for it."""
    assert explained(with_operators(tabulate(host=30), batch=3.5), on_gpu=on_gpu).cause == cause


@pytest.mark.parametrize(("cores", "waited_ms", "cause"), [
    (1, 31, "cpu_contention"),
    (2, 31, "host"),  # it may use as many as the others
    (1, 11, "host"),  # of 30 ms on average
])  # fmt: skip
def test_where_a_quota_ends_some_iterations_the_waits_of_all_tell(cores: int, waited_ms: int, cause: str) -> None:
    """Nobody looks while the process is stopped: what it waited then is spread over the time between two looks."""
    late = "..x...x.x"
    table = on_cores(tabulate(late=late, busy=90), ran_ms=(12, 12), waited_ms=(waited_ms, 1), cores=cores)
    assert explained(table, late).cause == cause


def test_contention_comes_with_its_figures() -> None:
    found = explained(on_cores(SLOW, ran_ms=(12, 12), waited_ms=(31, 1), threads=4))
    shown = {one.measure: (one.value, one.usual, one.unit) for one in found.evidence}
    assert shown["ready to run and waiting for a core"] == (31 * MS, MS, "ns per iteration")
    assert shown["taken off its core"] == (31, 1, "per iteration")
    assert shown["cores that it may use"] == (1, 2, "cores")
    assert shown["threads of PyTorch"] == (4, 1, "threads")


def test_operators_that_exceed_are_named() -> None:
    found = explained(with_operators(SLOW, items=1800))
    assert ("operator aten::item", 200, 0, "calls per iteration") in [
        (one.measure, one.value, one.usual, one.unit) for one in found.evidence
    ]


@pytest.mark.parametrize(("late", "cause", "every"), [
    ("..x..x..x", "host", 3),
    ("..x...x.x", "garbage_collection", 0),  # silences that come and go, in no rhythm
])  # fmt: skip
def test_what_pauses_in_a_rhythm_is_the_program_and_not_the_collector(late: str, cause: str, every: int) -> None:
    found = explained(tabulate(late=late, host=80), late)
    assert (found.cause, found.every) == (cause, every)


def test_a_silence_is_not_the_collectors_where_the_thread_was_sampled() -> None:
    late = "..x...x.x"
    sampled = on_cores(tabulate(late=late, host=80), ran_ms=(90, 12), waited_ms=(1, 1))
    assert explained(sampled, late).cause == "host"
    assert explained(on_cores(tabulate(late=late, collection=80), ran_ms=(90, 12), waited_ms=(1, 1)), late).cause == (
        "garbage_collection"
    )


def test_a_silence_is_not_the_collectors_where_the_host_says_nothing_but_its_launches() -> None:
    """A batch that is loaded is as silent there."""
    late = "..x...x.x"
    assert explained(replace(tabulate(late=late, host=80), operators=[[]] * RANKS), late).cause == "host"


def test_runs_of_the_collector_in_a_rhythm_are_its_own() -> None:
    assert explained(tabulate(late="..x..x..x", collection=80), "..x..x..x").cause == "garbage_collection"


def test_one_long_pause_of_a_full_machine_does_not_outweigh_a_slow_loader() -> None:
    table = tabulate(data=30)
    pause = np.zeros((RANKS, ITERATIONS), np.int64)
    pause[LATE_RANK, 4] = 900 * MS
    parts = table.parts_ns | {"host": table.parts_ns["host"] + pause}
    assert explained(replace(table, parts_ns=parts, own_ns=table.own_ns + pause)).cause == "data_loading"


@pytest.mark.parametrize(("least_ms", "iterations", "found"), [
    (30, 5, [LATE_RANK]),
    (30, 4, []),  # of four ranks one is the last four times in a row by chance
    (9, 5, []),  # others reach 10
])  # fmt: skip
def test_a_loader_that_takes_longer_than_any_other_ever_does_is_late(
    least_ms: int, iterations: int, found: list[int]
) -> None:
    """Few iterations, drifting: their deviations tell nothing, the order of all of them does."""
    data = np.array([[0, 4, 10, 2, 6], [3, 9, 1, 0, 7], [50, 40, 24, 12, 0], [2, 8, 5, 9, 1]])[:, :iterations] * MS
    data[LATE_RANK] += least_ms * MS
    own = (
        data
        + np.array([[60, 20, 90, 40, 15], [20, 70, 30, 80, 60], [30, 90, 10, 60, 80], [80, 20, 50, 20, 40]])[
            :, :iterations
        ]
        * MS
    )
    nothing, unsaid = np.zeros_like(own), np.full(own.shape, np.nan)
    parts = {"busy": own - data, "data": data, "collection": nothing, "host": nothing}
    table = OwnTime(np.zeros(RANKS, np.int64), own, parts, nothing, parts, nothing, nothing, unsaid, unsaid)
    assert [candidate.rank for candidate in find_candidates(table)] == found
