"""One rank records one iteration before the others are asked, and they are asked only if it is unharmed."""

import asyncio
from typing import Any

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import CanaryVerdict, Ledger, RankState

MS = 10**6
UNHARMED = pb.TimeCost(
    iteration_before_ns=50 * MS, longest_before_ns=60 * MS, iteration_ns=65 * MS, stall_ns=20 * MS, iterations_after=3
)
SLOW = pb.TimeCost(
    iteration_before_ns=50 * MS,
    longest_before_ns=60 * MS,
    iteration_ns=200 * MS,
    compared_before=500,
    iterations_after=1,
)
COST = pb.RecordingCost(iterations=1, events=2000, trace_bytes=600_000)


async def _begin(ground: Any, kit: Any, *, ranks: int = 2, **spec: Any) -> tuple[Any, str, pb.Arm]:
    sidecar = await ground.add_sidecar(0, *(kit.make_process(rank) for rank in range(ranks)))
    uid = await _submit(ground, kit, **spec)
    return sidecar, uid, await sidecar.expect("arm")


async def _submit(ground: Any, kit: Any, **spec: Any) -> str:
    status = await ground.hub.submit(kit.make_request(**{"canary": "Auto", **spec}), "team", fail_fast=True)
    uid: str = status.uid
    return uid


async def _record(sidecar: Any, canary: pb.Arm, **fields: Any) -> None:
    for state in ("ARMED", "STARTED"):
        await sidecar.say_all(canary, state)
    await sidecar.say_all(canary, "WRITTEN", **{"recording_cost": COST, "time_cost": UNHARMED, **fields})


async def _finish(ground: Any, sidecar: Any, arm: pb.Arm, **cost: int) -> pb.CaptureStatus:
    """The capture itself, whose ranks cost `cost`."""
    times = pb.TimeCost(**{"iteration_before_ns": 50 * MS, "iteration_ns": 55 * MS, "iterations_after": 9, **cost})
    for state in ("ARMED", "STARTED", "WRITTEN"):
        await sidecar.say_all(arm, state)
    for order in arm.orders:
        await sidecar.upload(ground.store, arm.capture_id, order, b"trace")
    await sidecar.say_all(arm, "UPLOADED", time_cost=times, recording_cost=pb.RecordingCost(iterations=5, events=9000))
    status: pb.CaptureStatus = await ground.await_end(arm.capture_id)
    return status


def _text(status: pb.CaptureStatus, kind: str = "Succeeded") -> str:
    return next(c.message for c in status.conditions if c.type == kind)


@pytest.mark.attack
async def test_the_others_follow_when_it_is_unharmed(ground: Any, kit: Any) -> None:
    sidecar, uid, canary = await _begin(ground, kit, collect=["Shapes"])

    assert canary.canary
    assert canary.capture_id != uid
    assert [order.rank for order in canary.orders] == [0]
    assert (canary.window.iterations, list(canary.collect), canary.max_slowdown_percent) == (1, ["Shapes"], 200)
    status = await ground.status(uid)
    assert _text(status) == "canary: rank 0 records one iteration first"
    assert kit.condition(status, "TargetsResolved") == ("False", "Canary")
    assert not status.ranks
    assert status.canary.rank == 0

    await _record(sidecar, canary)
    arm = await sidecar.expect("arm")
    assert (await sidecar.expect("release")).capture_id == canary.capture_id
    assert (arm.capture_id, arm.canary, [order.rank for order in arm.orders]) == (uid, False, [0, 1])
    assert (arm.estimate.events_per_iteration, arm.estimate.trace_bytes_per_iteration) == (2000, 600_000)
    resolved = _text(await ground.status(uid), "TargetsResolved")
    assert "canary: rank 0's recorded iteration took 65 ms, 50 ms before (+30 %), then a stall of 20 ms" in resolved

    status = await _finish(ground, sidecar, arm)
    assert kit.succeeded(status) == ("True", "Complete")
    assert len(status.ranks) == 2
    ledger = msgspec.json.decode(ground.store.get(keys.ledger_key("team", uid)), type=Ledger)
    assert len(ledger.entries) == 2
    kept = ledger.canary
    assert kept is not None
    assert kept.verdict is CanaryVerdict.UNHARMED
    entry = kept.entry
    assert entry is not None
    assert entry.time_cost is not None
    assert (entry.state, entry.time_cost.iteration_ns) == (RankState.WRITTEN, 65 * MS)


