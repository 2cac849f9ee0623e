"""Requests from `kubectl apply` to their end, against a real API server with simulated sidecars."""

import asyncio
import json

import pytest
from harness.kubernetes.request_ground import RequestGround, condition, message

pytestmark = pytest.mark.cluster


async def test_two_ranks_are_captured_and_the_end_is_written(ground: RequestGround) -> None:
    first, second = await ground.add_rank(0, 2), await ground.add_rank(1, 2)
    made = ground.ask()
    uid = await ground.deliver(first)
    await ground.deliver(second)
    status = await ground.until_finished()
    assert uid == made["metadata"]["uid"]
    assert {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]} == {
        "TargetsResolved": ("True", "Resolved"),
        "Captured": ("True", "AllCaptured"),
        "Uploaded": ("True", "AllUploaded"),
        "Analyzed": ("Unknown", "NoAnalyzer"),
        "Succeeded": ("True", "Complete"),
        "Ready": ("True", "Complete"),
        "Stalled": ("False", "Complete"),
    }
    assert status["ranks"] == {"targeted": 2, "armed": 2, "captured": 2, "uploaded": 2, "failed": 0}
    assert (status["target"], status["observedGeneration"]) == ("Job/llama", 1)
    assert (status["requester"], ground.ledger(made)["requester"]) == ("unknown", "unknown")  # no admission here
    audit = [line for line in map(json.loads, ground.log().splitlines()) if line["logger"] == "fleetprof.audit"]
    assert [(line["audit"], line["requester"], line["capture"]) for line in audit] == [
        ("taken", "unknown", uid),
        ("ended", "unknown", uid),
    ]
    assert audit[1]["outcome"] == "Complete"
    await ground.until(lambda: "finalizers" not in ground.made()["metadata"], "the finalizer to go")
    assert (ground.store / f"v1/{ground.namespace}/{uid}/ledger.json").exists()
    assert not ground.made()["metadata"].get("annotations")
    # It may come after the status.
    await ground.until(lambda: ("Normal", "Complete") in ground.events(), "the Event")


async def test_a_request_waits_for_pods_and_says_what_is_missing(ground: RequestGround) -> None:
    ground.ask()
    status = await ground.until_state("NothingMatched", kind="TargetsResolved")
    assert "there is no pod of Job/llama yet" in message(status, "TargetsResolved")
    assert condition(status) == ("Unknown", "Waiting")

    first = ground.add_pod("llama-0", "Pending")
    second = ground.add_pod("llama-1", "Pending")
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node has a GPU"}
    ground.set_phase("llama-0", "Pending", conditions=[unscheduled])
    await ground.until(lambda: "no node has a GPU" in message(ground.status(), "TargetsResolved"), "the reason")
    status = ground.status()
    assert condition(status, "TargetsResolved") == ("False", "PodsPending")
    assert message(status, "TargetsResolved") == (
        "2 of 2 pods are pending: llama-0: not scheduled: Unschedulable: no node has a GPU"
    )

    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s"}
    ground.set_phase("llama-0", "Running", conditions=[{"type": "PodScheduled", "status": "True"}])
    ground.set_phase("llama-1", "Running", initContainerStatuses=[
        {"name": "fleetprof", "state": {"waiting": waiting}, "image": "x", "imageID": "x", "ready": False,
         "restartCount": 3}])  # fmt: skip
    await ground.until(lambda: "CrashLoopBackOff" in message(ground.status(), "TargetsResolved"), "the reason")
    status = ground.status()
    assert condition(status, "TargetsResolved") == ("False", "SidecarsMissing")
    assert "the sidecar of pods llama-0, llama-1 has not connected" in message(status, "TargetsResolved")

    sidecars = [
        await ground.add_sidecar(name, uid, ground.process(rank, 2))
        for rank, (name, uid) in enumerate([("llama-0", first), ("llama-1", second)])
    ]
    for sidecar in sidecars:
        await ground.deliver(sidecar)
    assert condition(await ground.until_finished()) == ("True", "Complete")
    passing = {"Capturing", "Gathering"}  # of which each may be over before anybody looks
    await ground.until(lambda: ("Normal", "Complete") in ground.events(), "the last Event")
    reasons = [reason for _, reason in ground.events() if reason not in passing]
    assert reasons == ["NothingMatched", "PodsPending", "SidecarsMissing", "Complete"]


