"""The uploads that a sidecar may make, and those that it may not."""

from dataclasses import replace
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_store.base import StoreError


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
    for sidecar, announced, kind, says in cases:
        await sidecar.ask_upload(uid, announced, b"x", kind)
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
    upload_request = pb.UploadRequest(capture_id=uid, process_id=order.process_id, rank=0, object=pb.TRACE, parts=parts)
    await sidecar.call.write(pb.SidecarMessage(upload_request=upload_request))
    grant = await sidecar.expect("upload_grant")
    assert says in grant.refusal
    assert grant.retry_after_ns == 0


@pytest.mark.attack
@pytest.mark.parametrize(("kind", "most"), [(pb.SAMPLES, 4 << 20), (pb.SUMMARY, 1 << 17)])
async def test_what_others_read_whole_has_a_limit_of_its_own(
    ground: Any, kit: Any, kind: pb.ObjectKind.ValueType, most: int
) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    order = (await sidecar.expect("arm")).orders[0]
    for size, refusal in ((most, ""), (most + 1, f"{most + 1} bytes are more than the {most} that this request")):
        parts = [pb.Part(size_bytes=size, sha256=bytes(32))]
        request = pb.UploadRequest(capture_id=uid, process_id=order.process_id, rank=0, object=kind, parts=parts)
        await sidecar.call.write(pb.SidecarMessage(upload_request=request))
        assert (await sidecar.expect("upload_grant")).refusal.startswith(refusal)


async def test_an_upload_that_was_not_granted_is_begun_again(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    order = (await sidecar.expect("arm")).orders[0]
    completion = pb.UploadDone(capture_id=uid, process_id=order.process_id, object=pb.TRACE, upload_id="?", etags=["a"])
    await sidecar.call.write(pb.SidecarMessage(upload_done=completion))
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


@pytest.mark.attack
async def test_what_is_said_again_and_again_reaches_the_store_once(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    order = arm.orders[0]
    await sidecar.say_all(arm, "WRITTEN")
    calls = ground.store.count_calls()
    await sidecar.ask_upload(uid, order, b"trace")
    grant = await sidecar.expect("upload_grant")
    etags = [ground.store.receive(part.url, b"trace") for part in grant.parts]
    completion = pb.UploadDone(
        capture_id=uid, process_id=order.process_id, object=pb.TRACE, upload_id=grant.upload_id, etags=etags
    )
    for _ in range(50):
        await sidecar.call.write(pb.SidecarMessage(upload_done=completion))
    assert (await sidecar.expect("upload_verdict")).accepted
    await sidecar.ask_upload(uid, order, b"samples", pb.SAMPLES)  # answered when all before it were heard
    await sidecar.expect("upload_grant")
    verdicts = [m.upload_verdict for m in sidecar.received if m.WhichOneof("body") == "upload_verdict"]
    assert all(verdict.accepted for verdict in verdicts)  # a repeated word does not make it upload again
    assert calls["complete_upload"] == 1


@pytest.mark.attack
async def test_an_upload_that_failed_is_not_joined_again(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    order = (await sidecar.expect("arm")).orders[0]
    calls = ground.store.count_calls()
    await sidecar.ask_upload(uid, order, b"trace")
    grant = await sidecar.expect("upload_grant")
    wrong = pb.UploadDone(
        capture_id=uid, process_id=order.process_id, object=pb.TRACE, upload_id=grant.upload_id, etags=["?"]
    )
    for _ in range(5):
        await sidecar.call.write(pb.SidecarMessage(upload_done=wrong))
        assert not (await sidecar.expect("upload_verdict")).accepted
    assert calls["complete_upload"] == 1
    assert (await sidecar.upload(ground.store, uid, order, b"trace")).accepted  # begun again, it is as good as any


@pytest.mark.attack
async def test_claims_of_an_upload_are_looked_up_once(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    calls = ground.store.count_calls()
    ground.store.pull_plug()
    for _ in range(200):
        await sidecar.say_all(arm, "UPLOADED")
    await sidecar.say(uid, arm.orders[0].process_id, 7, "UPLOADED")  # of a rank that is not its own
    ground.store.plug_in()
    assert kit.states(await ground.await_end(uid)) == {0: "UploadFailed"}
    tries = calls["list"]
    for _ in range(200):
        await sidecar.say_all(arm, "UPLOADED")
    await sidecar.beat()
    assert calls["list"] == tries < 50


@pytest.mark.attack
async def test_the_number_of_signed_parts_is_bounded(ground: Any, kit: Any) -> None:
    ground.settings = replace(ground.settings, max_parts=32)
    await ground.restart_hub()
    sidecar = await ground.add_sidecar(0, *[kit.make_process(rank) for rank in range(3)])
    uid = (await ground.hub.submit(kit.make_request(limits={"maxTraceBytes": 1 << 36}), "team", fail_fast=True)).uid
    orders = (await sidecar.expect("arm")).orders

    async def ask(order: pb.Order, count: int) -> pb.UploadGrant:
        parts = [pb.Part(size_bytes=8 << 20, sha256=bytes(32))] * count
        request = pb.UploadRequest(
            capture_id=uid, process_id=order.process_id, rank=order.rank, object=pb.TRACE, parts=parts
        )
        await sidecar.call.write(pb.SidecarMessage(upload_request=request))
        grant: pb.UploadGrant = await sidecar.expect("upload_grant")
        return grant

    refused = await ask(orders[0], 33)
    assert (refused.refusal, refused.retry_after_ns) == ("33 parts are more than 32; make each larger", 0)
    assert [len((await ask(order, 32)).parts) for order in orders[:2]] == [32, 32]
    later = await ask(orders[2], 1)
    assert "are under way; wait for them" in later.refusal
    assert later.retry_after_ns > 0
    assert len((await ask(orders[0], 32)).parts) == 32  # in place of its first
