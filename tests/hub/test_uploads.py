"""What a sidecar may upload, and what it may not."""

from typing import Any

import pytest
from fleetprof_api import hub_pb2 as pb
from fleetprof_api.store.base import StoreError


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