async def test_pods_without_a_sidecar_end_the_request(ground: RequestGround) -> None:
    ground.add_pod("llama-0", injected=False)
    ground.ask()
    status = await ground.until_finished()
    assert condition(status) == ("False", "NotInjected")
    assert "pod llama-0 was not injected" in message(status)
    assert [c["type"] for c in status["conditions"] if c["status"] != "False"] == ["Stalled"]
    assert condition(status, "TargetsResolved") == ("False", "NotInjected")
    assert all(c["message"] for c in status["conditions"])


async def test_the_deadline_ends_the_wait(ground: RequestGround) -> None:
    ground.ask(activeDeadlineSeconds=30)
    await ground.until_state("NothingMatched", kind="TargetsResolved")
    status = await ground.until_finished()
    assert condition(status) == ("False", "NothingMatched")
    assert "until the deadline of 30 s" in message(status)


async def test_a_suspended_request_begins_when_it_may(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    ground.ask(suspend=True)
    status = await ground.until_state("Suspended")
    assert {c["reason"] for c in status["conditions"]} == {"Suspended", "Waiting"}
    assert [m.WhichOneof("body") for m in sidecar.received] == []
    ground.must("PATCH", ground.path("profilerequests", "five"), {"spec": {"suspend": False}})
    await ground.deliver(sidecar)
    status = await ground.until_finished()
    assert (condition(status), status["observedGeneration"]) == (("True", "Complete"), 2)


async def test_a_suspended_request_can_be_deleted(ground: RequestGround) -> None:
    ground.ask(suspend=True)
    await ground.until_state("Suspended")
    ground.delete()
    await ground.until(lambda: ground.request() is None, "the deletion")


async def test_what_cannot_be_done_ends_with_the_field(ground: RequestGround) -> None:
    ground.ask(redact=["Names"])
    status = await ground.until_finished()
    assert condition(status) == ("False", "Unsupported")
    assert message(status).startswith("spec.redact: ")


async def test_two_requests_at_once(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    ground.ask("first")
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "ARMED")
    ground.ask("second", conflict="Fail")
    status = await ground.until_finished("second")
    assert condition(status) == ("False", "AlreadyCapturing")
    assert "capture first (" in message(status)
    assert condition(status, "TargetsResolved") == ("False", "AlreadyCapturing")
    await sidecar.deliver(ground.puts, arm)
    assert condition(await ground.until_finished("first")) == ("True", "Complete")


@pytest.mark.parametrize("ground", [("--max-captures-per-namespace", "1")], indirect=True)
async def test_places_are_for_captures_under_way(ground: RequestGround) -> None:
    for number in range(3):
        ground.ask(f"absent-{number}", target={"selector": {"matchLabels": {"app": "not-there"}}})
        await ground.until_state("NothingMatched", f"absent-{number}", "TargetsResolved")
    uid = ground.add_pod("llama-0")
    sidecar = await ground.add_sidecar("llama-0", uid, *(ground.process(rank, 3) for rank in range(3)))
    ground.ask("first", ranks={"list": [0]})
    arm = await sidecar.expect("arm")

    ground.ask("second", ranks={"list": [1]})
    status = await ground.until_state("Queued", "second", "TargetsResolved")
    assert f"place 1 in the queue: 1 captures of namespace {ground.namespace} are under way" in message(status)
    assert status["queuePosition"] == 1
    ground.ask("refused", ranks={"list": [2]}, conflict="Fail")
    assert condition(await ground.until_finished("refused")) == ("False", "TooManyCaptures")
    await sidecar.deliver(ground.puts, arm)
    await ground.deliver(sidecar)
    status = await ground.until_finished("second")
    assert (condition(status), "queuePosition" in status) == (("True", "Complete"), False)


async def test_deletion_withdraws_what_was_ordered(ground: RequestGround) -> None:
    first, second = await ground.add_rank(0, 2), await ground.add_rank(1, 2)
    made = ground.ask()
    arms = [await first.expect("arm"), await second.expect("arm")]
    await first.say_all(arms[0], "STARTED")
    await ground.until(lambda: ground.status().get("ranks", {}).get("targeted") == 2, "the order")
    ground.delete()
    assert [(await s.expect("cancel")).reason for s in (first, second)] == ["Cancelled", "Cancelled"]
    await second.say_all(arms[1], "FAILED", reason="Cancelled", message="withdrawn")
    await asyncio.sleep(1)
    assert ground.request() is not None  # a window runs yet
    await first.say_all(arms[0], "FAILED", reason="Cancelled", message="the window ended and was discarded")
    await ground.until(lambda: ground.request() is None, "the deletion")
    for sidecar in (first, second):
        assert (await sidecar.expect("release")).capture_id == made["metadata"]["uid"]
    assert ground.ledger(made)["outcome"] == "Cancelled"


async def test_a_sidecar_that_is_away_does_not_hold_a_deletion(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    made = ground.ask()
    await sidecar.say_all(await sidecar.expect("arm"), "STARTED")
    await ground.until(lambda: ground.status().get("ranks", {}).get("armed") == 1, "the order")
    await sidecar.disconnect()
    ground.delete()
    await ground.until(lambda: ground.request() is None, "the deletion")
    assert ground.ledger(made)["outcome"] == "Cancelled"


async def test_a_store_that_is_away_does_not_hold_a_deletion(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    made = ground.ask()
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "ARMED")
    await ground.until(lambda: ground.status().get("ranks", {}).get("armed") == 1, "the order")
    ground.lose_store()
    ground.delete()
    await sidecar.expect("cancel")
    await sidecar.say_all(arm, "FAILED", reason="Cancelled", message="withdrawn")
    await ground.until(lambda: ground.request() is None, "the deletion")
    ground.find_store()
    assert (await sidecar.expect("release")).capture_id == made["metadata"]["uid"]
    assert ground.ledger(made)["outcome"] == "Cancelled"


async def test_a_request_waits_for_a_store_that_is_away(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    ground.lose_store()
    ground.ask()
    await ground.until(lambda: "object store does not take" in message(ground.status()), "the reason")
    assert condition(ground.status()) == ("Unknown", "Waiting")
    ground.find_store()
    await ground.deliver(sidecar)
    assert condition(await ground.until_finished()) == ("True", "Complete")


async def test_a_request_that_waits_is_deleted_at_once(ground: RequestGround) -> None:
    made = ground.ask()
    await ground.until_state("NothingMatched", kind="TargetsResolved")
    ground.delete()
    await ground.until(lambda: ground.request() is None, "the deletion")
    assert ground.ledger(made)["outcome"] == "Cancelled"


async def test_a_request_that_takes_the_place_of_another_is_its_own(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    ground.ask()
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "STARTED")
    await ground.until(lambda: ground.status().get("ranks", {}).get("armed") == 1, "the order")
    # Gone by force, so that the first one's last words come when the second is there.
    ground.must("PATCH", ground.path("profilerequests", "five"), {"metadata": {"finalizers": None}})
    ground.delete()
    if ground.request() is not None:
        ground.must("PATCH", ground.path("profilerequests", "five"), {"metadata": {"finalizers": None}})
    await ground.until(lambda: ground.request() is None, "the deletion")
    second = ground.ask(suspend=True)
    await sidecar.expect("cancel")
    await sidecar.say_all(arm, "FAILED", reason="Cancelled", message="withdrawn")
    await sidecar.expect("release")
    await ground.until_state("Suspended")
    ground.must("PATCH", ground.path("profilerequests", "five"), {"spec": {"suspend": False}})
    uid = await ground.deliver(sidecar)
    assert uid == second["metadata"]["uid"]
    assert condition(await ground.until_finished()) == ("True", "Complete")


async def test_a_pod_that_is_deleted_mid_capture_ends_its_rank(ground: RequestGround) -> None:
    first, second = await ground.add_rank(0, 2), await ground.add_rank(1, 2)
    ground.ask()
    await second.expect("arm")
    await ground.deliver(first)
    await second.disconnect()
    ground.remove_pod("llama-1")
    status = await ground.until_finished()
    assert condition(status) == ("True", "PartiallyCaptured")
    assert (status["ranks"]["uploaded"], status["ranks"]["failed"]) == (1, 1)
    assert "SidecarLost" in message(status)
    (failure,) = status["failures"]
    assert (failure["reason"], failure["ranks"], failure["firstRanks"]) == ("SidecarLost", 1, [1])
    described = ground.api.kubectl("describe", "profreq", "five", "-n", ground.namespace).stdout
    assert "SidecarLost" in described.partition("Failures:")[2].partition("Observed Generation:")[0]


async def test_the_time_to_live_deletes_what_has_ended(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    made = ground.ask(ttlSecondsAfterFinished=2)
    uid = await ground.deliver(sidecar)
    await ground.until(lambda: ground.request() is None, "the deletion")
    assert uid == made["metadata"]["uid"]
    assert ground.ledger(made)["outcome"] == "Complete"  # what was captured stays


async def test_the_time_to_live_may_be_set_later(ground: RequestGround) -> None:
    ground.ask(redact=["Names"])
    await ground.until_finished()
    ground.must("PATCH", ground.path("profilerequests", "five"), {"spec": {"ttlSecondsAfterFinished": 0}})
    await ground.until(lambda: ground.request() is None, "the deletion")


async def test_a_change_after_the_end_is_seen_in_observed_generation(ground: RequestGround) -> None:
    ground.add_pod("llama-0", injected=False)
    ground.ask()
    ended = await ground.until_finished()
    ground.must("PATCH", ground.path("profilerequests", "five"), {"spec": {"ttlSecondsAfterFinished": 3600}})
    await ground.until(lambda: ground.status()["observedGeneration"] == 2, "the generation")
    later = ground.status()
    assert {c.pop("observedGeneration") for c in later["conditions"]} == {2}
    assert {c.pop("observedGeneration") for c in ended["conditions"]} == {1}
    assert later == ended | {"observedGeneration": 2}  # nothing else has changed

    ground.end_operator()
    ground.must("PATCH", ground.path("profilerequests", "five"), {"spec": {"ttlSecondsAfterFinished": 7200}})
    ground.start_operator()
    await ground.until(lambda: ground.status()["observedGeneration"] == 3, "the generation that came in between")


async def test_an_annotation_takes_a_capture_back_and_leaves_the_request(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    ground.ask()
    arm = await sidecar.expect("arm")
    ground.must(
        "PATCH", ground.path("profilerequests", "five"), {"metadata": {"annotations": {"fleetprof.io/cancel": "true"}}}
    )
    await sidecar.expect("cancel")
    await sidecar.say_all(arm, "FAILED", reason="Cancelled", message="withdrawn")
    assert condition(await ground.until_finished()) == ("False", "Cancelled")
    await ground.until(lambda: "finalizers" not in ground.made()["metadata"], "the finalizer to go")


async def test_pods_of_a_deployment_are_found_by_their_owners(ground: RequestGround) -> None:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
        "containers": [{"name": "trainer", "image": "x"}]}}}  # fmt: skip
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama", "uid": "d-1", "controller": True}
    made = ground.must("POST", ground.path("replicasets"), {
        "metadata": {"name": "llama-7f", "ownerReferences": [owner]}, "spec": spec})  # fmt: skip
    parent = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "llama-7f", "uid": made["metadata"]["uid"]}
    uid = ground.add_pod("mine", labels={}, ownerReferences=[parent | {"controller": True}])
    ground.add_pod("other", labels={})
    sidecar = await ground.add_sidecar("mine", uid, ground.process(0, 1))
    ground.ask(target={"workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}})
    await ground.deliver(sidecar)
    assert condition(await ground.until_finished()) == ("True", "Complete")


async def test_the_life_of_a_request_costs_few_writes(ground: RequestGround) -> None:
    sidecar = await ground.add_rank(0, 1)
    ground.ask()
    await ground.deliver(sidecar)
    await ground.until_finished()
    writes = {
        line.split('"')[1]: float(line.rsplit(" ", 1)[1])
        for line in ground.scrape().splitlines()
        if line.startswith("fleetprof_api_writes_total")
    }
    assert writes["status"] <= 4
    assert writes["event"] <= 3
    made = ground.made()["metadata"]
    managers = {m["manager"] for m in made["managedFields"]}
    assert made["generation"] == 1
    assert len(managers) <= 3
    assert {m["manager"] for m in made["managedFields"] if m.get("subresource") == "status"} == {"fleetprof-operator"}
