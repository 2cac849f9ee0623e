"""The hub dies at any moment; the next one goes on from the store and from what sidecars restate."""

import asyncio
from typing import Any

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Ledger
from fleetprof_operator.hub.capture.environment import AnalysisOrder
from fleetprof_store.base import StoreError

STATES = ["ASKED", "ARMED", "STARTED", "WRITTEN", "UPLOADED"]


async def _capture(ground: Any, kit: Any, **request: Any) -> tuple[Any, str, pb.Arm]:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    uid = (await ground.hub.submit(kit.make_request(**request), "team", fail_fast=True)).uid
    return sidecar, uid, await sidecar.expect("arm")


@pytest.mark.parametrize("state", STATES)
async def test_killed_while_capturing(ground: Any, kit: Any, state: str) -> None:
    sidecar, uid, arm = await _capture(ground, kit)
    for reached in STATES[: STATES.index(state) + 1]:
        if reached == "UPLOADED":
            await sidecar.upload(ground.store, uid, arm.orders[0], b"trace 0")
            await sidecar.say(uid, "p0", 0, "UPLOADED")
        else:
            await sidecar.say_all(arm, reached)
    await ground.await_status(uid, lambda s: kit.states(s)[0] == state)
    before = await ground.status(uid)
    await ground.hub.captures.find(uid).flush(10**10)
    await ground.kill_hub()

    await ground.start_hub()
    assert kit.succeeded(await ground.status(uid))[0] == "Unknown"
    await ground.reconnect()
    await sidecar.deliver(ground.store, arm)
    status = await ground.await_end(uid)

    assert kit.succeeded(status) == ("True", "Complete")
    assert kit.states(status) == {0: "UPLOADED", 1: "UPLOADED"}
    assert (status.first_step, status.submitted_unix_ns) == (before.first_step, before.submitted_unix_ns)
    assert (await sidecar.expect("release")).capture_id == uid


async def test_a_sidecar_that_speaks_of_its_order_right_after_its_hello_holds_it(ground: Any, kit: Any) -> None:
    """The hub dies as soon as it has ordered; a sidecar dials again, and only then its process takes the order."""
    sidecars = [await ground.add_sidecar(rank) for rank in (0, 1)]
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arms = [await sidecar.expect("arm") for sidecar in sidecars]
    await sidecars[1].say_all(arms[1], "ARMED")
    await ground.await_status(uid, lambda s: kit.states(s) == {0: "ASKED", 1: "ARMED"})
    await ground.hub.captures.find(uid).flush(10**10)
    await ground.kill_hub()
    await ground.start_hub()
    for sidecar in sidecars:
        await sidecar.disconnect()
    await sidecars[0].connect(ground.server.port)
    await sidecars[0].say_all(arms[0], "ARMED")
    await ground.await_status(uid, lambda s: kit.states(s)[0] == "ARMED")  # nothing is decided while one is away
    await sidecars[1].connect(ground.server.port)
    await sidecars[1].deliver(ground.store, arms[1])
    await ground.await_status(uid, lambda s: kit.states(s)[1] == "UPLOADED")  # it is decided by then
    assert kit.states(await ground.status(uid))[0] == "ARMED"
    await sidecars[0].deliver(ground.store, arms[0])
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


async def test_killed_while_sidecars_are_away_and_some_never_return(ground: Any, kit: Any) -> None:
    sidecar, uid, arm = await _capture(ground, kit)
    await sidecar.say_all(arm, "WRITTEN")
    await ground.await_status(uid, lambda s: kit.states(s) == {0: "WRITTEN", 1: "WRITTEN"})
    await ground.hub.captures.find(uid).flush(10**10)
    await ground.kill_hub()
    await ground.start_hub()
    ground.skew_ns = 61 * 10**9
    status = await ground.await_end(uid)
    assert kit.states(status) == {0: "SidecarLost", 1: "SidecarLost"}


