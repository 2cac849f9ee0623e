"""Captures whose pods an operator tells: who may be chosen, what is missing, whose pod is gone."""

import asyncio
from dataclasses import replace
from typing import Any

import grpc
import grpc.aio
import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import CapturesStub
from fleetprof_api.request import InvalidRequest
from fleetprof_operator.hub.access.authentication import Principal
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.planning.target_pods import Missing, Pod, TargetPods, find_missing
from fleetprof_operator.hub.server import serve
from fleetprof_operator.hub.submission import CaptureRefused

UNKNOWN = TargetPods(reason="LookingForPods", message="the pods of Job/llama are being looked for")


def pods(*names: str, **facts: Any) -> TargetPods:
    """Pods named so, with their names as uids."""
    return TargetPods(pods={n: Pod(uid=n, name=n, **({"injected": True} | facts)) for n in names})


def together(*targets: TargetPods) -> TargetPods:
    return TargetPods(pods={uid: pod for target in targets for uid, pod in target.pods.items()})


@pytest.mark.parametrize(
    ("target", "connected", "expected"),
    [
        (UNKNOWN, [], Missing(reason="LookingForPods", message=UNKNOWN.message, pending=True)),
        (pods(), [], Missing(reason="NothingMatched", pending=True,
            message="there is no pod of Job/llama yet that is pending or running")),
        (pods("a", terminating=True), [], Missing(reason="NothingMatched", pending=True,
            message="there is no pod of Job/llama yet that is pending or running; pods that are ending: 1")),
        (pods("a"), ["a"], Missing()),
        (together(pods("a"), pods("b", "c", "d", pending=True, trouble="0/3 nodes are available")), ["a"],
            Missing(reason="PodsPending", pending=True,
                message="3 of 4 pods are pending: b: 0/3 nodes are available")),
        (pods("a", pending=True), [], Missing(reason="PodsPending", pending=True, message="1 of 1 pod is pending")),
        (pods("a", injected=False, created_unix_ns=7), [], Missing(reason="NotInjected", hopeless_since_unix_ns=7,
            message="pod a was not injected: only pods that are made after the label fleetprof.io/inject=true was set "
            "have a sidecar; start the job again")),
        (together(pods("a"), pods("b", "c", injected=False)), ["a"], Missing(reason="NotInjected",
            message="pods b, c were not injected: only pods that are made after the label fleetprof.io/inject=true was "
            "set have a sidecar; start the job again")),
        (pods("a", "b", injected=False, without_sidecar="no image", created_unix_ns=7), [],
            Missing(reason="NotInjected", hopeless_since_unix_ns=7,
                message="pods a, b went on without a sidecar: a: no image")),
        (pods("a", "b", "c", "d", "e"), ["a"], Missing(reason="SidecarsMissing",
            message="the sidecar of pods b, c, d and 1 more has not connected: is its container running, and can it "
            "reach the hub?")),
        (pods("a", trouble="container fleetprof: CrashLoopBackOff"), [], Missing(reason="SidecarsMissing",
            message="the sidecar of pod a has not connected: a: container fleetprof: CrashLoopBackOff")),
    ],
)  # fmt: skip
def test_what_is_missing(target: TargetPods, connected: list[str], expected: Missing) -> None:
    assert find_missing(target, connected, "Job/llama") == expected


@pytest.fixture
async def kubernetes(ground: Any, kit: Any) -> Any:
    """The ground, with a hub whose operator tells the pods in `pods_of` a capture's uid, else those in `pods`."""
    ground.pods, ground.pods_of = UNKNOWN, {}

    def start_hub() -> Any:
        return Hub(
            store=ground.store,
            analyze=ground.analyze,
            find_pods=lambda uid: ground.pods_of.get(uid, ground.pods),
            settings=ground.settings,
            clock=ground.clock,
        )

    async def restart() -> None:
        await ground.server.stop()
        await ground.hub.close()
        ground.hub = start_hub()
        await ground.hub.restore([("team", "u-1")])
        ground.server = await serve(ground.hub, "127.0.0.1:0", token=kit.TOKEN)

    ground.restart_with_pods = restart
    await restart()
    return ground


