"""The waits of a request before its ranks are asked, for how long, and what it says meanwhile."""

import dataclasses
import time
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.request import Collect
from fleetprof_operator.hub.bounds import AllBounds, Bounds
from fleetprof_operator.hub.submission import CaptureRefused

SILENT = {"polls_kineto": False, "last_poll_unix_ns": 0, "poll_interval_ns": 0}  # so far, since its sidecar is there


async def test_fail_fast_refuses_what_could_only_wait(ground: Any, kit: Any) -> None:
    request = kit.make_request()
    with pytest.raises(CaptureRefused, match="no sidecar of Job/llama is connected in namespace team") as caught:
        await ground.hub.submit(request, "team", fail_fast=True)
    assert caught.value.reason == "NothingMatched"

    await ground.add_sidecar(0, kit.make_process(0, polls_kineto=False))
    ground.skew_ns = 13 * 10**9  # its sidecar has been there for long enough to hear every poll
    with pytest.raises(CaptureRefused, match="KINETO_USE_DAEMON=1") as caught:
        await ground.hub.submit(request, "team", fail_fast=True)
    assert caught.value.reason == "NothingSpeaksKineto"

    with pytest.raises(CaptureRefused, match="Job/llama") as caught:  # another namespace's job is nobody's business
        await ground.hub.submit(request, "rival", fail_fast=True)
    assert caught.value.reason == "NothingMatched"
    assert list(ground.store.list("v1/")) == []


async def test_fail_fast_refuses_a_pytorch_that_is_too_old(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    sidecar.processes = [kit.make_process(0, agent_waits=True, torch_version="2.9.1", **SILENT)]
    await sidecar.beat()
    await ground.await_fleet(lambda fleet: fleet[0].processes[0].torch_version == "2.9.1")
    with pytest.raises(CaptureRefused, match="of Job/llama is too old") as caught:
        await ground.hub.submit(kit.make_request(), "team", fail_fast=True)
    assert caught.value.reason == "NothingSpeaksKineto"


async def test_a_grace_for_missing_ranks_goes_on_without_them_with_fail_fast_too(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0)
    with pytest.raises(CaptureRefused, match="rank 7 of Job/llama not there"):
        await ground.hub.submit(kit.make_request(ranks={"list": [0, 7]}), "team", fail_fast=True)
    request = kit.make_request(ranks={"list": [0, 7]}, missingRanksGraceSeconds=0)
    uid = (await ground.hub.submit(request, "team", fail_fast=True)).uid
    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("True", "PartiallyCaptured")
    assert kit.states(status) == {0: "UPLOADED", 7: "NotPolling"}


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


@pytest.mark.parametrize("known", [True, False], ids=["the agent is known", "nobody is known"])
async def test_fail_fast_waits_for_the_polls_that_a_fresh_sidecar_has_not_heard_yet(
    ground: Any, kit: Any, known: bool
) -> None:
    ground.settings = dataclasses.replace(ground.settings, deaf_patience_ns=60 * 10**9)
    await ground.restart_hub()
    sidecar = await ground.add_sidecar(0, kit.make_process(0, first_seen_unix_ns=time.time_ns(), **SILENT))
    if not known:
        sidecar.processes = []
        await sidecar.beat()
        await ground.await_fleet(lambda fleet: not fleet[0].processes)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    status = await ground.await_status(uid, lambda s: bool(s.conditions))
    assert kit.condition(status, "TargetsResolved") == ("False", "NothingSpeaksKineto")

    sidecar.processes = [kit.make_process(0)]
    await sidecar.beat()

    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


@pytest.mark.parametrize(
    ("processes", "says"),
    [
        ([], "has it imported torch yet"),
        ([{"role": pb.LAUNCHER}], "no training process of Job/llama yet: 1 launcher"),
        ([{"role": pb.LAUNCHER}, {"role": pb.ROLE_UNSPECIFIED}], "1 launcher, 1 unknown"),
    ],
    ids=["nobody", "a launcher", "a launcher and a process that is too young to be told"],
)
@pytest.mark.parametrize("fail_fast", [True, False])
async def test_a_job_that_starts_is_waited_for_as_soon_as_it_has_a_sidecar(
    ground: Any, kit: Any, processes: list[dict[str, Any]], says: str, fail_fast: bool
) -> None:
    sidecar = await ground.add_sidecar(0)
    sidecar.processes = [kit.make_process(n, first_seen_unix_ns=2**62, **p) for n, p in enumerate(processes)]
    await sidecar.beat()
    roles = [process.role for process in sidecar.processes]
    await ground.await_fleet(lambda fleet: [process.role for process in fleet[0].processes] == roles)
    uid = (await ground.hub.submit(kit.make_request(deadline_s=600), "team", fail_fast=fail_fast)).uid
    ground.skew_ns = 500 * 10**9  # longer than anything else is waited for
    status = await ground.await_status(uid, lambda s: bool(s.conditions))
    assert kit.condition(status, "TargetsResolved") == ("False", "NothingSpeaksKineto")
    assert kit.succeeded(status) == ("Unknown", "Waiting")
    assert says in _message(status, "Succeeded")

    sidecar.processes = [kit.make_process(0, **ground.heard_now())]
    await sidecar.beat()

    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    assert kit.succeeded(await ground.await_end(uid)) == ("True", "Complete")


async def test_a_job_that_ends_before_it_trains_ends_the_wait(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0, role=pb.LAUNCHER))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await ground.await_status(uid, lambda s: kit.succeeded(s) == ("Unknown", "Waiting"))
    await sidecar.disconnect()
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "NothingMatched")
    assert "deadline" not in _message(status, "Succeeded")


