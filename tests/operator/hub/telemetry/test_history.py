"""The last day of telemetry: what each look leaves, and what a store keeps of it."""

import gzip
from typing import Any

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.telemetry.figures import Aggregate, WorkloadFigures
from fleetprof_api.telemetry.history import (
    POINTS,
    STEP_NS,
    InvalidHistory,
    NamespaceDay,
    WorkloadDay,
    read_day,
    write_day,
)
from fleetprof_operator.hub.storage.store_calls import StoreCalls
from fleetprof_operator.hub.telemetry.board import FORGOTTEN_NS, TelemetryBoard
from fleetprof_operator.hub.telemetry.exposition import MOST_WORKLOADS
from fleetprof_operator.hub.telemetry.history import TelemetryHistory
from fleetprof_operator.hub.telemetry.stored_history import StoredHistory
from fleetprof_store.base import StoreError
from harness.hub.telemetry_reports import rank, record, report
from harness.memory_store import MemoryStore

T = 6_000_000 * STEP_NS  # the beginning of a step
BUSY = "gpu_busy_ratio"


def job(name: str = "llama", namespace: str = "team", **means: float) -> WorkloadFigures:
    figures = {name: Aggregate(mean=mean, min=0, max=0, sum=0, count=1) for name, mean in means.items()}
    return WorkloadFigures(namespace, "Job", name, 1, 1, 1, 0, 0, figures)


def points(history: TelemetryHistory) -> dict[str, list[float | None]]:
    [day] = history.write("team").workloads
    return day.values


def test_a_point_is_the_mean_of_the_looks_of_its_step_and_a_pause_is_none() -> None:
    history = TelemetryHistory()
    history.take([job(gpu_busy_ratio=0.2, iteration_seconds=0.123456)], T)
    history.take([job(gpu_busy_ratio=0.4)], T + STEP_NS - 1)
    history.take([job(gpu_busy_ratio=0.9)], T + 3 * STEP_NS)
    assert points(history) == {BUSY: [0.3, None, None, 0.9], "iteration_seconds": [0.1235, None, None, None]}
    assert history.write("team").end_unix_ns == T + 4 * STEP_NS
    assert history.changed == set()


def test_no_more_than_a_day_is_kept() -> None:
    history = TelemetryHistory()
    for step in range(POINTS + 5):
        history.take([job(gpu_busy_ratio=step)], T + step * STEP_NS)
    assert points(history)[BUSY] == [float(step) for step in range(5, POINTS + 5)]
    history.take([], T + (2 * POINTS + 5) * STEP_NS)
    assert history.write("team").workloads == []


def test_what_is_no_measure_of_the_history_and_workloads_beyond_the_bound_are_left_out() -> None:
    history = TelemetryHistory()
    history.take([job(str(n), gpu_busy_ratio=1, gpu_temperature_celsius=60) for n in range(MOST_WORKLOADS + 1)], T)
    days = history.write("team").workloads
    assert [day.name for day in days] == [str(n) for n in range(MOST_WORKLOADS)]
    assert set(days[0].values) == {BUSY}


@pytest.mark.parametrize(
    ("later", "wanted"),
    [
        (0, [0.1, None, 0.4]),  # the step goes on, the look before counts as one
        (2, [0.1, None, 0.3, None, 0.5]),
        (POINTS, [0.5]),  # all of it is older than a day
        (-1, [0.5]),  # of a clock that went wrong
    ],
)
def test_a_new_hub_goes_on_from_what_is_stored(later: int, wanted: list[float | None]) -> None:
    stored = NamespaceDay(T + STEP_NS, [WorkloadDay("Job", "llama", {BUSY: [0.1, None, 0.3], "of-tomorrow": [1.0]})])
    history = TelemetryHistory()
    history.restore("team", read_day(write_day(stored)), T + later * STEP_NS)
    history.take([job(gpu_busy_ratio=0.5)], T + later * STEP_NS)
    assert points(history) == {BUSY: wanted}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"no gzip", "cannot be read"),
        (gzip.compress(b"{}")[:-9], "cut off"),
        (gzip.compress(b"[1]"), "cannot be read"),
        (gzip.compress(b'{"end_unix_ns": 1, "workloads": [], "version": 2}'), "version 2"),
        (gzip.compress(msgspec.json.encode({"end_unix_ns": 1, "workloads": [
            {"kind": "Job", "name": "x", "values": {BUSY: [1] * (POINTS + 1)}}]})), "more than 288 points"),
        (gzip.compress(b" " * ((64 << 20) + 1)), "larger than"),
    ],
    # gzip writes the time into its head: as an id it would differ between the workers of a run.
    ids=["no gzip", "cut off", "a list", "of another version", "too many points", "a bomb"],
)  # fmt: skip
def test_what_is_no_history_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(InvalidHistory, match=why):
        read_day(data)


class Scene:
    """A hub's telemetry over a store that may fail."""

    def __init__(self, store: MemoryStore) -> None:
        self.now = T
        self.board = TelemetryBoard()
        self.calls = StoreCalls(store)
        self.history = StoredHistory(self.calls, self.board, lambda: self.now)

    async def report(self, permille: int) -> None:
        self.board.take(record(0, [0]), report(rank(0, gpu_busy_permille=permille)), self.now)
        await self.history.look()


class UnpluggedStore(MemoryStore):
    """Fails while `is_out`."""

    is_out = False

    def put(self, key: str, data: bytes) -> None:
        self._check()
        super().put(key, data)

    def get(self, key: str) -> bytes:
        self._check()
        return super().get(key)

    def _check(self) -> None:
        if self.is_out:
            raise StoreError("unplugged", retryable=True)


def read(store: MemoryStore) -> Any:
    [day] = read_day(store.get(keys.telemetry_day_key("team"))).workloads
    return day.values[BUSY]


async def test_the_day_outlives_its_hub() -> None:
    store = MemoryStore()
    first = Scene(store)
    await first.report(250)
    await first.history.close()
    second = Scene(store)
    second.now += STEP_NS
    await second.report(750)
    await second.history.write()
    assert read(store) == [0.25, 0.75]
    assert second.history.writes == {"stored": 1, "failed": 0}
    assert second.history.written_bytes == {"team": len(store.get(keys.telemetry_day_key("team")))}
    await second.history.write()
    assert second.history.writes["stored"] == 1  # nothing is new


async def test_a_store_that_is_down_loses_no_points_and_nothing_that_it_holds() -> None:
    store = UnpluggedStore()
    first = Scene(store)
    await first.report(250)
    store.is_out = True
    await first.history.write()
    assert first.history.writes == {"stored": 0, "failed": 1}
    store.is_out = False
    await first.history.write()
    assert read(store) == [0.25]

    store.is_out = True
    second = Scene(store)
    second.now += STEP_NS
    await second.report(500)  # not taken: what is stored is not known yet
    store.is_out = False
    await second.report(750)
    await second.history.write()
    assert read(store) == [0.25, 0.75]


async def test_a_history_that_cannot_be_read_begins_anew_and_silent_workloads_get_no_points() -> None:
    store = MemoryStore()
    store.put(keys.telemetry_day_key("team"), b"rubbish")
    scene = Scene(store)
    await scene.report(250)
    scene.now += FORGOTTEN_NS + STEP_NS
    await scene.history.look()
    await scene.history.write()
    assert read(store)[0] == 0.25
    assert all(point is None for point in read(store)[1:])