async def test_killed_between_the_store_and_the_verdict(ground: Any, kit: Any) -> None:
    """The trace is in the store, nobody heard of it; the sidecar is lost for good."""
    sidecar, uid, arm = await _capture(ground, kit, ranks={"list": [0]})
    await sidecar.say_all(arm, "WRITTEN")
    await ground.await_status(uid, lambda s: kit.states(s) == {0: "WRITTEN"})
    await ground.hub.captures.find(uid).flush(10**10)
    await ground.kill_hub()
    ground.store.put(keys.trace_key("team", uid, 0), b"trace 0")
    calls = ground.store.count_calls()
    await ground.start_hub()
    await sidecar.disconnect()
    async with asyncio.timeout(kit.PATIENCE_S):
        while calls["list"] < 2:  # requests first; then, when sidecars had their time, what the store has of this one
            await asyncio.sleep(0.01)
    ground.skew_ns = 61 * 10**9
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("True", "Complete")


async def test_killed_while_waiting(ground: Any, kit: Any) -> None:
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=False)).uid
    await ground.kill_hub()
    await ground.start_hub()
    sidecar = await ground.add_sidecar(0)
    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


async def test_killed_while_cancelling(ground: Any, kit: Any) -> None:
    sidecar, uid, arm = await _capture(ground, kit)
    await sidecar.say_all(arm, "STARTED")
    await ground.hub.cancel(uid)
    await sidecar.expect("cancel")
    await ground.hub.captures.find(uid).flush(10**10)
    await ground.kill_hub()
    await ground.start_hub()
    await ground.reconnect()
    await sidecar.expect("cancel")
    await sidecar.say_all(arm, "FAILED", reason="Cancelled", message="dropped")
    assert kit.succeeded(await ground.await_end(uid)) == ("False", "Cancelled")


async def test_killed_while_analyzing(ground: Any, kit: Any) -> None:
    hangs = asyncio.Event()

    async def hang(order: AnalysisOrder) -> None:
        hangs.set()
        await asyncio.sleep(3600)

    works, ground.analyze = ground.analyze, hang
    await ground.restart_hub()
    sidecar, uid, arm = await _capture(ground, kit)
    await sidecar.deliver(ground.store, arm)
    await hangs.wait()
    await ground.kill_hub()
    ground.analyze = works
    await ground.start_hub()
    status = await ground.await_end(uid)  # no sidecar is needed any more
    assert kit.succeeded(status) == ("True", "Complete")
    assert ground.analyzed == [("team", uid)]


async def test_killed_after_the_end_a_sidecar_is_still_released(ground: Any, kit: Any) -> None:
    sidecar, uid, arm = await _capture(ground, kit)
    await sidecar.deliver(ground.store, arm)
    ended = await ground.await_end(uid)
    await ground.kill_hub()
    await ground.start_hub()
    assert await ground.status(uid) == ended
    sidecar.received.clear()
    await ground.reconnect()
    assert (await sidecar.expect("release")).capture_id == uid


async def test_an_order_that_never_left_the_dead_hub_is_planned_anew(ground: Any, kit: Any) -> None:
    sidecar, uid, arm = await _capture(ground, kit)
    await ground.hub.captures.find(uid).flush(10**10)
    await ground.kill_hub()
    await sidecar.disconnect()
    ground.skew_ns = 20 * 10**9  # the planned start has passed
    now = ground.clock()
    sidecar.processes = [kit.make_process(n, last_poll_unix_ns=now, step=_step(now)) for n in (0, 1)]
    await ground.start_hub()
    await sidecar.connect(ground.server.port)
    again = await sidecar.expect("arm")
    assert again.deliver_until_unix_ns > arm.deliver_until_unix_ns
    await sidecar.deliver(ground.store, again)
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


async def test_what_waited_for_a_job_that_is_gone_ends_with_its_reason(ground: Any, kit: Any) -> None:
    """Without Kubernetes a request is for a job that runs: its sidecar gets the time to come back, and no more."""
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=False)).uid
    await ground.kill_hub()
    await ground.start_hub(fails_fast=True)
    await asyncio.sleep(ground.settings.look_again_ns / 10**9 * 3)
    assert not (await ground.status(uid)).finished
    ground.skew_ns = ground.settings.reconnecting_ns
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "NothingMatched")


