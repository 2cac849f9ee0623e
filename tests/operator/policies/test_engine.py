"""Turns over an API in memory: what comes of what fires, whatever fails and whoever is restarted in between."""

import asyncio
import copy
import threading
from typing import Any

import pytest
from fleetprof_api import keys
from fleetprof_api.pods import ALERTS_ANNOTATION, POLICY_AUTHOR_ANNOTATION, POLICY_LABEL
from fleetprof_api.policy.stored import read_policies
from fleetprof_operator.policies import engine
from fleetprof_operator.policies.engine import MOST_ALERTS
from fleetprof_operator.policies.triggers.alerts import FiringAlert
from harness.policies.engine_scene import POLICY, ROOT, SECOND, Scene, Told
from hypothesis import given, settings
from hypothesis import strategies as st


async def test_an_alert_makes_one_request_which_is_followed_to_its_end() -> None:
    scene = Scene("llama")
    scene.tell("llama")
    await scene.turn()
    ((name, made),) = scene.api.requests.items()
    assert made["metadata"]["labels"] == {POLICY_LABEL: "starved"}
    target = {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}}
    assert made["spec"] == {"window": {"iterations": 5}, "target": target}
    (entry,) = scene.status["captures"]
    assert (entry["request"], entry["cause"]) == (name, "the alert Low fires: Low use.")
    assert "createdTime" in entry
    scene.end_requests()
    for _ in range(4):
        await scene.turn()
    (entry,) = scene.status["captures"]
    assert (entry["result"], entry["headline"]) == ("Complete", "It waits for data.")
    assert (entry["reportURL"], entry["traceBytes"]) == ("https://fleetprof/r/1", 7)
    assert "notifiedTime" in entry
    kinds = [(event["involvedObject"]["kind"], event["reason"]) for event in scene.api.events]
    assert kinds == [
        ("ProfilePolicy", "Captured"),
        ("ProfileRequest", "MadeByPolicy"),
        ("ProfilePolicy", "CaptureEnded"),
    ]
    conditions = {c["type"]: (c["status"], c["reason"]) for c in scene.status["conditions"]}
    assert conditions == {"Ready": ("True", "Watching")}
    assert scene.status["observedGeneration"] == 1


async def test_a_job_that_stands_is_asked_for_stacks_and_the_sentence_is_told() -> None:
    scene = Scene("llama", trigger={"type": "Stalled", "stalled": {"forSeconds": 60}}, bytesPerDay=1 << 20)
    scene.notifier = Told()
    scene.start()
    for scene.jobs.iteration in (1, 2, 2):
        await scene.turn(30)
    assert not scene.api.made
    for _ in range(3):
        await scene.turn(30)
    ((name, made),) = scene.api.requests.items()
    target = {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}}
    assert made["spec"] == {"capture": {"stacks": {}}, "target": target}
    (entry,) = scene.status["captures"]
    assert entry["cause"] == "no iteration of the whole job has ended for 90 s; the longest pause before was 30 s"
    sentence = "Rank 5 has not entered all_reduce 1,234 of group dp."
    scene.end_requests(sentence)
    for _ in range(6):
        await scene.turn()
    assert scene.notifier.values["headline"] == sentence
    scene.start()  # the next operator sees the same standstill, and makes nothing anew
    for _ in range(20):
        await scene.turn(30)
    assert scene.api.made == [name]


async def test_the_alert_about_a_job_that_stands_is_answered_with_stacks_too() -> None:
    scene = Scene("llama")
    scene.tell("llama", name="FleetprofJobStalled")
    await scene.turn()
    (made,) = scene.api.requests.values()
    assert made["spec"].keys() == {"capture", "target"}
    assert made["spec"]["capture"] == {"stacks": {}}


async def test_a_fault_of_one_notification_repeats_no_other() -> None:
    scene = Scene("llama")
    scene.notifier, scene.report_alerts = Told(), Told(TypeError("fault"))
    scene.start()
    scene.tell("llama")
    await scene.turn()
    scene.end_requests()
    for _ in range(6):
        await scene.turn()
    assert (scene.notifier.calls, scene.report_alerts.calls) == (1, 1)
    assert "notifiedTime" in scene.status["captures"][0]


async def test_two_alerts_about_one_job_make_one_capture_and_the_second_is_said() -> None:
    scene = Scene("llama")
    scene.tell("llama")
    scene.tell("llama", name="Idle")
    await scene.turn()
    await scene.turn(6)
    assert len(scene.api.made) == 1
    assert scene.reasons() == ["AlreadyCapturing"]
    assert [event["reason"] for event in scene.api.events] == ["AlreadyCapturing", "Captured", "MadeByPolicy"]
    assert (scene.status["fired"], scene.status["captured"], scene.status["suppressed"]) == (2, 1, 1)