async def test_a_rank_that_the_job_must_have_is_waited_for_while_its_ranks_appear(ground: Any, kit: Any) -> None:
    born = {"world_size": 2, "first_seen_unix_ns": time.time_ns()}
    sidecar = await ground.add_sidecar(0, kit.make_process(0, **born))
    with pytest.raises(CaptureRefused, match="rank 2 of Job/llama not there"):
        await ground.hub.submit(kit.make_request(ranks={"list": [2]}), "team", fail_fast=True)
    await ground.hub.submit(kit.make_request(ranks={"list": [1]}), "team", fail_fast=True)
    sidecar.processes = [kit.make_process(0, **born), kit.make_process(1, **born)]
    await sidecar.beat()
    assert [order.rank for order in (await sidecar.expect("arm")).orders] == [1]


WAITS = {"has_agent": False, "agent_waits": True, "torch_version": "2.15.0", "step": None}
IMPORTS = WAITS | {"torch_version": ""}
ONE_STEP = {"step": pb.StepState(step=1, at_unix_ns=1, iteration_ns=0, steps_per_iteration=1)}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (WAITS, "1 of 2 ranks have made no optimizer step yet"),
        (WAITS | {"role": pb.ROLE_UNSPECIFIED}, "1 of 2 ranks have made no optimizer step yet"),
        (IMPORTS, "1 of 2 ranks are still importing PyTorch"),
        (IMPORTS | SILENT, "1 of 2 ranks are still importing PyTorch"),
        (ONE_STEP, "1 of 2 ranks have not made their second iteration yet"),
    ],
    ids=["no step", "no step, /proc not visible", "no PyTorch", "no PyTorch, nor Kineto", "one step"],
)
@pytest.mark.parametrize("fail_fast", [True, False])
async def test_first_steps_are_waited_for_beyond_all_patience_but_the_deadline(
    ground: Any, kit: Any, fields: dict[str, Any], says: str, fail_fast: bool
) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1, **fields))
    uid = (await ground.hub.submit(kit.make_request(deadline_s=600), "team", fail_fast=fail_fast)).uid
    ground.skew_ns = 500 * 10**9  # longer than anything else is waited for
    status = await ground.await_status(uid, lambda s: bool(s.conditions))
    assert kit.condition(status, "TargetsResolved") == ("False", "NoOptimizerStep")
    assert kit.succeeded(status) == ("Unknown", "Waiting")
    assert says in _message(status, "Succeeded")

    sidecar.processes = [kit.make_process(number, **ground.heard_now()) for number in (0, 1)]
    await sidecar.beat()

    arm = await sidecar.expect("arm")
    assert arm.WhichOneof("start") == "first_step"
    assert [order.rank for order in arm.orders] == [0, 1]


async def test_first_steps_that_never_come_end_the_wait_with_their_own_reason(ground: Any, kit: Any) -> None:
    await ground.add_sidecar(0, kit.make_process(0, **WAITS))
    uid = (await ground.hub.submit(kit.make_request(deadline_s=30), "team", fail_fast=True)).uid
    await ground.await_status(uid, lambda s: kit.condition(s, "TargetsResolved") == ("False", "NoOptimizerStep"))
    ground.skew_ns = 31 * 10**9
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "NoOptimizerStep")
    assert "1 of 1 ranks have made no optimizer step yet" in _message(status, "Succeeded")
    assert "until the deadline of 30 s" in _message(status, "Succeeded")


