"""A capture that is cancelled, or runs out of time, in every state."""

import asyncio
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_operator.hub.capture.environment import AnalysisOrder


async def test_cancel_while_waiting(ground: Any, kit: Any) -> None:
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=False)).uid
    await ground.hub.cancel(uid)
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "Cancelled")
    assert (await ground.hub.cancel(uid)).finished  # again: nothing


@pytest.mark.parametrize("state", ["ASKED", "ARMED", "STARTED", "WRITTEN"])
async def test_cancel_while_capturing(ground: Any, kit: Any, state: str) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, state)
    await ground.await_status(uid, lambda s: all(pb.RankState.Name(e.state) == state for e in s.ranks))
    await ground.hub.cancel(uid)
    cancel = await sidecar.expect("cancel")
    assert (cancel.capture_id, cancel.reason) == (uid, "Cancelled")
    await sidecar.ask_upload(uid, arm.orders[0], b"trace")
    assert "was cancelled" in (await sidecar.expect("upload_grant")).refusal
    await sidecar.say_all(arm, "FAILED", reason="Cancelled", message="withdrawn")
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "Cancelled")
    assert kit.states(status) == {0: "Cancelled", 1: "Cancelled"}
    assert ground.analyzed == []
    assert (await sidecar.expect("release")).capture_id == uid
    # The ranks are free again.
    await ground.hub.submit(kit.make_request(), "team", fail_fast=True)
    await sidecar.expect("arm")


async def test_a_cancel_that_nobody_confirms_is_bounded(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.expect("arm")
    await ground.hub.cancel(uid)
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "Cancelled")
    assert "has not confirmed" in status.ranks[0].message


async def test_cancel_during_the_analysis(ground: Any, kit: Any) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def analyze(order: AnalysisOrder) -> None:
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    ground.analyze = analyze
    await ground.restart_hub()
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    await began.wait()
    await ground.hub.cancel(uid)
    status = await ground.await_end(uid)
    assert ended.is_set()
    assert kit.succeeded(status) == ("False", "Cancelled")
    assert kit.states(status) == {0: "UPLOADED"}


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("ASKED", "the process had not taken its order"),
        ("ARMED", "no trace was begun"),
        ("STARTED", "was not complete"),
        ("WRITTEN", "not uploaded"),
    ],
)
async def test_one_rank_never_comes_to_its_end(ground: Any, kit: Any, state: str, says: str) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    uid = (await ground.hub.submit(kit.make_request(deadline_s=30), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    for step in ("ARMED", "STARTED", "WRITTEN"):
        await sidecar.say(uid, "p0", 0, step)
    await sidecar.upload(ground.store, uid, arm.orders[0], b"trace")
    await sidecar.say(uid, "p0", 0, "UPLOADED")
    await sidecar.say(uid, "p1", 1, state)
    await ground.await_status(uid, lambda s: kit.states(s) == {0: "UPLOADED", 1: state})
    ground.skew_ns = 31 * 10**9
    cancel = await sidecar.expect("cancel")
    assert cancel.reason == "DeadlineExceeded"
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("True", "PartiallyCaptured")
    assert kit.states(status) == {0: "UPLOADED", 1: "DeadlineExceeded"}
    assert says in status.ranks[1].message


async def test_a_sidecars_own_reason_at_the_deadline_counts_more(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(deadline_s=30), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    ground.skew_ns = 31 * 10**9
    await sidecar.expect("cancel")
    await sidecar.say_all(arm, "FAILED", reason="Busy", message="another profile ran until the deadline")
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "DeadlineExceeded")
    assert kit.states(status) == {0: "Busy"}
