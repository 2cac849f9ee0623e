"""The operator on itself: in /readyz, in its Lease, and in metrics."""

import asyncio
import logging
from typing import Any

import pytest
from fleetprof_operator import health as module
from fleetprof_operator.health import STALLED_QUEUE_S, Health
from fleetprof_operator.hub.storage import store_probe
from fleetprof_operator.hub.storage.store_calls import StoreCalls
from fleetprof_operator.hub.storage.store_probe import StoreProbe
from fleetprof_store.base import Store, StoreError
from harness.memory_store import MemoryStore


class ProbedStore(MemoryStore):
    """Refuses, hangs, or gives back something else."""

    def __init__(self) -> None:
        super().__init__()
        self.refusal = ""
        self.loses = False

    def put(self, key: str, data: bytes) -> None:
        if self.refusal:
            raise StoreError(self.refusal, retryable=False)
        super().put(key, b"something" if self.loses else data)


def probe(store: Store) -> StoreProbe:
    return StoreProbe(StoreCalls(store), "fleetprof-system")


async def test_a_store_is_tried_by_writing_and_reading_and_an_outage_is_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    store = ProbedStore()
    tried = probe(store)
    troubles = []
    for refusal, loses in (("", False), ("no bucket", False), ("no bucket", False), ("", True), ("", False)):
        store.refusal, store.loses = refusal, loses
        troubles.append(await tried.look())
    changed = "it gives back something else than what was written"
    assert troubles == ["", "no bucket", "no bucket", changed, ""]
    assert [record.message for record in caplog.records] == [
        "the object store cannot be used: no bucket",
        "the object store can be used again",
    ]


async def test_a_store_that_hangs_is_no_longer_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_probe, "PATIENCE_S", 0.01)
    released = asyncio.Event()
    tried = probe(MemoryStore())
    monkeypatch.setattr(tried._calls, "run", lambda call: released.wait())
    assert await tried.look() == "no answer within 0 s"


@pytest.mark.parametrize(
    ("lag_s", "refusal", "queue_age_s", "says", "unready"),
    [
        (0.0, "", 0.0, "", False),
        (6.0, "", 0.0, "its event loop stood still for 6 s", True),
        (0.0, "no bucket", 0.0, "the object store cannot be used: no bucket", False),
        (0.0, "", STALLED_QUEUE_S, "a request has no state since 120 s", False),
        (6.0, "no bucket", 200.0, "6 s; the object store cannot be used: no bucket; a request has no state", True),
    ],
)
async def test_what_is_wrong_is_said_and_what_concerns_all_takes_readiness(
    lag_s: float, refusal: str, queue_age_s: float, says: str, unready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = ProbedStore()
    store.refusal = refusal
    tried = probe(store)
    await tried.look()
    health = Health(None, tried, lambda: queue_age_s)
    monkeypatch.setattr(module, "_BEAT_S", -lag_s)  # it wakes so much later than it wants to
    beating = asyncio.create_task(health.run())
    await asyncio.sleep(0.01)
    beating.cancel()
    assert says in health.find_trouble()
    assert bool(health.find_trouble()) == bool(says)
    assert bool(health.find_stall()) == unready


@pytest.mark.s3
@pytest.mark.parametrize(
    ("bucket", "secret_key", "says"),
    [("", "", ""), ("nonesuch", "", "does not exist; create it"), ("", "not-the-key", "SignatureDoesNotMatch")],
    ids=["right", "no bucket", "wrong key"],
)
async def test_a_wrong_bucket_or_key_of_a_real_store_is_told(
    bucket: str, secret_key: str, says: str, s3_server: Any
) -> None:
    store = s3_server.make_store(bucket or s3_server.make_bucket(), secret_key=secret_key)
    trouble = await probe(store).look()
    assert says in trouble
    assert bool(trouble) == bool(says)
