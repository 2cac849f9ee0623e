"""Requests from submission to their end, over real gRPC with scripted sidecars."""

import asyncio
import dataclasses
import time
from typing import Any

import grpc
import msgspec
import pytest
from fleetprof_api import hub_pb2 as pb
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger, RankState
from fleetprof_api.request import InvalidRequest, Metadata
from fleetprof_api.store.base import StoreError
from fleetprof_operator.hub.submission import CaptureRefused, UnknownCapture


async def test_success(ground: Any, kit: Any) -> None:
    first = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    second = await ground.add_sidecar(1, kit.make_process(2))

    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arms = [await first.expect("arm"), await second.expect("arm")]
    for sidecar, arm in zip((first, second), arms, strict=True):
        await sidecar.deliver(ground.store, arm)
    status = await ground.await_end(uid)

    assert [[(o.process_id, o.rank) for o in arm.orders] for arm in arms] == [[("p0", 0), ("p1", 1)], [("p2", 2)]]
    assert arms[0].first_step == arms[1].first_step == status.first_step > 100
    assert kit.succeeded(status) == ("True", "Complete")
    assert {c.type: c.status for c in status.conditions} == dict.fromkeys(
        ("TargetsResolved", "Captured", "Uploaded", "Analyzed", "Succeeded"), "True"
    )
    assert kit.states(status) == {0: "UPLOADED", 1: "UPLOADED", 2: "UPLOADED"}
    assert ground.analyzed == [("team", uid)]
    assert status.report_location == f"memory://v1/team/{uid}/report.json"
    for sidecar in (first, second):
        assert (await sidecar.expect("release")).capture_id == uid
    assert ground.store.get(keys.trace_key("team", uid, 2)) == b"trace 2"
    ledger = msgspec.json.decode(ground.store.get(keys.ledger_key("team", uid)), type=Ledger)
    assert (ledger.outcome, ledger.start_mode, ledger.first_step) == ("Complete", "step", status.first_step)
    assert [entry.state for entry in ledger.entries] == [RankState.UPLOADED] * 3


async def test_partial_success(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    for state in ("ARMED", "STARTED", "WRITTEN"):
        await sidecar.say(uid, "p0", 0, state)
    await sidecar.say(uid, "p1", 1, "FAILED", reason="ProcessKilled", message="it ended by signal 9")
    await sidecar.upload(ground.store, uid, arm.orders[0], b"trace")
    await sidecar.say(uid, "p0", 0, "UPLOADED")
    status = await ground.await_end(uid)

    assert kit.succeeded(status) == ("True", "PartiallyCaptured")
    assert kit.condition(status, "Captured") == ("True", "PartiallyCaptured")
    assert kit.condition(status, "Uploaded") == ("True", "PartiallyUploaded")
    assert kit.states(status) == {0: "UPLOADED", 1: "ProcessKilled"}
    assert status.ranks[1].message == "it ended by signal 9"
    assert ground.analyzed == [("team", uid)]


async def test_all_ranks_fail(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "FAILED", reason="TooLate", message="it did not poll in time")
    status = await ground.await_end(uid)

    assert kit.succeeded(status) == ("False", "AllRanksFailed")
    assert "1 TooLate. Rank 0: it did not poll in time" in _message(status, "Succeeded")
    assert kit.condition(status, "Captured") == ("False", "AllRanksFailed")
    assert ground.analyzed == []
    assert status.report_location == ""


async def test_a_reason_that_nobody_knows_is_internal(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.say_all(await sidecar.expect("arm"), "FAILED", reason="Whatever")
    status = await ground.await_end(uid)
    assert kit.states(status) == {0: "Internal"}
    assert status.ranks[0].message


async def test_an_analysis_that_fails_leaves_the_traces(ground: Any, kit: Any) -> None:
    async def fail(namespace: str, uid: str) -> None:
        raise ValueError("trace 0 is upside down")

    ground.analyze = fail
    await ground.restart_hub()
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "AnalysisFailed")
    assert kit.condition(status, "Analyzed") == ("False", "AnalysisFailed")
    assert "trace 0 is upside down. The traces lie beside memory://v1/team/" in _message(status, "Succeeded")
    assert status.report_location == ""


async def test_without_an_analyzer_the_traces_are_the_result(ground: Any, kit: Any) -> None:
    ground.analyze = None
    await ground.restart_hub()
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("True", "Complete")
    assert kit.condition(status, "Analyzed") == ("Unknown", "NoAnalyzer")


# ---------------------------------------------------------------- what is not there


async def test_fail_fast_refuses_what_could_only_wait(ground: Any, kit: Any) -> None:
    request = kit.make_request()
    with pytest.raises(CaptureRefused, match="no sidecar of Job/llama is connected in namespace team") as caught:
        await ground.hub.submit(request, "team", fail_fast=True)
    assert caught.value.reason == "NothingMatched"

    await ground.add_sidecar(0, kit.make_process(0, polls_kineto=False))
    with pytest.raises(CaptureRefused, match="KINETO_USE_DAEMON=1") as caught:
        await ground.hub.submit(request, "team", fail_fast=True)
    assert caught.value.reason == "NothingSpeaksKineto"

    with pytest.raises(CaptureRefused, match="Job/llama") as caught:  # another namespace's job is nobody's business
        await ground.hub.submit(request, "rival", fail_fast=True)
    assert caught.value.reason == "NothingMatched"
    assert list(ground.store.list("v1/")) == []


async def test_a_request_waits_for_its_target(ground: Any, kit: Any) -> None:
    status = await ground.hub.submit(kit.make_request(), "team", fail_fast=False)
    status = await ground.await_status(status.uid, lambda s: bool(s.conditions))
    assert kit.condition(status, "TargetsResolved") == ("False", "NothingMatched")
    assert kit.succeeded(status) == ("Unknown", "Waiting")

    sidecar = await ground.add_sidecar(0)
    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    assert kit.succeeded(await ground.await_end(status.uid)) == ("True", "Complete")


@pytest.mark.parametrize(
    ("process", "reason"), [(None, "NothingMatched"), ({"role": pb.LAUNCHER}, "NothingSpeaksKineto")]
)
async def test_waiting_ends_at_the_deadline_with_what_is_missing(
    ground: Any, kit: Any, process: dict[str, Any] | None, reason: str
) -> None:
    if process is not None:
        await ground.add_sidecar(0, kit.make_process(0, **process))
    uid = (await ground.hub.submit(kit.make_request(deadline_s=30), "team", fail_fast=False)).uid
    ground.skew_ns = 31 * 10**9
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", reason)
    assert "until the deadline of 30 s" in _message(status, "Succeeded")
    assert kit.condition(status, "TargetsResolved") == ("False", reason)


async def test_trainers_that_never_ask_for_configs_end_the_wait(ground: Any, kit: Any) -> None:
    await ground.add_sidecar(0, kit.make_process(0, polls_kineto=False))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=False)).uid
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "NothingSpeaksKineto")