async def test_what_a_capture_cost_spares_the_next_one_its_canary(ground: Any, kit: Any) -> None:
    sidecar, uid, canary = await _begin(ground, kit)
    await _record(sidecar, canary)
    await _finish(ground, sidecar, await sidecar.expect("arm"))

    await ground.restart_hub()
    await ground.reconnect()
    second = await _submit(ground, kit)
    arm = await sidecar.expect("arm")
    assert (arm.capture_id, arm.estimate.events_per_iteration) == (second, 1800)
    assert f"no canary: capture {uid} tells what one costs (+10 %)" in _text(
        await ground.status(second), "TargetsResolved"
    )
    await _finish(ground, sidecar, arm, iteration_ns=160 * MS)

    assert (await _arm_of(ground, kit, sidecar, collect=["Stacks"])).canary  # of other options nothing is known
    assert (await _arm_of(ground, kit, sidecar)).canary  # the latest was above the limit
    assert (await _arm_of(ground, kit, sidecar, canary="Always")).canary


async def _arm_of(ground: Any, kit: Any, sidecar: Any, **spec: Any) -> pb.Arm:
    """The first order of a capture that is then taken back."""
    uid = await _submit(ground, kit, **spec)
    arm: pb.Arm = await sidecar.expect("arm")
    await ground.hub.cancel(uid, hurry=True)
    await ground.await_end(uid)
    return arm


@pytest.mark.attack
@pytest.mark.parametrize(
    ("fields", "reason", "says"),
    [
        (
            {"time_cost": SLOW},
            "CanaryHarmed",
            "its 2 recorded iterations took 200 ms and 200 ms where 50 ms were usual and 60 ms the longest before: "
            "300 % slower, limits.maxSlowdownPercent allows 200; no other rank was asked",
        ),
        (
            {"recording_cost": pb.RecordingCost(iterations=1, events=1_000_000, trace_bytes=300 << 20)},
            "NoMemory",
            "with the 1 ranks beside it may take 1.00 GiB of memory more",
        ),
    ],
)
async def test_nobody_follows_one_that_is_harmed(
    ground: Any, kit: Any, fields: dict[str, Any], reason: str, says: str
) -> None:
    ranks = [kit.make_process(rank, memory_headroom_bytes=1 << 30) for rank in range(2)]
    sidecar = await ground.add_sidecar(0, *ranks)
    uid = await _submit(ground, kit)
    canary = await sidecar.expect("arm")
    await _record(sidecar, canary, **fields)
    if "time_cost" in fields:  # one slow iteration may be a pause of the job's own
        assert (await sidecar.expect("release")).capture_id == canary.capture_id
        canary = await sidecar.expect("arm")
        assert canary.canary
        await _record(sidecar, canary, **fields)
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", reason)
    assert says in _text(status)
    assert not status.ranks
    assert (await sidecar.expect("release")).capture_id == canary.capture_id
    assert not [m for m in sidecar.received if m.HasField("arm")]


async def test_a_slow_iteration_that_does_not_come_again_is_no_harm(ground: Any, kit: Any) -> None:
    sidecar, uid, canary = await _begin(ground, kit)
    await _record(sidecar, canary, time_cost=SLOW)
    again = await sidecar.expect("arm")
    assert again.canary
    assert again.capture_id != canary.capture_id
    await ground.await_status(uid, lambda status: "records one iteration first, once more" in _text(status))
    await _record(sidecar, again)
    arm = await sidecar.expect("arm")
    assert (arm.capture_id, len(arm.orders)) == (uid, 2)
    resolved = _text(await ground.status(uid), "TargetsResolved")
    assert "; 200 ms in a try before, where 60 ms was the longest until then, and not again" in resolved


