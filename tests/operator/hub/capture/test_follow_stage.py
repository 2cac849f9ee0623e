"""Sidecars that go and come while they hold a capture."""

from typing import Any

import grpc
import pytest


async def test_a_lost_sidecar_fails_its_ranks_at_the_deadline(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(deadline_s=30), "team", fail_fast=True)).uid
    await sidecar.say_all(await sidecar.expect("arm"), "ARMED")
    await ground.await_status(uid, lambda s: kit.states(s) == {0: "ARMED"})
    await ground.lose(sidecar)
    ground.skew_ns = 31 * 10**9
    status = await ground.await_end(uid)
    assert kit.states(status) == {0: "SidecarLost"}
    assert "the rank was armed" in status.ranks[0].message


async def test_a_sidecar_that_stays_away_is_given_up_before_a_distant_deadline(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(deadline_s=3600), "team", fail_fast=True)).uid
    await sidecar.say_all(await sidecar.expect("arm"), "ARMED")
    await ground.lose(sidecar)
    ground.skew_ns = 61 * 10**9
    status = await ground.await_end(uid)
    assert kit.states(status) == {0: "SidecarLost"}
    assert "not been heard of for 60 s" in status.ranks[0].message


@pytest.mark.parametrize(
    ("grace_s", "waited_s"),
    [(50, 50), (0, 40)],
    ids=["as the request says", "as long as a sidecar may take to reconnect"],
)
async def test_a_lost_sidecar_alone_is_waited_for(ground: Any, kit: Any, grace_s: int, waited_s: int) -> None:
    stays, lost = await ground.add_sidecar(0), await ground.add_sidecar(1)
    request = kit.make_request(deadline_s=3600, missingRanksGraceSeconds=grace_s)
    uid = (await ground.hub.submit(request, "team", fail_fast=True)).uid
    arm = await stays.expect("arm")
    await lost.say_all(await lost.expect("arm"), "ARMED")
    await ground.await_status(uid, lambda s: kit.states(s)[1] == "ARMED")
    await ground.lose(lost)
    ground.skew_ns = (waited_s + 1) * 10**9
    await stays.say_all(arm, "STARTED")
    await ground.await_status(uid, lambda s: kit.states(s) == {0: "STARTED", 1: "ARMED"})  # others are under way
    await stays.deliver(ground.store, arm)
    status = await ground.await_end(uid)
    assert kit.states(status) == {0: "UPLOADED", 1: "SidecarLost"}
    assert f"not been heard of for {waited_s} s" in status.ranks[1].message


@pytest.mark.parametrize("state", ["ASKED", "ARMED", "STARTED", "WRITTEN"])
async def test_a_sidecar_that_comes_back_goes_on(ground: Any, kit: Any, state: str) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, state)
    await ground.reconnect()
    await sidecar.deliver(ground.store, arm)
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


async def test_a_sidecar_without_memory_fails_its_ranks(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.say_all(await sidecar.expect("arm"), "ARMED")
    await ground.await_status(uid, lambda s: kit.states(s) == {0: "ARMED"})
    sidecar.held.clear()
    await ground.reconnect()
    status = await ground.await_end(uid)
    assert kit.states(status) == {0: "SidecarRestarted"}
    assert kit.succeeded(status) == ("False", "AllRanksFailed")


async def test_an_order_that_was_lost_is_repeated_while_there_is_time(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0, poll_interval_ns=5 * 10**9))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    first = await sidecar.expect("arm")
    await ground.reconnect()  # it holds nothing: the order was lost on the way
    again = await sidecar.expect("arm")
    assert first == again
    await sidecar.deliver(ground.store, again)
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


async def test_an_order_that_was_lost_until_the_start_is_too_late(ground: Any, kit: Any) -> None:
    ready, without = await ground.add_sidecar(0), await ground.add_sidecar(1)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await ready.expect("arm")
    await ready.say_all(arm, "ARMED")
    await without.expect("arm")
    await ground.await_status(uid, lambda s: kit.states(s)[0] == "ARMED")
    ground.skew_ns = 60 * 10**9
    await ground.reconnect()
    await ready.deliver(ground.store, arm)
    status = await ground.await_end(uid)
    assert kit.states(status) == {0: "UPLOADED", 1: "TooLate"}
    assert "did not reach its sidecar before the start" in status.ranks[1].message


async def test_a_trace_in_the_store_counts_though_its_sidecar_is_lost(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(deadline_s=30), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "WRITTEN")
    assert (await sidecar.upload(ground.store, uid, arm.orders[0], b"trace")).accepted
    await ground.lose(sidecar)
    ground.skew_ns = 31 * 10**9
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("True", "Complete")
    assert "its samples may not be" in status.ranks[0].message


async def test_a_trace_in_the_store_counts_though_its_samples_failed(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "WRITTEN")
    assert (await sidecar.upload(ground.store, uid, arm.orders[0], b"trace")).accepted
    await sidecar.say_all(arm, "FAILED", reason="UploadFailed", message="samples")
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


async def test_a_claim_of_an_upload_is_checked_with_the_store(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.say_all(await sidecar.expect("arm"), "UPLOADED")
    status = await ground.await_end(uid)
    assert kit.states(status) == {0: "UploadFailed"}


async def test_a_newer_stream_of_a_sidecar_takes_the_olders_place(ground: Any, kit: Any) -> None:
    old = await ground.add_sidecar(0)
    new = await ground.add_sidecar(0)
    assert await old.call.code() is grpc.StatusCode.ABORTED
    assert "replaced by a newer stream" in await old.call.details()
    assert [status.connected_unix_ns > 0 for status in await ground.hub.fleet()] == [True]
    await ground.hub.submit(kit.make_request(), "team", fail_fast=True)
    await new.expect("arm")


async def test_a_restarted_rank_is_its_newest_process(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(
        0, kit.make_process(7, rank=0, restart_count=1), kit.make_process(3, rank=0, restart_count=0)
    )
    await ground.hub.submit(kit.make_request(), "team", fail_fast=True)
    assert [order.process_id for order in (await sidecar.expect("arm")).orders] == ["p7"]