async def test_one_rank_that_does_not_poll_fails_alone(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1, polls_kineto=False))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    assert [order.rank for order in arm.orders] == [0]
    await sidecar.deliver(ground.store, arm)
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("True", "PartiallyCaptured")
    assert kit.states(status) == {0: "UPLOADED", 1: "NotPolling"}


async def test_ranks_that_may_still_come_are_waited_for(ground: Any, kit: Any) -> None:
    first = await ground.add_sidecar(0, kit.make_process(0, world_size=2))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await ground.await_status(uid, lambda s: kit.condition(s, "TargetsResolved") == ("False", "Gathering"))
    second = await ground.add_sidecar(1, kit.make_process(1, world_size=2))
    arms = [await first.expect("arm"), await second.expect("arm")]
    assert arms[0].first_step == arms[1].first_step


async def test_ranks_that_do_not_come_have_a_line(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0, world_size=3), kit.make_process(2, world_size=3))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    status = await ground.await_end(uid)
    assert "rank 1 of 3 not there" in _message(status, "TargetsResolved")
    assert kit.succeeded(status) == ("True", "PartiallyCaptured")
    assert kit.states(status) == {0: "UPLOADED", 1: "NotPolling", 2: "UPLOADED"}
    assert "without a sidecar" in status.ranks[1].message