async def test_a_pause_right_after_it_is_waited_for_and_a_rank_that_goes_on_hanging_is_harmed(
    ground: Any, kit: Any
) -> None:
    sidecar, uid, canary = await _begin(ground, kit, activeDeadlineSeconds=900)
    cost = pb.TimeCost(iteration_before_ns=50 * MS, iteration_ns=65 * MS)
    await _record(sidecar, canary, time_cost=cost, written_unix_ns=ground.clock())
    for pause_s, waits in ((0, "records one iteration first"), (15, "it pauses, or it hangs"), (280, "it pauses, or")):
        ground.skew_ns += pause_s * 1000 * MS
        await asyncio.sleep(5 * ground.settings.look_again_ns / 10**9)
        assert waits in _text(await ground.status(uid))
    ground.skew_ns += 20_000 * MS
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "CanaryHarmed")
    assert "it has made no iteration in the 315 s after its canary was recorded" in _text(status)


@pytest.mark.parametrize(
    ("armed", "reason", "outcome"),
    [
        (True, "Slowdown", "CanaryHarmed"),
        (True, "ProcessKilled", "CanaryHarmed"),
        (False, "ProcessKilled", "CanaryFailed"),
        (True, "NoMemory", "CanaryHarmed"),
        (False, "NoMemory", "NoMemory"),
        (True, "ProcessExited", "CanaryFailed"),
    ],
)
async def test_one_without_a_trace_ends_the_capture(
    ground: Any, kit: Any, armed: bool, reason: str, outcome: str
) -> None:
    sidecar, uid, canary = await _begin(ground, kit)
    times = {"armed_unix_ns": 5} if armed else {}
    await sidecar.say_all(canary, "FAILED", reason=reason, message="so it was", **times)
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", outcome)
    assert "so it was" in _text(status)
    assert not status.ranks


async def test_a_process_that_is_gone_afterwards_was_harmed(ground: Any, kit: Any) -> None:
    sidecar, uid, canary = await _begin(ground, kit)
    for state in ("ARMED", "STARTED", "WRITTEN"):
        await sidecar.say_all(canary, state)
    sidecar.processes = sidecar.processes[1:]
    await sidecar.beat()
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "CanaryHarmed")
    assert "the process ended right after its canary was recorded" in _text(status)


@pytest.mark.parametrize("reason", ["TooLate", "NotPolling", "Busy", "CancelledByUserProfiler", "EmptyTrace"])
async def test_one_that_recorded_nothing_through_nobodys_fault_is_repeated_once(
    ground: Any, kit: Any, reason: str
) -> None:
    sidecar, uid, canary = await _begin(ground, kit)
    await sidecar.say_all(canary, "FAILED", reason=reason, message="not now")
    again = await sidecar.expect("arm")
    assert again.canary
    assert again.capture_id != canary.capture_id
    await sidecar.say_all(again, "FAILED", reason="TooLate", message="late again")
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "CanaryFailed")
    assert "has no trace (TooLate): late again" in _text(status)


async def test_its_repetition_waits_for_the_gap_between_the_cycles_of_the_jobs_own_profiler(
    ground: Any, kit: Any
) -> None:
    sidecar, uid, canary = await _begin(ground, kit)
    sidecar.processes[0].busy = True
    await sidecar.beat()
    await ground.await_fleet(lambda fleet: fleet[0].processes[0].busy)
    await sidecar.say_all(canary, "FAILED", reason="Busy", message="the job profiles itself")
    await ground.await_status(uid, lambda status: "are being profiled by their job" in _text(status, "TargetsResolved"))

    sidecar.processes[0].busy = False
    await sidecar.beat()

    again = await sidecar.expect("arm")
    assert again.canary
    assert again.capture_id != canary.capture_id


