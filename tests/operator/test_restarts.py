"""The operator dies, or is ended, at any moment of a request's life; the next one finishes what was begun."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import grpc.aio
import pytest
from harness.hub.scripted_sidecar import ScriptedSidecar
from harness.kubernetes.request_ground import RequestGround, condition

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"

pytestmark = pytest.mark.cluster


async def test_killed_while_ranks_are_captured(ground: RequestGround) -> None:
    first, second = await ground.add_rank(0, 2), await ground.add_rank(1, 2)
    made = ground.ask()
    arms = [await first.expect("arm"), await second.expect("arm")]
    for sidecar, arm in zip((first, second), arms, strict=True):
        await sidecar.say_all(arm, "ARMED")
    await ground.until(lambda: ground.status().get("ranks", {}).get("armed") == 2, "the order")
    ground.kill_operator()
    ground.start_operator()
    await ground.reconnect()
    for sidecar, arm in zip((first, second), arms, strict=True):
        await sidecar.deliver(ground.puts, arm)
    status = await ground.until_finished()
    assert condition(status) == ("True", "Complete")
    assert status["ranks"] == {"targeted": 2, "armed": 2, "captured": 2, "uploaded": 2, "failed": 0}
    assert {e["pod_uid"] for e in ground.ledger(made)["entries"]} == {s.identity.pod_uid for s in (first, second)}
    await ground.until(lambda: "finalizers" not in ground.made()["metadata"], "the finalizer to go")


async def test_killed_while_a_request_waits(ground: RequestGround) -> None:
    ground.ask()
    await ground.until_state("NothingMatched", kind="TargetsResolved")
    ground.kill_operator()
    ground.start_operator()
    sidecar = await ground.add_rank(0, 1)
    await ground.deliver(sidecar)
    assert condition(await ground.until_finished()) == ("True", "Complete")


async def test_killed_before_the_end_is_written(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    made = ground.ask()
    await ground.deliver(sidecar)
    await ground.until(lambda: ground.ledger(made).get("outcome"), "the ledger's end")
    ground.kill_operator()
    ground.start_operator()
    assert condition(await ground.until_finished()) == ("True", "Complete")
    await ground.until(lambda: ("Normal", "Complete") in ground.events(), "the Event")
    assert [reason for _, reason in ground.events()].count("Complete") == 1


async def test_deleted_while_there_is_no_operator(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    made = ground.ask()
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "ARMED")
    await ground.until(lambda: ground.status().get("ranks", {}).get("armed") == 1, "the order")
    ground.kill_operator()
    ground.delete()
    ground.start_operator()
    await ground.reconnect()
    await sidecar.expect("cancel")
    await sidecar.say_all(arm, "FAILED", reason="Cancelled", message="withdrawn")
    await ground.until(lambda: ground.request() is None, "the deletion")
    await ground.until(lambda: ground.ledger(made).get("outcome") == "Cancelled", "the ledger's end")


@asynccontextmanager
async def refuse_finalizers(ground: RequestGround) -> AsyncIterator[None]:
    """From entry to exit no request of the ground's namespace gets a finalizer."""
    rule = {"apiGroups": ["fleetprof.io"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["*"]}
    names = {"matchLabels": {"kubernetes.io/metadata.name": ground.namespace}}
    spec = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": names},
        "validations": [{"expression": "!has(object.metadata.finalizers)", "message": "no finalizers here"}],
    }
    binding = {"policyName": ground.namespace, "validationActions": ["Deny"]}
    made = [(POLICIES, spec), (BINDINGS, binding)]
    for path, document in made:
        ground.must("POST", path, {"metadata": {"name": ground.namespace}, "spec": document})
    ground.ask("probe", suspend=True)
    path, change = ground.path("profilerequests", "probe"), {"metadata": {"finalizers": ["example.com/any"]}}
    try:
        # A policy is in force some time after it was made.
        await ground.until(lambda: ground.api.call("PATCH", f"{path}?dryRun=All", change)[0] == 422, "the policy")
        ground.delete("probe")
        yield
    finally:
        for path, _ in made:
            ground.must("DELETE", f"{path}/{ground.namespace}")