async def test_ranks_without_steps_begin_at_one_time(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(
        0, kit.make_process(0, has_agent=False, step=None), kit.make_process(1, has_agent=False, step=None)
    )
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    assert arm.WhichOneof("start") == "start_unix_ns"
    assert arm.start_unix_ns > arm.deliver_until_unix_ns > arm.start_unix_ns - 2 * 10**9
    assert (arm.window.iterations, arm.window.duration_ns) == (0, 2 * 10**9)
    status = await ground.status(uid)
    assert status.start_mode == "time"
    assert "2 of 2 ranks are without the agent" in _message(status, "TargetsResolved")


async def test_the_order_carries_what_the_request_says(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    request = kit.make_request(
        collect=["Shapes", "DeviceMetrics"],
        window={"iterations": 7, "warmupIterations": 2},
        limits={"maxTraceBytes": 1 << 30, "maxSlowdownPercent": 50},
    )
    uid = (await ground.hub.submit(request, "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    submitted = (await ground.status(uid)).submitted_unix_ns
    assert (arm.window.iterations, arm.window.warmup_iterations, arm.window.duration_ns) == (7, 2, 0)
    assert list(arm.collect) == ["Shapes", "DeviceMetrics"]
    assert (arm.max_trace_bytes, arm.max_slowdown_percent) == (1 << 30, 50)
    assert arm.give_up_unix_ns == submitted + 60 * 10**9
    assert arm.sample_interval_ns == 20_000_000


# ---------------------------------------------------------------- two requests


async def test_two_requests_for_the_same_ranks(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    first = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")

    with pytest.raises(CaptureRefused, match=f"{first}.*is capturing rank 0, 1 of Job/llama") as caught:
        await ground.hub.submit(kit.make_request(), "team", fail_fast=True)
    assert caught.value.reason == "AlreadyCapturing"
    second = await ground.hub.submit(kit.make_request(ranks={"list": [1]}), "team", fail_fast=False)
    status = await ground.await_end(second.uid)
    assert kit.succeeded(status) == ("False", "AlreadyCapturing")
    assert first in _message(status, "Succeeded")

    await sidecar.deliver(ground.store, arm)
    assert kit.succeeded(await ground.await_end(first)) == ("True", "Complete")
    third = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    assert kit.succeeded(await ground.await_end(third)) == ("True", "Complete")


async def test_two_requests_for_different_ranks(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    uids = [
        (await ground.hub.submit(kit.make_request(ranks={"list": [rank]}), "team", fail_fast=True)).uid
        for rank in (0, 1)
    ]
    for _ in uids:
        await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    for uid in uids:
        assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


# ---------------------------------------------------------------- cancel and deadline


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

    async def analyze(namespace: str, uid: str) -> None:
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


# ---------------------------------------------------------------- sidecars that go and come


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


# ---------------------------------------------------------------- uploads


async def test_uploads_are_for_the_ranks_of_their_sidecar_only(ground: Any, kit: Any) -> None:
    ours = await ground.add_sidecar(0)
    theirs = await ground.add_sidecar(1)
    uid = (await ground.hub.submit(kit.make_request(ranks={"list": [0]}), "team", fail_fast=True)).uid
    arm = await ours.expect("arm")
    order = arm.orders[0]

    cases = [
        (theirs, order, pb.TRACE, "not part of the capture"),
        (ours, pb.Order(process_id="p9", rank=0), pb.TRACE, "not part of the capture"),
        (ours, pb.Order(process_id=order.process_id, rank=1), pb.TRACE, "is rank 0 of this request, not 1"),
        (ours, order, pb.OBJECT_KIND_UNSPECIFIED, "no object of kind 0"),
    ]
    for sidecar, asked, kind, says in cases:
        await sidecar.ask_upload(uid, asked, b"x", kind)
        grant = await sidecar.expect("upload_grant")
        assert says in grant.refusal
        assert (list(grant.parts), grant.retry_after_ns) == ([], 0)


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ([], "1 to 10000 parts"),
        ([0], "must be 1 to"),
        ([-5], "must be 1 to"),
        ([1 << 62], "must be 1 to"),
        ([1, 1], "must be 5242880 to"),
        ([64 << 20] * 20, "more than the 1073741824 that this request may store"),
    ],
)
async def test_hostile_sizes_are_refused(ground: Any, kit: Any, sizes: list[int], says: str) -> None:
    sidecar = await ground.add_sidecar(0)
    request = kit.make_request(limits={"maxTraceBytes": 1 << 30})
    uid = (await ground.hub.submit(request, "team", fail_fast=True)).uid
    order = (await sidecar.expect("arm")).orders[0]
    parts = [pb.Part(size_bytes=size, sha256=bytes(32)) for size in sizes]
    asked = pb.UploadRequest(capture_id=uid, process_id=order.process_id, rank=0, object=pb.TRACE, parts=parts)
    await sidecar.call.write(pb.SidecarMessage(upload_request=asked))
    grant = await sidecar.expect("upload_grant")
    assert says in grant.refusal
    assert grant.retry_after_ns == 0


async def test_an_upload_that_was_not_granted_is_begun_again(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    order = (await sidecar.expect("arm")).orders[0]
    done = pb.UploadDone(capture_id=uid, process_id=order.process_id, object=pb.TRACE, upload_id="?", etags=["a"])
    await sidecar.call.write(pb.SidecarMessage(upload_done=done))
    verdict = await sidecar.expect("upload_verdict")
    assert (verdict.accepted, verdict.retry_after_ns > 0) == (False, True)
    assert (await sidecar.upload(ground.store, uid, order, b"trace")).accepted


async def test_asking_again_replaces_the_earlier_grant(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    order = (await sidecar.expect("arm")).orders[0]
    await sidecar.ask_upload(uid, order, b"trace")
    first = await sidecar.expect("upload_grant")
    assert (await sidecar.upload(ground.store, uid, order, b"trace")).accepted
    with pytest.raises(StoreError):
        ground.store.receive(first.parts[0].url, b"trace")


# ---------------------------------------------------------------- the store


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

    async def analyze(namespace: str, uid: str) -> None:
        tries.append(uid)
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


# ---------------------------------------------------------------- names and lists


async def test_captures_are_found_by_id_or_unique_name(ground: Any, kit: Any) -> None:
    named = kit.make_request().model_copy(update={"metadata": Metadata(name="nightly")})
    uids = [(await ground.hub.submit(named, "team", fail_fast=False)).uid]
    assert (await ground.hub.cancel("nightly")).uid == uids[0]
    uids.append((await ground.hub.submit(named, "team", fail_fast=False)).uid)
    with pytest.raises(UnknownCapture, match="2 captures are named 'nightly'"):
        await ground.hub.cancel("nightly")
    with pytest.raises(UnknownCapture, match="no capture has the id or name 'never'"):
        await ground.hub.cancel("never")
    assert [status.uid for status in await ground.hub.list()] == uids[::-1]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"suspend": True}, "spec.suspend"),
        ({"redact": ["Shapes"]}, "spec.redact"),
        ({"storage": {"profile": "eu"}}, "spec.storage.profile"),
    ],
)
async def test_what_cannot_be_done_is_refused_by_name(ground: Any, kit: Any, spec: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{field}: "):
        await ground.hub.submit(kit.make_request(**spec), "team", fail_fast=False)


async def test_a_request_stays_in_its_namespace(ground: Any, kit: Any) -> None:
    request = kit.make_request().model_copy(update={"metadata": Metadata(namespace="team")})
    assert (await ground.hub.submit(request, "", fail_fast=False)).namespace == "team"
    with pytest.raises(InvalidRequest, match=r"metadata.namespace: is 'team'"):
        await ground.hub.submit(request, "rival", fail_fast=False)
    with pytest.raises(InvalidRequest, match="must be a DNS label"):
        await ground.hub.submit(kit.make_request(), "../x", fail_fast=False)


def _message(status: pb.CaptureStatus, kind: str) -> str:
    return next(c.message for c in status.conditions if c.type == kind)


async def test_a_process_that_has_just_started_may_still_show_its_agent(ground: Any, kit: Any) -> None:
    young = {"first_seen_unix_ns": time.time_ns()}
    sidecar = await ground.add_sidecar(0, kit.make_process(0, has_agent=False, step=None, **young))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await ground.await_status(uid, lambda s: kit.condition(s, "TargetsResolved") == ("False", "Gathering"))
    sidecar.processes = [kit.make_process(0, **young)]
    await sidecar.beat()
    arm = await sidecar.expect("arm")
    assert arm.WhichOneof("start") == "first_step"


SILENT = {"polls_kineto": False, "last_poll_unix_ns": 0, "poll_interval_ns": 0}  # so far, since its sidecar is there


@pytest.mark.parametrize(
    ("fields", "age_ns", "says"),
    [
        (SILENT, 0, "1 of 2 ranks do not ask for orders yet"),
        ({"poll_interval_ns": 0}, 0, "1 of 2 ranks do not ask for orders regularly yet"),
        ({"poll_interval_ns": 0}, 60_000 * 10**6, "1 of 2 ranks do not ask for orders regularly yet"),
    ],
    ids=["no poll yet", "one poll", "an irregular poll"],
)
async def test_a_sidecar_that_was_restarted_is_given_the_time_to_hear_of_everybody(
    ground: Any, kit: Any, fields: dict[str, Any], age_ns: int, says: str
) -> None:
    """Kineto's client finds its sidecar again up to 5 s later, the agent at once."""
    ground.settings = dataclasses.replace(ground.settings, gather_ns=60 * 10**9)
    await ground.restart_hub()
    born = {"first_seen_unix_ns": time.time_ns() - age_ns}
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1, **born, **fields))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    status = await ground.await_status(uid, lambda s: kit.condition(s, "TargetsResolved")[1] == "Gathering")
    assert says in _message(status, "TargetsResolved")

    sidecar.processes = [kit.make_process(0), kit.make_process(1, **born)]
    await sidecar.beat()

    arm = await sidecar.expect("arm")
    assert len(arm.orders) == 2
    assert arm.deliver_until_unix_ns < time.time_ns() + 5 * 10**9


async def test_a_rank_that_never_polls_regularly_is_left_ten_seconds(ground: Any, kit: Any) -> None:
    before = time.time_ns()
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1, poll_interval_ns=0))
    await ground.hub.submit(kit.make_request(), "team", fail_fast=True)
    arm = await sidecar.expect("arm")
    assert len(arm.orders) == 2
    assert arm.deliver_until_unix_ns > before + 10 * 10**9