async def add_pod(ground: Any, kit: Any, name: str, *processes: pb.Process) -> Any:
    """A sidecar whose token proved the pod of that name."""
    sidecar = kit.ScriptedSidecar(f"s-{name}", list(processes), name="whatever it says")
    sidecar.identity.pod_name = sidecar.identity.pod_uid = name
    ground.sidecars.append(sidecar)
    return await sidecar.connect(ground.server.port)


def adopt(ground: Any, kit: Any, uid: str = "u-1", **spec: Any) -> Any:
    return ground.hub.adopt(kit.make_request(**spec), namespace="team", uid=uid, name=uid)


async def test_a_capture_waits_for_pods_and_takes_no_others(kubernetes: Any, kit: Any) -> None:
    stranger = await add_pod(kubernetes, kit, "stranger", kit.make_process(0))
    status = await adopt(kubernetes, kit)
    assert (status.uid, status.name, status.namespace) == ("u-1", "u-1", "team")
    for kubernetes.pods, reason in [
        (UNKNOWN, "LookingForPods"),
        (pods("a", "b", pending=True), "PodsPending"),
        (together(pods("a"), pods("b", pending=True)), "PodsPending"),
        (pods("a", "b"), "SidecarsMissing"),
    ]:
        status = await kubernetes.await_status("u-1", lambda s, r=reason: kit.condition(s, "TargetsResolved")[1] == r)
        assert kit.condition(status, "TargetsResolved") == ("False", reason)
        assert kit.succeeded(status) == ("Unknown", "Waiting")
    first = await add_pod(kubernetes, kit, "a", kit.make_process(0, world_size=2))
    second = await add_pod(kubernetes, kit, "b", kit.make_process(1, world_size=2))
    for sidecar in (first, second):
        await sidecar.deliver(kubernetes.store, await sidecar.expect("arm"))
    status = await kubernetes.await_end("u-1")
    assert kit.succeeded(status) == ("True", "Complete")
    assert [m.WhichOneof("body") for m in stranger.received] == []


async def test_the_first_request_gets_the_ranks_though_its_pods_are_known_later(kubernetes: Any, kit: Any) -> None:
    sidecar = await add_pod(kubernetes, kit, "a", kit.make_process(0))
    kubernetes.pods_of["u-2"] = pods("a")
    await adopt(kubernetes, kit, "u-1")
    await adopt(kubernetes, kit, "u-2")
    await kubernetes.await_status("u-2", lambda s: s.queue_position == 1)
    kubernetes.pods_of["u-1"] = pods("a")
    for uid in ("u-1", "u-2"):
        arm = await sidecar.expect("arm")
        assert arm.capture_id == uid
        await sidecar.deliver(kubernetes.store, arm)


@pytest.mark.parametrize(
    ("ranks", "told_of", "reason"),
    [
        (None, together(pods("a"), pods("b", pending=True)), "PodsPending"),
        ({"list": [0, 1]}, pods("a"), "RanksMissing"),
    ],
)
async def test_missing_ranks_are_waited_for_as_long_as_the_request_says(
    kubernetes: Any, kit: Any, ranks: Any, told_of: TargetPods, reason: str
) -> None:
    kubernetes.pods = told_of
    sidecar = await add_pod(kubernetes, kit, "a", kit.make_process(0, world_size=2))
    await adopt(kubernetes, kit, deadline_s=3600, missingRanksGraceSeconds=30, **({"ranks": ranks} if ranks else {}))
    await kubernetes.await_status("u-1", lambda s: kit.condition(s, "TargetsResolved") == ("False", reason))
    kubernetes.skew_ns = 31 * 10**9
    await sidecar.beat()
    arm = await sidecar.expect("arm")
    assert [order.rank for order in arm.orders] == [0]
    await sidecar.deliver(kubernetes.store, arm)
    status = await kubernetes.await_end("u-1")
    assert kit.succeeded(status) == ("True", "PartiallyCaptured")
    assert kit.states(status) == {0: "UPLOADED", 1: "NotPolling"}
    assert "rank 1 of " in next(c.message for c in status.conditions if c.type == "TargetsResolved")


async def test_ranks_that_are_all_there_wait_for_no_pending_pod(kubernetes: Any, kit: Any) -> None:
    kubernetes.pods = together(pods("a"), pods("spare", pending=True))
    sidecar = await add_pod(kubernetes, kit, "a", kit.make_process(0, world_size=1))
    await adopt(kubernetes, kit)
    assert [order.rank for order in (await sidecar.expect("arm")).orders] == [0]