async def test_a_ledger_that_was_never_written_is_rebuilt_from_the_sidecars(ground: Any, kit: Any) -> None:
    sidecar, uid, arm = await _capture(ground, kit)
    await sidecar.say_all(arm, "STARTED")
    await ground.hub.captures.find(uid).flush(10**10)
    await ground.kill_hub()
    ground.store.delete([keys.ledger_key("team", uid)])
    await ground.start_hub()
    await ground.reconnect()
    await ground.await_status(uid, lambda s: kit.states(s) == {0: "STARTED", 1: "STARTED"})
    await sidecar.deliver(ground.store, arm)
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"\xff\xfe", b'{"uid": "other", "name": "x", "namespace": "team"}']
)
async def test_a_damaged_ledger_is_rebuilt_from_the_sidecars(ground: Any, kit: Any, damage: bytes) -> None:
    sidecar, uid, arm = await _capture(ground, kit)
    await sidecar.say_all(arm, "STARTED")
    await ground.await_status(uid, lambda s: kit.states(s) == {0: "STARTED", 1: "STARTED"})
    await ground.kill_hub()
    ground.store.put(keys.ledger_key("team", uid), damage)
    await ground.start_hub()
    await ground.reconnect()
    await sidecar.deliver(ground.store, arm)
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


async def test_foreign_objects_in_the_store_are_left_alone(ground: Any, kit: Any) -> None:
    foreign = {
        "v1/team/not-a-request/request.json": b"spec: {}",
        "v1/readme.txt": b"hi",
        "v1/team/x/request.json": b"\xff",
    }
    for key, data in foreign.items():
        ground.store.put(key, data)
    await ground.restart_hub()
    assert await ground.hub.list() == []
    assert {key: ground.store.get(key) for key in foreign} == foreign


async def test_the_store_may_come_after_the_hub(ground: Any, kit: Any) -> None:
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=False)).uid
    await ground.kill_hub()
    ground.store.pull_plug()
    asyncio.get_running_loop().call_later(0.2, ground.store.plug_in)
    await ground.start_hub()
    assert [status.uid for status in await ground.hub.list()] == [uid]


async def test_a_store_that_refuses_ends_the_restore_with_its_sentence(ground: Any, kit: Any) -> None:
    await ground.kill_hub()
    ground.store.pull_plug("the bucket refuses these credentials", retryable=False)
    with pytest.raises(StoreError, match="refuses these credentials"):
        await ground.start_hub()
    await ground.hub.close()
    ground.store.plug_in()
    await ground.start_hub()


async def test_an_unknown_capture_is_released(ground: Any, kit: Any) -> None:
    """Its objects were deleted from the store: nobody waits for it."""
    sidecar, uid, arm = await _capture(ground, kit)
    await sidecar.say_all(arm, "WRITTEN")
    await ground.hub.captures.find(uid).flush(10**10)
    await ground.kill_hub()
    ground.store.delete([info.key for info in ground.store.list("v1/")])
    await ground.start_hub()
    await ground.reconnect()
    assert (await sidecar.expect("release")).capture_id == uid


async def test_an_orderly_stop_saves_the_ledger(ground: Any, kit: Any) -> None:
    sidecar, uid, arm = await _capture(ground, kit)
    await sidecar.say_all(arm, "STARTED")
    await ground.await_status(uid, lambda s: kit.states(s) == {0: "STARTED", 1: "STARTED"})
    await ground.restart_hub()
    ledger = msgspec.json.decode(ground.store.get(keys.ledger_key("team", uid)), type=Ledger)
    assert [entry.state for entry in ledger.entries] == ["STARTED", "STARTED"]


def _step(now_unix_ns: int) -> pb.StepState:
    return pb.StepState(step=500, at_unix_ns=now_unix_ns, iteration_ns=50_000_000, steps_per_iteration=1)
