"""A store that is away, or refuses us, in every state of a capture."""

import asyncio
from typing import Any

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_operator.hub.capture.environment import AnalysisOrder
from fleetprof_store.base import StoreError


async def test_a_request_is_refused_while_the_store_is_down(ground: Any, kit: Any) -> None:
    await ground.add_sidecar(0)
    ground.store.pull_plug()
    with pytest.raises(StoreError, match="cannot be reached"):
        await ground.hub.submit(kit.make_request(), "team", fail_fast=True)
    assert await ground.hub.list() == []


@pytest.mark.parametrize("state", ["ASKED", "STARTED", "WRITTEN"])
async def test_an_outage_of_the_store_loses_nothing(ground: Any, kit: Any, state: str) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, state)
    ground.store.pull_plug()
    for later in ("ARMED", "STARTED", "WRITTEN"):
        await sidecar.say_all(arm, later)
    await sidecar.ask_upload(uid, arm.orders[0], b"trace 0")
    grant = await sidecar.expect("upload_grant")
    assert "cannot be reached" in grant.refusal
    assert grant.retry_after_ns > 0
    ground.store.plug_in()
    await sidecar.deliver(ground.store, arm)
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")
    ledger = msgspec.json.decode(ground.store.get(keys.ledger_key("team", uid)), type=Ledger)
    assert ledger.outcome == "Complete"


@pytest.mark.parametrize(
    ("waited_s", "away", "refusal", "again"),
    [
        (59, False, "", False),
        (60, False, "the pod has not reached the store for 60 s, which the hub reaches: s3: no such name", False),
        (600, True, "the store cannot be reached", True),
    ],
)
async def test_a_pod_that_alone_does_not_reach_the_store_gives_up_early(
    ground: Any, kit: Any, waited_s: int, away: bool, refusal: str, again: bool
) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "WRITTEN")
    if away:
        ground.store.pull_plug()
    unreached = {"unreached_ns": waited_s * 10**9, "unreached": "s3: no such name"}
    await sidecar.ask_upload(uid, arm.orders[0], b"trace 0", **unreached)
    grant = await sidecar.expect("upload_grant")
    assert grant.refusal.startswith(refusal)
    assert bool(grant.refusal) == bool(refusal)
    assert (bool(grant.parts), grant.retry_after_ns > 0) == (not refusal, again)
    if again:
        ground.store.plug_in()
        await sidecar.ask_upload(uid, arm.orders[0], b"trace 0")  # the time of an outage is not counted
        assert (await sidecar.expect("upload_grant")).parts


async def test_a_store_that_refuses_us_is_asked_until_the_deadline(ground: Any, kit: Any) -> None:
    """Credentials that ran out can be renewed; when they are not, the capture's end does not wait for the store."""
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "WRITTEN")
    ground.store.pull_plug("the bucket refuses these credentials", retryable=False)
    await sidecar.ask_upload(uid, arm.orders[0], b"trace 0")
    grant = await sidecar.expect("upload_grant")
    assert ("refuses these credentials" in grant.refusal, grant.retry_after_ns > 0) == (True, True)
    ground.skew_ns += 61 * 10**9
    cancel = await sidecar.expect("cancel")
    assert (cancel.reason, cancel.message) == ("DeadlineExceeded", "the deadline of 60 s has passed")
    problem = "the deadline of 60 s has passed; the bucket refuses these credentials"
    await sidecar.say_all(arm, "FAILED", reason="UploadFailed", message=problem)
    status = await ground.await_end(uid)
    assert (status.ranks[0].reason, status.ranks[0].message) == ("UploadFailed", problem)
    ground.store.plug_in()
    await sidecar.expect("release")
    assert msgspec.json.decode(ground.store.get(keys.ledger_key("team", uid)), type=Ledger).outcome


async def test_an_outage_during_the_analysis_repeats_it(ground: Any, kit: Any) -> None:
    tries = []

    async def analyze(order: AnalysisOrder) -> None:
        tries.append(order.uid)
        if len(tries) == 1:
            ground.store.pull_plug()
            asyncio.get_running_loop().call_later(0.2, ground.store.plug_in)
            raise ValueError("the store cannot be reached")

    ground.analyze = analyze
    await ground.restart_hub()
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")
    assert len(tries) == 2


async def _report_waits_for(ground: Any, kit: Any, what: str) -> str:
    """A capture whose report waits: for the store to take the ledger, for its return, or for the analyzer."""
    began = asyncio.Event()

    async def analyze(order: AnalysisOrder) -> None:
        began.set()
        if what == "return":
            ground.store.pull_plug()
            raise ValueError("no trace could be read")
        await asyncio.sleep(3600)

    ground.analyze = analyze
    await ground.restart_hub()
    sidecar = await ground.add_sidecar(0)
    uid: str = (await ground.hub.submit(kit.make_request(deadline_s=60), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "WRITTEN")
    assert (await sidecar.upload(ground.store, uid, arm.orders[0], b"trace")).accepted
    if what == "ledger":
        ground.store.pull_plug()
    await sidecar.say_all(arm, "UPLOADED")
    await ground.await_status(uid, lambda s: kit.succeeded(s) == ("Unknown", "Analyzing"))
    if what != "ledger":
        await began.wait()
    return uid


@pytest.mark.parametrize("what", ["ledger", "return", "analyzer"])
async def test_a_cancel_ends_each_wait_of_the_report(ground: Any, kit: Any, what: str) -> None:
    uid = await _report_waits_for(ground, kit, what)
    await ground.hub.cancel(uid)
    status = await ground.await_status(uid, lambda s: kit.succeeded(s)[0] == "False")
    assert kit.succeeded(status) == ("False", "Cancelled")
    assert kit.states(status) == {0: "UPLOADED"}


@pytest.mark.parametrize(
    ("what", "after_s", "says"),
    [
        # the deadline, and as long as the store is given at a request's end
        ("ledger", 60 + 10, "the store takes no ledger: the store cannot be reached"),
        ("return", 60 + 10, "no trace could be read"),
        ("analyzer", 1800, "the analysis took longer than 1800 s"),
    ],
)
async def test_each_wait_of_the_report_has_a_bound(ground: Any, kit: Any, what: str, after_s: int, says: str) -> None:
    uid = await _report_waits_for(ground, kit, what)
    ground.skew_ns = (after_s - 20) * 10**9
    await asyncio.sleep(1.5)
    assert kit.succeeded(await ground.status(uid)) == ("Unknown", "Analyzing")
    ground.skew_ns = (after_s + 1) * 10**9
    status = await ground.await_status(uid, lambda s: kit.succeeded(s)[0] == "False")
    assert kit.succeeded(status) == ("False", "AnalysisFailed")
    assert says in next(c.message for c in status.conditions if c.type == "Succeeded")


async def test_sidecars_keep_their_traces_until_the_store_has_the_end(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "ARMED")
    ground.store.pull_plug()
    await sidecar.say_all(arm, "FAILED", reason="ProcessExited", message="it ended")
    await ground.await_status(uid, lambda s: kit.succeeded(s)[0] == "False")
    assert not (await ground.status(uid)).finished
    assert not [m for m in sidecar.received if m.WhichOneof("body") == "release"]
    ground.store.plug_in()
    assert (await sidecar.expect("release")).capture_id == uid
    assert (await ground.status(uid)).finished