async def test_a_window_in_time_waits_for_no_step(ground: Any, kit: Any) -> None:
    sidecar = await ground.add_sidecar(0, kit.make_process(0, **WAITS))
    await ground.hub.submit(kit.make_request(window={"durationMillis": 500}), "team", fail_fast=True)
    arm = await sidecar.expect("arm")
    assert arm.WhichOneof("start") == "start_unix_ns"


async def test_a_job_that_stalls_is_captured_by_time(ground: Any, kit: Any) -> None:
    stalled = pb.StepState(step=100, at_unix_ns=time.time_ns() - 60 * 10**9, iteration_ns=10**7, steps_per_iteration=1)
    sidecar = await ground.add_sidecar(0, kit.make_process(0, step=stalled))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    arm = await sidecar.expect("arm")
    assert arm.WhichOneof("start") == "start_unix_ns"
    assert "no optimizer step for a while" in _message(await ground.status(uid), "TargetsResolved")


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


async def test_a_sidecar_of_another_version_is_captured_and_named(ground: Any, kit: Any) -> None:
    """A job of a month keeps the sidecar that it started with."""
    first = await ground.add_sidecar(0, kit.make_process(0, world_size=3))
    others = []
    for number, version in ((1, ""), (2, "0.0.9")):
        sidecar = kit.ScriptedSidecar(f"s{number}", [kit.make_process(number, world_size=3)])
        sidecar.version = version
        ground.sidecars.append(sidecar)
        others.append(await sidecar.connect(ground.server.port))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    for sidecar in (first, *others):
        await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("True", "Complete")
    named = "sidecars of another version than the hub's (0.1.0): 1 of 0.0.9, 1 of an older version"
    assert named in _message(status, "TargetsResolved")
    assert sorted(s.version for s in await ground.hub.fleet()) == ["", "0.0.9", "0.1.0"]


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
    assert "2 of 2 ranks have no agent" in _message(status, "TargetsResolved")


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


@pytest.mark.parametrize(
    ("spec", "allowed", "sampled"),
    [
        ({}, list(Collect), True),
        ({"threadSamples": "Never"}, list(Collect), False),
        ({}, [Collect.SHAPES], False),  # the administrator lets no stacks leave the pods
    ],
)
async def test_the_training_thread_is_sampled_where_its_stacks_may_be_seen(
    ground: Any, kit: Any, spec: dict[str, Any], allowed: list[Collect], sampled: bool
) -> None:
    ground.settings = dataclasses.replace(ground.settings, bounds=AllBounds(default=Bounds(collect=allowed)))
    await ground.restart_hub()
    sidecar = await ground.add_sidecar(0)
    await ground.hub.submit(kit.make_request(**spec), "team", fail_fast=True)
    assert (await sidecar.expect("arm")).thread_samples is sampled


@pytest.mark.attack
@pytest.mark.parametrize(("limits", "percent"), [(None, 200), ({}, 200), ({"maxSlowdownPercent": 0}, 0)])
async def test_a_capture_has_a_limit_of_slowdown_unless_that_is_switched_off(
    ground: Any, kit: Any, limits: dict[str, int] | None, percent: int
) -> None:
    sidecar = await ground.add_sidecar(0)
    request = kit.make_request(**({} if limits is None else {"limits": limits}))
    await ground.hub.submit(request, "team", fail_fast=True)
    assert (await sidecar.expect("arm")).max_slowdown_percent == percent


async def test_a_process_that_has_just_started_may_still_show_its_agent(ground: Any, kit: Any) -> None:
    young = {"first_seen_unix_ns": time.time_ns()}
    sidecar = await ground.add_sidecar(0, kit.make_process(0, has_agent=False, step=None, **young))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await ground.await_status(uid, lambda s: kit.condition(s, "TargetsResolved") == ("False", "Gathering"))
    sidecar.processes = [kit.make_process(0, **young)]
    await sidecar.beat()
    arm = await sidecar.expect("arm")
    assert arm.WhichOneof("start") == "first_step"


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


def _message(status: pb.CaptureStatus, kind: str) -> str:
    return next(c.message for c in status.conditions if c.type == kind)
