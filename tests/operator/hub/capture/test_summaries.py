"""Summaries in place of traces: what the order says, what counts as delivered, which traces are asked for after all."""

import asyncio
from typing import Any

import pytest
from fleetprof_api import keys
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.report.report import Report, write_report
from fleetprof_operator.hub.capture.environment import AnalysisOrder
from fleetprof_operator.hub.settings import SECOND_NS


async def summarise(sidecar: Any, store: Any, arm: pb.Arm) -> None:
    """All ranks up to a stored summary."""
    for state in ("ARMED", "STARTED", "WRITTEN"):
        await sidecar.say_all(arm, state)
    for order in arm.orders:
        verdict = await sidecar.upload(store, arm.capture_id, order, b"summary", kind=pb.SUMMARY)
        assert verdict.accepted, verdict.message
    await sidecar.say_all(arm, "UPLOADED")


@pytest.mark.parametrize(
    ("traces", "ordered"),
    [("Full", pb.TRACES_FULL), ("Summary", pb.TRACES_SUMMARY), ("Auto", pb.TRACES_AUTO)],
)
async def test_the_order_says_what_is_to_be_stored(ground: Any, kit: Any, traces: str, ordered: int) -> None:
    sidecar = await ground.add_sidecar(0)
    await ground.hub.submit(kit.make_request(traces=traces), "team", fail_fast=True)
    arm = await sidecar.expect("arm")
    assert (arm.traces, arm.asked_iterations) == (ordered, 5)


async def test_the_order_says_which_classes_kernels_are_asked_to_be(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    analysis = {
        "kernelClasses": [{"pattern": "my_reduce", "class": "Communication"}, {"pattern": "a*b", "class": "Memory"}]
    }
    await ground.hub.submit(kit.make_request(traces="Summary", analysis=analysis), "team", fail_fast=True)
    arm = await sidecar.expect("arm")
    assert [(entry.pattern, entry.work_class) for entry in arm.kernel_classes] == [
        ("my_reduce", "communication"), ("a*b", "memory"),
    ]  # fmt: skip


async def test_the_order_names_the_range_that_bounds_iterations(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    spec = {"window": {"durationMillis": 500}, "iteration": {"range": "execute_model"}}
    await ground.hub.submit(kit.make_request(**spec), "team", fail_fast=True)
    assert (await sidecar.expect("arm")).iteration_range == "execute_model"


async def test_a_stored_summary_is_a_delivered_rank(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    uid = (await ground.hub.submit(kit.make_request(traces="Summary"), "team", fail_fast=True)).uid
    await summarise(sidecar, ground.store, await sidecar.expect("arm"))
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("True", "Complete")
    assert kit.states(status) == {0: "UPLOADED", 1: "UPLOADED"}
    assert ground.analyzed == [("team", uid)]
    stored = {info.key for info in ground.store.list(keys.request_prefix("team", uid) + "ranks/")}
    assert stored == {keys.summary_key("team", uid, rank) for rank in (0, 1)}


async def test_a_hub_that_was_restarted_finds_the_summaries(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(traces="Summary"), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    for state in ("ARMED", "STARTED", "WRITTEN"):
        await sidecar.say_all(arm, state)
    await sidecar.upload(ground.store, uid, arm.orders[0], b"summary", kind=pb.SUMMARY)
    await ground.restart_hub()
    await sidecar.disconnect()
    sidecar.held[uid, "p0"].state = pb.UPLOADED
    await sidecar.connect(ground.server.port)
    assert kit.states(await ground.await_end(uid)) == {0: "UPLOADED"}


async def test_auto_fetches_the_traces_that_the_report_names(ground: Any, kit: Any) -> None:
    async def analyze(order: AnalysisOrder) -> None:
        ground.store.put(keys.report_key(order.namespace, order.uid), write_report(Report(whole_traces=[2, 7])))

    ground.analyze = analyze
    await ground.restart_hub()
    sidecar = await ground.add_sidecar(0, *(kit.make_process(n) for n in range(4)))
    uid = (await ground.hub.submit(kit.make_request(traces="Auto"), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    await summarise(sidecar, ground.store, arm)
    fetch = await sidecar.expect("fetch_traces")
    assert (fetch.capture_id, list(fetch.process_ids)) == (uid, ["p2"])
    assert not any(message.WhichOneof("body") == "release" for message in sidecar.received)
    assert (await sidecar.upload(ground.store, uid, arm.orders[2], b"trace")).accepted
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")
    assert ground.store.get(keys.trace_key("team", uid, 2)) == b"trace"
    assert (await sidecar.expect("release")).capture_id == uid


async def test_a_trace_that_does_not_come_is_not_waited_for_without_end(ground: Any, kit: Any) -> None:
    async def analyze(order: AnalysisOrder) -> None:
        ground.store.put(keys.report_key(order.namespace, order.uid), write_report(Report(whole_traces=[0])))

    ground.analyze = analyze
    await ground.restart_hub()
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(traces="Auto"), "team", fail_fast=True)).uid
    await summarise(sidecar, ground.store, await sidecar.expect("arm"))
    await sidecar.expect("fetch_traces")
    await asyncio.sleep(0.1)
    assert not (await ground.status(uid)).finished
    ground.skew_ns += ground.settings.fetch_patience_ns + SECOND_NS
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


async def test_a_report_that_cannot_be_read_asks_for_nothing(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    uid = (await ground.hub.submit(kit.make_request(traces="Auto"), "team", fail_fast=True)).uid
    await summarise(sidecar, ground.store, await sidecar.expect("arm"))
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")
    assert (await sidecar.expect("release")).capture_id == uid