async def test_pods_that_can_never_answer_end_the_request(kubernetes: Any, kit: Any) -> None:
    kubernetes.pods = pods("a", injected=False, created_unix_ns=1)
    await adopt(kubernetes, kit)
    status = await kubernetes.await_end("u-1")
    assert kit.succeeded(status) == ("False", "NotInjected")
    assert "pod a was not injected" in next(c.message for c in status.conditions if c.type == "Succeeded")


async def test_two_jobs_under_one_target_are_told_apart(kubernetes: Any, kit: Any) -> None:
    kubernetes.pods = pods("a", "b")
    for name in ("a", "b"):
        await add_pod(kubernetes, kit, name, kit.make_process(0, world_size=1))
    await adopt(kubernetes, kit)
    status = await kubernetes.await_status("u-1", lambda s: kit.condition(s, "TargetsResolved")[1] == "AmbiguousTarget")
    assert "2 pods that are each rank 0 of a job of its own (a, b); narrow the target" in status.conditions[0].message


async def test_a_pod_that_is_gone_ends_its_ranks_at_once(kubernetes: Any, kit: Any) -> None:
    kubernetes.pods = pods("a", "b")
    first = await add_pod(kubernetes, kit, "a", kit.make_process(0, world_size=2))
    second = await add_pod(kubernetes, kit, "b", kit.make_process(1, world_size=2))
    await adopt(kubernetes, kit)
    await first.deliver(kubernetes.store, await first.expect("arm"))
    await second.expect("arm")
    kubernetes.pods = pods("a")  # the deletion is known before the stream's end: nothing is concluded yet
    await second.say("u-1", "p1", 1, "ARMED")
    status = await kubernetes.await_status("u-1", lambda s: kit.states(s) == {0: "UPLOADED", 1: "ARMED"})
    await second.disconnect()
    status = await kubernetes.await_end("u-1")
    assert kit.states(status) == {0: "UPLOADED", 1: "SidecarLost"}
    assert status.ranks[1].message.startswith("its pod b is gone")
    assert kit.succeeded(status) == ("True", "PartiallyCaptured")


async def test_adopting_again_is_the_same_capture_through_restarts(kubernetes: Any, kit: Any) -> None:
    kubernetes.pods = pods("a")
    sidecar = await add_pod(kubernetes, kit, "a", kit.make_process(0, world_size=1))
    await adopt(kubernetes, kit)
    arm = await sidecar.expect("arm")
    await sidecar.say_all(arm, "ARMED")
    await adopt(kubernetes, kit)
    await sidecar.disconnect()
    await kubernetes.restart_with_pods()
    assert (await adopt(kubernetes, kit)).armed_unix_ns
    await sidecar.connect(kubernetes.server.port)
    await sidecar.deliver(kubernetes.store, arm)
    assert kit.succeeded(await kubernetes.await_end("u-1")) == ("True", "Complete")
    await sidecar.expect("release")

    await kubernetes.restart_with_pods()  # an end that the hub remembers
    assert kit.succeeded(await adopt(kubernetes, kit)) == ("True", "Complete")
    kubernetes.hub.captures.by_uid.clear()  # and one that only the store does
    status = await adopt(kubernetes, kit)
    assert (status.finished, kit.succeeded(status)) == (True, ("True", "Complete"))
    assert [m.WhichOneof("body") for m in sidecar.received if m.WhichOneof("body") != "upload_grant"] == []


async def test_what_nobody_wants_any_more_is_let_go(kubernetes: Any, kit: Any) -> None:
    kubernetes.pods = pods("a")
    sidecar = await add_pod(kubernetes, kit, "a", kit.make_process(0, world_size=1))
    await kubernetes.hub.adopt(kit.make_request(), namespace="team", uid="u-2", name="deleted")
    await sidecar.say_all(await sidecar.expect("arm"), "ARMED")
    await sidecar.disconnect()
    await kubernetes.restart_with_pods()  # restores u-1 only
    await sidecar.connect(kubernetes.server.port)
    assert (await sidecar.expect("release")).capture_id == "u-2"


