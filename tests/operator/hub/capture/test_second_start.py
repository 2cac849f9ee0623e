"""An order that no rank took in time has begun nothing: one later start is agreed on, and not for ever."""

from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb


async def _arm(ground: Any, kit: Any, *, ranks: int = 2) -> tuple[Any, str, pb.Arm]:
    sidecar = await ground.add_sidecar(0, *(kit.make_process(rank) for rank in range(ranks)))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    return sidecar, uid, await sidecar.expect("arm")


async def _poll(sidecar: Any, arm: pb.Arm) -> None:
    """Its processes ask for orders again, when the time of theirs is over."""
    for process in sidecar.processes:
        process.last_poll_unix_ns = arm.deliver_until_unix_ns + 10**6
    await sidecar.beat()


def _resolved(status: pb.CaptureStatus) -> str:
    return next(c.message for c in status.conditions if c.type == "TargetsResolved")


@pytest.mark.parametrize("reason", ["TooLate", "NotPolling", "Busy"])
async def test_when_every_rank_missed_the_first(ground: Any, kit: Any, reason: str) -> None:
    sidecar, uid, first = await _arm(ground, kit)

    await sidecar.say(uid, "p0", 0, "FAILED", reason="TooLate", message="it did not ask in time")
    await sidecar.say(uid, "p1", 1, "FAILED", reason=reason, message="it did not ask in time")
    await _poll(sidecar, first)

    assert (await sidecar.expect("release")).capture_id == uid  # else the sidecar would only repeat what it said
    second = await sidecar.expect("arm")
    assert [order.rank for order in second.orders] == [0, 1]
    status = await ground.status(uid)
    assert kit.states(status) == {0: "ASKED", 1: "ASKED"}
    assert "a second start, because no rank took its order before the first" in _resolved(status)
    await sidecar.deliver(ground.store, second)
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


async def test_is_not_tried_a_third_time(ground: Any, kit: Any) -> None:
    sidecar, uid, first = await _arm(ground, kit)
    await sidecar.say_all(first, "FAILED", reason="TooLate", message="late")
    await _poll(sidecar, first)
    second = await sidecar.expect("arm")
    await sidecar.say_all(second, "FAILED", reason="TooLate", message="late again")
    await _poll(sidecar, second)

    status = await ground.await_end(uid)

    assert kit.succeeded(status) == ("False", "AllRanksFailed")
    assert kit.states(status) == {0: "TooLate", 1: "TooLate"}
    assert status.ranks[0].message == "late again"


@pytest.mark.parametrize(
    ("other", "reason"),
    [("ARMED", ""), ("FAILED", "ProcessKilled"), ("FAILED", "NotStepping")],
)
async def test_where_one_rank_took_its_order_or_failed_otherwise_the_others_have_missed_it(
    ground: Any, kit: Any, other: str, reason: str
) -> None:
    sidecar, uid, first = await _arm(ground, kit)
    await sidecar.say(uid, "p1", 1, other, reason=reason)
    await sidecar.say(uid, "p0", 0, "FAILED", reason="TooLate", message="late")
    if not reason:
        await sidecar.say(uid, "p1", 1, "FAILED", reason="TooLate", message="armed, then lost")
    await _poll(sidecar, first)

    status = await ground.await_end(uid)

    assert kit.succeeded(status) == ("False", "AllRanksFailed")
    assert kit.states(status) == {0: "TooLate", 1: reason or "TooLate"}


async def test_a_rank_that_hangs_is_not_waited_for_long(ground: Any, kit: Any) -> None:
    sidecar, uid, first = await _arm(ground, kit)
    await sidecar.say_all(first, "FAILED", reason="NotPolling", message="it asks no more")
    sidecar.processes[0].last_poll_unix_ns = first.deliver_until_unix_ns + 10**6
    await sidecar.beat()

    status = await ground.await_end(uid)  # long before the deadline

    assert kit.succeeded(status) == ("False", "AllRanksFailed")
    assert kit.states(status) == {0: "NotPolling", 1: "NotPolling"}


async def test_a_job_that_has_gone_meanwhile_keeps_its_lines(ground: Any, kit: Any) -> None:
    sidecar, uid, first = await _arm(ground, kit, ranks=1)
    sidecar.processes = []
    await sidecar.beat()
    await ground.await_fleet(lambda fleet: not fleet[0].processes)
    await sidecar.say_all(first, "FAILED", reason="NotPolling", message="it asks no more")

    status = await ground.await_end(uid)

    assert kit.succeeded(status) == ("False", "AllRanksFailed")
    assert kit.states(status) == {0: "NotPolling"}


async def test_a_hub_that_is_killed_in_between_agrees_on_it_after_its_restart(ground: Any, kit: Any) -> None:
    sidecar, uid, first = await _arm(ground, kit)
    await ground.kill_hub()
    await ground.start_hub()
    await ground.reconnect()
    await sidecar.say_all(first, "FAILED", reason="TooLate", message="late")
    await _poll(sidecar, first)

    second = await sidecar.expect("arm")
    while second.deliver_until_unix_ns == first.deliver_until_unix_ns:
        second = await sidecar.expect("arm")  # before was the first once more, for a rank of which it had not heard

    assert [order.rank for order in second.orders] == [0, 1]
    await sidecar.deliver(ground.store, second)
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


async def test_waits_for_the_gap_between_the_cycles_of_the_jobs_own_profiler(ground: Any, kit: Any) -> None:
    busy = kit.make_process(1)
    busy.busy = True
    sidecar = await ground.add_sidecar(0, kit.make_process(0), busy)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    status = await ground.await_status(uid, lambda status: "profiled by their job" in _resolved(status))
    assert "1 of 2 ranks are being profiled by their job" in _resolved(status)

    sidecar.processes[1].busy = False
    await sidecar.beat()

    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")