async def test_the_request_names_the_author_of_its_policy() -> None:
    scene = Scene("llama")
    scene.tell("llama")
    await scene.turn()
    (made,) = scene.api.requests.values()
    assert made["metadata"]["annotations"] == {POLICY_AUTHOR_ANNOTATION: "the author of uid-1"}


async def test_a_second_firing_is_suppressed_by_the_cooldown_and_then_made() -> None:
    scene = Scene("llama", cooldownSeconds=600)
    scene.tell("llama")
    await scene.turn()
    scene.end_requests()
    await scene.turn(60)
    scene.tell("llama", started="2")
    await scene.turn()
    assert (len(scene.api.made), scene.reasons()) == (1, ["Cooldown"])
    scene.tell("llama", started="3")
    await scene.turn(600)
    assert len(scene.api.made) == 2


async def test_an_exempt_job_is_left_alone() -> None:
    scene = Scene("llama")
    scene.api.annotations = {ALERTS_ANNOTATION: "off"}
    scene.tell("llama")
    await scene.turn()
    assert (scene.api.made, scene.reasons()) == ([], ["Exempt"])


async def test_a_dry_run_records_and_makes_nothing() -> None:
    scene = Scene("llama", mode="DryRun")
    scene.tell("llama")
    await scene.turn()
    assert scene.api.made == []
    assert [(c["workload"], c["mode"]) for c in scene.status["captures"]] == [("Job/llama", "DryRun")]
    assert scene.fired == [("Alert", "DryRun")]
    assert [event["reason"] for event in scene.api.events] == ["WouldCapture"]


async def test_a_request_that_is_refused_frees_its_budget_and_says_why() -> None:
    scene = Scene("llama", perDay=1)
    scene.api.fails = ["", "refused"]
    scene.tell("llama")
    await scene.turn()
    await scene.turn(6)
    (entry,) = scene.status["suppressions"]
    assert (entry["reason"], entry["message"]) == ("Refused", "spec.window: not within the bounds")
    assert scene.status["captures"] == []
    scene.tell("llama", started="2")
    await scene.turn()
    assert len(scene.api.made) == 1


async def test_a_request_that_somebody_deletes_has_ended() -> None:
    scene = Scene("llama")
    scene.tell("llama")
    await scene.turn()
    scene.api.requests.clear()
    await scene.turn(15)
    assert scene.status["captures"][0]["result"] == "Deleted"


async def test_a_policy_whose_schedule_never_comes_due_says_so() -> None:
    scene = Scene("llama")
    document = scene.api.policies[POLICY]
    document["spec"]["triggers"] = [{"name": "a", "type": "Schedule", "schedule": {"cron": "0 0 31 2 *"}}]
    document["metadata"]["generation"] = 2
    scene.engine.note(copy.deepcopy(document))
    await scene.turn()
    conditions = {c["type"]: (c["status"], c["reason"]) for c in scene.status["conditions"]}
    assert conditions == {"Ready": ("False", "Invalid"), "Stalled": ("True", "Invalid")}
    assert "never" not in scene.status["conditions"][0]["message"].split("schedule.cron")[0]


async def test_a_schedule_fires_once_for_each_job_through_a_restart() -> None:
    scene = Scene("a", "b", concurrent=9)
    document = scene.api.policies[POLICY]
    document["spec"]["triggers"] = [{"name": "n", "type": "Schedule", "schedule": {"cron": "* * * * *"}}]
    scene.now = scene.now // (60 * SECOND) * 60 * SECOND
    scene.start()
    await scene.turn()
    scene.start()
    await scene.turn()
    assert len(scene.api.made) == 2
    assert scene.status["suppressed"] == 0


async def test_a_flood_makes_no_more_than_the_budget_and_no_storm() -> None:
    scene = Scene(*(f"job-{n}" for n in range(200)), perDay=5, concurrent=3)
    for burst in range(5):
        scene.tell(*(f"job-{n % 200}" for n in range(MOST_ALERTS)), started=str(burst))
        scene.tell(*(f"unknown-{n}" for n in range(MOST_ALERTS + 10)), started=str(burst))
        await scene.turn()
        scene.end_requests()
    assert len(scene.api.made) == 5
    assert scene.engine.alerts_lost == 5 * 210
    # Of 100,000 alerts: the writes of status before and after, and the requests themselves.
    assert scene.api.writes <= 5 * 2 + 5
    assert len(scene.api.policies[POLICY]["status"]["suppressions"]) == 64
    await scene.turn()


@pytest.mark.parametrize("job", ["unknown", "llama"])
async def test_only_alerts_about_a_chosen_job_of_the_namespace_count(job: str) -> None:
    scene = Scene("llama")
    scene.tell(job)
    scene.engine.take_alerts(
        [FiringAlert(name="L", namespace="b", kind="Job", workload="llama", pod="", started="", summary="")]
    )
    await scene.turn()
    assert len(scene.api.made) == (job == "llama")


