"""Requests for stacks: who is asked, what is stored, what the request then says."""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from fleetprof_api import keys
from fleetprof_api.choices import Collect
from fleetprof_api.request import InvalidRequest
from fleetprof_api.stacks import ThreadStack
from fleetprof_api.stalls import JobStacks, read_job_stacks
from fleetprof_operator.hub import stack_questions
from fleetprof_operator.hub.bounds import AllBounds, Bounds
from fleetprof_operator.hub.stack_questions import shorten
from fleetprof_operator.hub.submission import CaptureRefused
from harness.hub.planted_stacks import HANGS, SAYS, SECOND, WAITS, answer, make_answer

STACKS: dict[str, Any] = {"window": None, "capture": {"stacks": {}}}


async def ask(ground: Any, kit: Any, uid: str = "u", namespace: str = "team", **spec: Any) -> None:
    await ground.hub.adopt(kit.make_request(**(STACKS | spec)), namespace=namespace, uid=uid, name=uid)


def stored(ground: Any, uid: str = "u") -> JobStacks:
    return read_job_stacks(ground.store.get(keys.stacks_key("team", uid)))


async def test_a_hung_job_is_read_judged_and_stored(ground: Any, kit: Any) -> None:
    first = await ground.add_sidecar(0, kit.make_process(0))
    second = await ground.add_sidecar(1, kit.make_process(1))
    foreign = await ground.add_sidecar(2, kit.make_process(0), namespace="another")
    other = await ground.add_sidecar(3, kit.make_process(0), name="other")
    await ask(ground, kit)
    await answer(first, WAITS)
    await answer(second, HANGS)
    status = await ground.await_end("u")
    assert kit.succeeded(status) == ("True", "Complete")
    assert {kit.condition(status, kind) for kind in ("TargetsResolved", "Captured", "Uploaded", "Analyzed")} == {
        ("True", "Resolved"), ("True", "StacksRead"), ("True", "StacksStored"), ("True", "StacksJudged"),
    }  # fmt: skip
    assert status.conditions[-1].message == f"{SAYS} Rank 0 waits for it. Its node is node-s1."
    (sample,) = stored(ground).samples
    assert (sample.verdict.cause, sample.verdict.ranks, sample.verdict.may_go_on) == ("blocked_in_line", (1,), False)
    assert [(p.rank, p.node) for p in sample.processes] == [(0, "node-s0"), (1, "node-s1")]
    assert status.report_location.endswith(keys.stacks_key("team", "u"))
    assert not [m for s in (foreign, other) for m in s.received]
    assert not [m for s in (first, second) for m in s.received if m.HasField("arm")]


async def test_several_samples_are_kept_and_the_last_one_is_told(
    ground: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleetprof_operator.hub.capture.stacks_stage.PAUSE_NS", SECOND // 100)
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    await ask(ground, kit, capture={"stacks": {"samples": 2}})
    await answer(sidecar, WAITS, HANGS)
    moved = [msgspec.structs.replace(process, step_unix_ns=99 * SECOND) for process in (WAITS, HANGS)]
    await answer(sidecar, *moved)
    status = await ground.await_end("u")
    assert [sample.verdict.cause for sample in stored(ground).samples] == ["blocked_in_line", "moves"]
    assert status.conditions[-1].message.startswith("The job moves")


async def test_a_namespace_has_one_question_at_a_time(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    for uid in ("u", "v"):
        await ask(ground, kit, uid)
    for _ in range(2):
        await answer(sidecar, WAITS, HANGS)
    for uid in ("u", "v"):
        await ground.await_end(uid)
        assert all(process.has_answered for process in stored(ground, uid).samples[0].processes)


async def test_without_a_job_it_waits_until_the_deadline(ground: Any, kit: Any) -> None:
    await ask(ground, kit)
    status = await ground.await_status("u", lambda status: bool(status.conditions))
    assert kit.succeeded(status) == ("Unknown", "Waiting")
    ground.skew_ns = 61 * SECOND
    status = await ground.await_end("u")
    assert kit.succeeded(status) == ("False", "NothingMatched")


async def test_a_request_that_is_taken_back_stores_nothing_more(ground: Any, kit: Any) -> None:
    await ask(ground, kit)
    await ground.hub.cancel("u")
    assert kit.succeeded(await ground.await_end("u")) == ("False", "Cancelled")
    await ground.add_sidecar(0)
    assert not list(ground.store.list(keys.stacks_key("team", "u")))


async def test_a_store_that_comes_back_gets_the_stacks(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    await ask(ground, kit)
    question = asyncio.create_task(answer(sidecar, WAITS, HANGS))
    ground.store.pull_plug()
    await question
    await asyncio.sleep(0.2)
    ground.store.plug_in()
    assert kit.succeeded(await ground.await_end("u")) == ("True", "Complete")
    assert stored(ground).samples


@pytest.mark.attack
async def test_where_stacks_are_not_allowed_nobody_is_asked(ground: Any, kit: Any) -> None:
    bounds = AllBounds(contact="Ada", namespaces={"team": Bounds(collect=[Collect.SHAPES])})
    ground.settings = replace(ground.settings, bounds=bounds)
    await ground.restart_hub()
    with pytest.raises(CaptureRefused, match=r"spec\.capture\.stacks: stacks are not allowed .* ask Ada"):
        await ask(ground, kit)


@pytest.mark.attack
async def test_answers_that_are_too_large_for_their_share_lose_what_is_not_the_main_thread(
    ground: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_questions, "MOST_BYTES", 4000)
    other = ThreadStack(name="x" * 3000, task=2, is_main=False, stack=[0])
    long = msgspec.structs.replace(HANGS, threads=[other, *HANGS.threads])
    huge = make_answer("p0", [("/job/" + "x" * 50_000, "f", 1)], 2)
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    await ask(ground, kit)
    await answer(sidecar, huge, long)
    await ground.await_end("u")
    found = {process.process_id: process for process in stored(ground).samples[0].processes}
    assert [thread.name for thread in found["p1"].threads] == ["MainThread"]
    assert [found["p1"].places[place].line for place in found["p1"].threads[0].stack] == [7]
    assert not found["p0"].has_answered


def test_a_short_answer_names_only_what_is_there() -> None:
    frames = [("/job/train.py", "f", line) for line in range(300)]
    short = shorten(make_answer("p0", frames, 2))
    assert [short.places[place].line for place in short.threads[0].stack] == list(range(100))
    assert shorten(make_answer("p0", [], 2, threads=[])).threads == []


async def test_outside_a_cluster_the_command_is_named(ground: Any, kit: Any) -> None:
    with pytest.raises(InvalidRequest, match="fleetprof stacks JOB"):
        await ground.hub.submit(kit.make_request(**STACKS), "team", fail_fast=True)