async def test_nothing_is_begun_before_a_deletion_would_wait_for_it(ground: RequestGround) -> None:
    """Deleted without its finalizer while no operator runs, a request is never seen again; else it is begun at last."""
    sidecar = await ground.add_rank(0, 1)
    async with refuse_finalizers(ground):
        deleted, kept = ground.ask("deleted"), ground.ask("kept")
        await ground.until(lambda: 'fleetprof_requests{state="New"} 2.0' in ground.scrape(), "the operator to see them")
        await asyncio.sleep(1)
        ground.kill_operator()
        assert [ground.ledger(deleted), ground.ledger(kept)] == [{}, {}]
        ground.delete("deleted")
        assert ground.request("deleted") is None
        ground.start_operator()
        await ground.reconnect()
        await ground.until(lambda: ground.ledger(kept), "the one that is kept")
        assert await ground.deliver(sidecar) == kept["metadata"]["uid"]
        assert condition(await ground.until_finished("kept")) == ("True", "Complete")


async def test_gone_by_force_while_there_is_no_operator(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    made = ground.ask()
    await sidecar.say_all(await sidecar.expect("arm"), "ARMED")
    await ground.until(lambda: "finalizers" in ground.made()["metadata"], "the finalizer")
    ground.kill_operator()
    ground.delete()
    ground.must("PATCH", ground.path("profilerequests", "five"), {"metadata": {"finalizers": None}})
    ground.start_operator()
    await ground.reconnect()
    assert (await sidecar.expect("release")).capture_id == made["metadata"]["uid"]  # which withdraws the order


async def test_an_orderly_end_is_quick_and_leaves_the_capture_to_the_next(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    ground.ask()
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "STARTED")
    assert ground.end_operator() == 0
    assert not ground.status().get("completionTime")
    ground.start_operator()
    await ground.reconnect()
    await sidecar.deliver(ground.puts, arm)
    assert condition(await ground.until_finished()) == ("True", "Complete")


async def test_an_orderly_end_does_not_wait_for_a_deletion(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    made = ground.ask()
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "STARTED")
    await ground.until(lambda: ground.status().get("ranks", {}).get("armed") == 1, "the order")
    ground.delete()
    await sidecar.expect("cancel")  # which nobody confirms
    assert ground.end_operator() == 0
    (entry,) = ground.ledger(made)["entries"]
    message = "cancelled by the user; the sidecar has not confirmed it"
    assert (entry["reason"], entry["message"]) == ("Cancelled", message)
    ground.start_operator()
    await ground.until(lambda: ground.request() is None, "the deletion")
    await ground.reconnect()
    assert (await sidecar.expect("release")).capture_id == made["metadata"]["uid"]


async def test_the_api_server_is_away_in_the_middle_of_a_capture(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    ground.ask()
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "STARTED")
    await ground.until(lambda: ground.status().get("ranks", {}).get("armed") == 1, "the order")
    ground.api.kill_api()
    try:
        await sidecar.deliver(ground.puts, arm)  # hub and sidecars need no API server
        await asyncio.sleep(3)
    finally:
        ground.api.restart_api()
    assert condition(await ground.until_finished()) == ("True", "Complete")
    await ground.until(lambda: "finalizers" not in ground.made()["metadata"], "the finalizer to go")
    ground.ask("after")  # and it sees what comes afterwards
    await ground.deliver(sidecar)
    assert condition(await ground.until_finished("after")) == ("True", "Complete")


async def bring_to_the_end(ground: RequestGround, sidecar: ScriptedSidecar, chance: random.Random) -> None:
    """A sidecar that goes on with its order through every break of its stream."""
    arm = None
    states = ["ARMED", "STARTED", "WRITTEN"]
    while True:
        with suppress(TimeoutError, OSError, AssertionError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
            async with asyncio.timeout(6):
                arm = arm or await sidecar.expect("arm")
                while states:
                    await asyncio.sleep(chance.random())
                    await sidecar.say_all(arm, states[0])
                    states.pop(0)
                for order in arm.orders:
                    verdict = await sidecar.upload(ground.puts, arm.capture_id, order, b"trace")
                    assert verdict.accepted
                await sidecar.say_all(arm, "UPLOADED")
                return
        await asyncio.sleep(0.2)


def is_held(body: dict[str, Any]) -> bool:
    """Tells whether the operator has seen it: its deletion waits, or it has ended."""
    return "finalizers" in body["metadata"] or "completionTime" in body.get("status", {})


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("deleted", [False, True], ids=["", "and-deleted"])
async def test_killed_again_and_again_at_any_moment(ground: RequestGround, seed: int, deleted: bool) -> None:
    chance = random.Random(seed)
    # It asks for its order so seldom that the start is later than all kills: until then a lost order is repeated.
    sidecars = [await ground.add_rank(rank, 2, poll_interval_ns=120 * 10**9) for rank in range(2)]
    made = ground.ask()
    driving = [asyncio.create_task(bring_to_the_end(ground, sidecar, chance)) for sidecar in sidecars]
    for number in range(3):
        await asyncio.sleep(2 * chance.random())
        if deleted and number == 2:
            await ground.until(lambda: is_held(ground.made()), "the finalizer")
            ground.delete()
        ground.kill_operator()
        ground.start_operator()
        await ground.reconnect()
    try:
        if deleted:
            await ground.until(lambda: ground.request() is None, "the deletion")
        else:
            assert condition(await ground.until_finished()) == ("True", "Complete")
        ledger = await ground.until(lambda: (found := ground.ledger(made)).get("outcome") and found, "the ledger's end")
    finally:
        for task in driving:
            task.cancel()
        await asyncio.gather(*driving, return_exceptions=True)
    assert ledger["outcome"] in (("Complete", "Cancelled") if deleted else ("Complete",))
    for entry in ledger["entries"]:
        assert entry["state"] == "UPLOADED" or (entry["reason"] == "Cancelled" and entry["message"]), entry


async def _ask_while_there_is_no_operator(ground: RequestGround, *specs: dict[str, Any]) -> list[str]:
    """The uids of z-first, a-second and b-third: not the order in which the API server lists them."""
    first, *others = zip(("z-first", "a-second", "b-third"), specs or ({},) * 3, strict=True)
    ground.kill_operator()
    uids = [ground.ask(first[0], **first[1])["metadata"]["uid"]]
    await asyncio.sleep(1.1)  # creationTimestamp has whole seconds
    uids += [ground.ask(name, **spec)["metadata"]["uid"] for name, spec in others]
    ground.start_operator()
    return uids


def _have_places(ground: RequestGround, places: dict[str, int]) -> bool:
    return all(ground.status(name).get("queuePosition") == place for name, place in places.items())


@pytest.mark.parametrize("ground", [("--max-captures-per-namespace", "1")], indirect=True)
async def test_a_namespace_s_queue_has_its_order_after_a_restart(ground: RequestGround) -> None:
    pod = ground.add_pod("llama-0")
    sidecar = await ground.add_sidecar("llama-0", pod, *(ground.process(rank, 3) for rank in range(3)))
    uids = await _ask_while_there_is_no_operator(ground, *({"ranks": {"list": [rank]}} for rank in range(3)))
    await ground.reconnect()
    await ground.until(partial(_have_places, ground, {"a-second": 1, "b-third": 2}), "the places")
    assert [await ground.deliver(sidecar) for _ in uids] == uids


async def test_who_waits_for_the_same_ranks_has_the_order_after_a_restart(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    uids = await _ask_while_there_is_no_operator(ground)
    await ground.reconnect()
    assert [await ground.deliver(sidecar) for _ in uids] == uids