async def test_a_rank_that_still_records_the_canary_is_not_said_to_profile_itself(ground: Any, kit: Any) -> None:
    sidecar, uid, canary = await _begin(ground, kit)
    sidecar.processes[0].busy = True
    await sidecar.beat()
    await ground.await_fleet(lambda fleet: fleet[0].processes[0].busy)
    await _record(sidecar, canary)
    sentence = "1 of 2 ranks still record, for the canary or for their job's own profiler"
    await ground.await_status(uid, lambda status: sentence in _text(status, "TargetsResolved"))

    sidecar.processes[0].busy = False
    await sidecar.beat()

    assert not (await sidecar.expect("arm")).canary


@pytest.mark.parametrize("kind", ["kill_hub", "restart_hub"])
async def test_a_hub_that_is_restarted_in_the_middle_repeats_it(ground: Any, kit: Any, kind: str) -> None:
    sidecar, uid, canary = await _begin(ground, kit)
    await sidecar.say_all(canary, "ARMED")
    if kind == "kill_hub":
        await ground.kill_hub()
        await ground.start_hub()
    else:
        await ground.restart_hub()
    await ground.reconnect()
    assert (await sidecar.expect("release")).capture_id == canary.capture_id
    again = await sidecar.expect("arm")
    assert again.canary
    await _record(sidecar, again)
    arm = await sidecar.expect("arm")
    assert (arm.capture_id, len(arm.orders)) == (uid, 2)
    assert kit.succeeded(await _finish(ground, sidecar, arm)) == ("True", "Complete")


async def test_a_sidecar_that_reconnects_goes_on_with_it(ground: Any, kit: Any) -> None:
    sidecar, uid, canary = await _begin(ground, kit)
    await sidecar.say_all(canary, "ARMED")
    await ground.reconnect()
    assert (await sidecar.expect("arm")).capture_id == canary.capture_id  # idempotent
    await _record(sidecar, canary)
    assert (await sidecar.expect("arm")).capture_id == uid


async def test_the_ranks_that_wait_for_it_are_taken(ground: Any, kit: Any) -> None:
    _, uid, _ = await _begin(ground, kit)
    with pytest.raises(Exception, match=f"{uid}.* is capturing rank 1") as caught:
        await _submit(ground, kit, ranks={"list": [1]}, conflict="Fail")
    assert getattr(caught.value, "reason", "") == "AlreadyCapturing"


async def test_it_is_taken_back_with_the_capture(ground: Any, kit: Any) -> None:
    sidecar, uid, canary = await _begin(ground, kit)
    await ground.hub.cancel(uid)
    assert kit.succeeded(await ground.await_end(uid)) == ("False", "Cancelled")
    assert (await sidecar.expect("release")).capture_id == canary.capture_id


@pytest.mark.parametrize(
    ("spec", "ranks", "fields", "says"),
    [
        ({"canary": "Never"}, 2, {}, "no canary, as asked"),
        ({"window": {"iterations": 1}}, 1, {}, "the capture is as small as one"),
        ({"window": {"durationMillis": 100}}, 2, {"has_agent": False}, "no rank has the agent and steps"),
    ],
)
async def test_there_is_none_where_it_would_tell_nothing(
    ground: Any, kit: Any, spec: dict[str, Any], ranks: int, fields: dict[str, Any], says: str
) -> None:
    sidecar = await ground.add_sidecar(0, *(kit.make_process(rank, **fields) for rank in range(ranks)))
    uid = await _submit(ground, kit, **spec)
    arm = await sidecar.expect("arm")
    assert (arm.capture_id, arm.canary) == (uid, False)
    assert says in _text(await ground.status(uid), "TargetsResolved")


async def test_one_that_was_asked_for_and_cannot_be_is_said(ground: Any, kit: Any) -> None:
    await ground.add_sidecar(0, kit.make_process(0, has_agent=False))
    uid = await _submit(ground, kit, canary="Always", window={"durationMillis": 100})
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "CanaryImpossible")