async def test_so_many_may_wait_of_a_namespace_and_some_however_many_wait(kubernetes: Any, kit: Any) -> None:
    kubernetes.settings = replace(kubernetes.settings, max_waiting=3, max_waiting_per_namespace=2)
    await kubernetes.restart_with_pods()
    adopt = kubernetes.hub.adopt
    for uid in ("u-1", "u-2", "u-2"):
        await adopt(kit.make_request(), namespace="team", uid=uid, name=uid)
    with pytest.raises(CaptureRefused, match="2 requests of namespace team wait for their jobs or") as caught:
        await adopt(kit.make_request(), namespace="team", uid="u-3", name="u-3")
    assert caught.value.reason == "TooManyCaptures"
    for uid in ("u-4", "u-5"):
        await adopt(kit.make_request(), namespace="rival", uid=uid, name=uid)


async def test_what_comes_at_the_same_time_counts(kubernetes: Any, kit: Any) -> None:
    kubernetes.settings = replace(kubernetes.settings, max_waiting_per_namespace=2)
    await kubernetes.restart_with_pods()
    uids = [f"u-{n}" for n in range(5)]
    work = [kubernetes.hub.adopt(kit.make_request(), namespace="team", uid=uid, name=uid) for uid in uids]
    taken = await asyncio.gather(*work, return_exceptions=True)
    refused = [answer for answer in taken if isinstance(answer, CaptureRefused)]
    assert (len(refused), {answer.reason for answer in refused}) == (3, {"TooManyCaptures"})


async def test_what_cannot_be_done_is_refused_and_what_kubernetes_can_is_not(kubernetes: Any, kit: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"spec\.redact: this version cannot redact"):
        await adopt(kubernetes, kit, redact=["Names"])
    assert (await adopt(kubernetes, kit, suspend=True)).uid == "u-1"


class _Tokens:
    async def authenticate(self, token: str) -> Principal | None:
        return Principal(namespace="team", pod_name="a", pod_uid="a-uid")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({}, ""),
        ({"namespace": "rival"}, "hello.identity.namespace: is not that of the token"),
        ({"pod_name": "b"}, "hello.identity.pod_name: is not that of the token"),
        ({"pod_uid": ""}, "hello.identity.pod_uid: is not that of the token"),
    ],
)
async def test_a_sidecar_speaks_for_the_pod_of_its_token(
    ground: Any, kit: Any, changed: dict[str, str], says: str
) -> None:
    hub = Hub(store=ground.store, authenticate=_Tokens(), find_pods=lambda uid: UNKNOWN)
    server = await serve(hub, "127.0.0.1:0", captures=False)
    sidecar = kit.ScriptedSidecar("s", [])
    sidecar.identity.pod_name, sidecar.identity.pod_uid = "a", "a-uid"
    for field, value in changed.items():
        setattr(sidecar.identity, field, value)
    try:
        if not says:
            await sidecar.connect(server.port)
            return
        connecting = asyncio.create_task(sidecar.connect(server.port))
        while not hasattr(sidecar, "call"):
            await asyncio.sleep(0.01)
        assert (await sidecar.call.code(), await sidecar.call.details()) == (grpc.StatusCode.INVALID_ARGUMENT, says)
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)
    finally:
        await sidecar.disconnect()
        await server.stop()
        await hub.close()


async def test_a_pods_token_can_neither_submit_nor_list_nor_ask_for_stacks(ground: Any, kit: Any) -> None:
    hub = Hub(store=ground.store, authenticate=_Tokens())
    server = await serve(hub, "127.0.0.1:0", captures=False)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            stub, metadata = CapturesStub(channel), (("authorization", "Bearer x"),)
            for call in (
                stub.Submit(pb.SubmitRequest(), metadata=metadata),
                stub.List(pb.ListRequest(), metadata=metadata),
                stub.Stacks(pb.StacksRequest(), metadata=metadata),
            ):
                assert await call.code() is grpc.StatusCode.UNIMPLEMENTED
    finally:
        await server.stop()
        await hub.close()


async def test_a_sidecars_id_belongs_to_its_pod(kubernetes: Any, kit: Any) -> None:
    await add_pod(kubernetes, kit, "a")
    thief = kit.ScriptedSidecar("s-a", [])
    thief.identity.pod_uid = "thief"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await thief.connect(kubernetes.server.port)
    assert await thief.call.details() == "hello.sidecar_id: is that of a sidecar in another pod"
    await thief.disconnect()