async def test_how_policies_stand_is_in_the_store_for_the_web_ui() -> None:
    scene = Scene("llama")
    scene.tell("llama")
    scene.tell("llama", name="Idle")
    await scene.turn()
    await scene.is_stored()
    await scene.turn(10)
    await scene.is_stored()
    (stored,) = read_policies(scene.store.get(keys.policies_key("team"))).policies
    assert (stored.name, stored.spec) == ("starved", scene.api.policies[POLICY]["spec"])
    (capture,) = stored.status.captures
    assert (capture.workload, capture.uid) == ("Job/llama", f"uid-{capture.request}")
    assert [one.reason for one in stored.status.suppressions] == ["AlreadyCapturing"]
    scene.start()
    await scene.turn(20)
    await scene.is_stored()
    (again,) = read_policies(scene.store.get(keys.policies_key("team"))).policies
    assert again.status.captures[0].uid == capture.uid, "an operator that is started anew reads it again"
    scene.engine.forget("uid-1")
    await scene.turn(20)
    await scene.is_stored()
    assert read_policies(scene.store.get(keys.policies_key("team"))).policies == []


async def test_a_store_that_hangs_holds_no_turn_up() -> None:
    scene = Scene("llama")
    put_began, answers = threading.Event(), threading.Event()

    def hang(key: str, data: bytes) -> None:
        put_began.set()
        assert answers.wait(30)

    scene.store.put = hang  # type: ignore[method-assign]
    scene.start()
    try:
        await asyncio.wait_for(scene.engine.turn(), 10)
        await asyncio.to_thread(put_began.wait, 10)
        scene.tell("llama")
        await asyncio.wait_for(scene.engine.turn(), 10)
        assert len(scene.api.made) == 1
    finally:
        answers.set()


async def test_a_store_that_is_away_holds_no_capture_up() -> None:
    scene = Scene("llama")
    scene.store.put = scene.refuse  # type: ignore[method-assign]
    scene.start()
    scene.tell("llama")
    await scene.turn()
    assert len(scene.api.made) == 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), st.sampled_from(("a", "b")), st.sampled_from(("1", "2"))),
        st.tuples(st.just("turn"), st.integers(1, 400)),
        st.tuples(st.just("restart")),
        st.tuples(st.just("fail"), st.sampled_from(("before", "after"))),
        st.tuples(st.just("end")),
    ),
    max_size=30,
)


@settings(max_examples=150)
@given(steps=STEPS)
def test_no_restart_and_no_lost_call_forgets_or_repeats_a_capture(steps: list[tuple[Any, ...]]) -> None:
    asyncio.run(_go_through(steps))


async def _go_through(steps: list[tuple[Any, ...]]) -> None:
    scene = Scene("a", "b", perDay=3, concurrent=2, cooldownSeconds=300)
    for step in steps:
        match step:
            case "tell", job, started:
                scene.tell(job, started=started)
            case "turn", seconds:
                await scene.turn(seconds)
            case ("restart",):
                scene.start()
            case "fail", how:
                scene.api.fails.append(how)
            case _:
                scene.end_requests()
    scene.api.fails.clear()
    scene.start()  # knows only what was written down
    for _ in range(3):
        await scene.turn(6)
    assert len(scene.api.made) == len(set(scene.api.made)) <= 3
    written = {c["request"]: c for c in scene.status["captures"]} if scene.api.made else {}
    assert set(written) == set(scene.api.made), "what was made stands in the status, and the reverse"
    assert all("createdTime" in capture for capture in written.values())


@pytest.mark.attack
async def test_of_a_namespace_s_policies_the_oldest_take_part_and_the_loop_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "MOST_OF_A_NAMESPACE", 3)
    scene = Scene("llama", "bert")
    for number in range(40):
        document = copy.deepcopy(scene.api.policies[POLICY])
        document["metadata"] |= {"name": f"p{number}", "uid": f"uid-{number + 2}"}
        document["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{number:02}Z"
        scene.api.policies[f"{ROOT}/profilepolicies/p{number}"] = document
        scene.engine.note(document)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    scene.tell("llama")
    await scene.engine.turn()
    counting.cancel()
    assert turns > 40, "others had the loop between two policies"
    apart = {policy.name for policy in scene.engine.policies.values() if not policy.is_one_too_many}
    assert apart == {"starved", "p0", "p1"}
    left_out = next(policy for policy in scene.engine.policies.values() if policy.name == "p5")
    conditions = {one["type"]: one["reason"] for one in left_out.build_status(scene.now)["conditions"]}
    assert conditions == {"Ready": "TooManyPolicies", "Stalled": "TooManyPolicies"}
    assert not left_out.log.captures
