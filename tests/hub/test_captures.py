"""Requests from submission to their end, over real gRPC with scripted sidecars."""

from typing import Any

import msgspec
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger, RankState


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
