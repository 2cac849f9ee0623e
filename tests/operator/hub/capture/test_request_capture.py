"""Requests from submission to their end, over real gRPC with scripted sidecars."""

import asyncio
from typing import Any

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Ledger, RankState
from fleetprof_api.request import InvalidRequest, Metadata
from fleetprof_operator.hub.capture import arm_stage
from fleetprof_operator.hub.capture.begin_permission import note_beginning
from fleetprof_operator.hub.capture.capture_state import CaptureState
from fleetprof_operator.hub.capture.environment import AnalysisOrder
from fleetprof_operator.hub.planning.resolution import Resolution
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
    await sidecar.say_all(arm, "FAILED", reason="Busy", message="another profile was running")
    status = await ground.await_end(uid)

    assert kit.succeeded(status) == ("False", "AllRanksFailed")
    assert "1 Busy. Rank 0: another profile was running" in _message(status, "Succeeded")
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
    async def fail(order: AnalysisOrder) -> None:
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


async def test_who_waits_for_the_same_ranks_gets_them_in_turn(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    uids, orders = [], []
    for place in range(3):
        wanted = kit.make_request(ranks={"list": [1]})
        uids.append((await ground.hub.submit(wanted, "team", fail_fast=False)).uid)
        if place:
            message = f"place {place} in the queue for these ranks: "
            status = await ground.await_status(uids[-1], lambda s, place=place: s.queue_position == place)
            assert any(message in c.message for c in status.conditions)
    for uid in uids:
        orders.append(await sidecar.expect("arm"))
        assert orders[-1].capture_id == uid
        await sidecar.deliver(ground.store, orders[-1])
        status = await ground.await_end(uid)
        assert (kit.succeeded(status), status.queue_position) == (("True", "Complete"), 0)


async def test_who_begins_first_keeps_the_ranks_while_the_store_is_slow(
    ground: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sidecar = await ground.add_sidecar(0)
    counted = asyncio.Event()

    async def count_slowly(state: CaptureState, found: Resolution) -> bool:
        begun.append(state.ledger.uid)
        if state.ledger.uid == begun[0]:
            await counted.wait()
        return await note_beginning(state, found)

    monkeypatch.setattr(arm_stage, "note_beginning", count_slowly)
    begun: list[str] = []
    uids: list[str] = []
    for place in range(2):
        uids.append((await ground.hub.submit(kit.make_request(), "team", fail_fast=False)).uid)
        await ground.await_status(uids[-1], lambda s, place=place: s.queue_position == place)
    counted.set()
    assert (await sidecar.expect("arm")).capture_id == uids[0]


@pytest.mark.parametrize("restart", [False, True])
async def test_waiting_in_the_queue_does_not_count_for_the_deadline(ground: Any, kit: Any, restart: bool) -> None:
    sidecar = await ground.add_sidecar(0)
    first = (await ground.hub.submit(kit.make_request(deadline_s=86_400), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "ARMED")
    second = (await ground.hub.submit(kit.make_request(deadline_s=60), "team", fail_fast=True)).uid
    await ground.await_status(second, lambda s: s.queue_position == 1)
    if restart:
        await ground.restart_hub()
        await ground.reconnect()
        await ground.await_status(second, lambda s: s.queue_position == 1)
    ground.skew_ns += 600 * 10**9
    await sidecar.beat()
    await sidecar.deliver(ground.store, arm)
    assert kit.succeeded(await ground.await_end(first)) == ("True", "Complete")
    again = await sidecar.expect("arm")
    assert (again.capture_id, again.give_up_unix_ns > ground.clock()) == (second, True)
    await sidecar.deliver(ground.store, again)
    assert kit.succeeded(await ground.await_end(second)) == ("True", "Complete")


async def test_a_request_that_waits_in_the_queue_can_be_cancelled(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    await ground.hub.submit(kit.make_request(), "team", fail_fast=True)
    await sidecar.expect("arm")
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await ground.await_status(uid, lambda s: s.queue_position == 1)
    await ground.hub.cancel(uid)
    status = await ground.await_end(uid)
    assert (kit.succeeded(status), status.queue_position) == (("False", "Cancelled"), 0)


async def test_two_requests_for_the_same_ranks(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    first = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")

    with pytest.raises(CaptureRefused, match=f"{first}.*is capturing rank 0, 1 of Job/llama") as caught:
        await ground.hub.submit(kit.make_request(conflict="Fail"), "team", fail_fast=True)
    assert caught.value.reason == "AlreadyCapturing"
    second = await ground.hub.submit(kit.make_request(ranks={"list": [1]}, conflict="Fail"), "team", fail_fast=False)
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
