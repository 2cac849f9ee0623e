"""ProfileRequests as captures: made, followed through everything that can happen to them, taken back."""

import asyncio
import os
import signal
from typing import Any

import pytest
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_cli.capture.following import follow
from fleetprof_cli.capture.seam import Away
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.kubernetes.connection import Connection, explain_refusal, requests_path
from fleetprof_cli.kubernetes.requests import Requests
from fleetprof_cli.messages import Failure
from harness.kubernetes.memory_cluster import MemoryCluster

DOCUMENT: dict[str, Any] = {"metadata": {"name": "look", "namespace": "team"}, "spec": {}}
PATH = "/apis/fleetprof.io/v1alpha1/namespaces/team/profilerequests/look"
TIME = "2026-11-21T09:45:12Z"


def finish(cluster: MemoryCluster, reason: str = "Complete", status: str = "True") -> None:
    """The operator's writes at the end."""
    condition = {"type": "Succeeded", "status": status, "reason": reason, "message": "", "lastTransitionTime": TIME}
    counts = {"targeted": 2, "armed": 2, "captured": 2, "uploaded": 2, "failed": 0}
    body = {"conditions": [condition], "ranks": counts, "completionTime": TIME}
    cluster.put(PATH, cluster.objects[PATH] | {"status": body})


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
def requests(cluster: MemoryCluster) -> Requests:
    return Requests(Connection(cluster, "team", None))  # type: ignore[arg-type]


async def watching(cluster: MemoryCluster, times: int = 1) -> None:
    """Returns once a watch is open."""
    async with asyncio.timeout(60):
        while cluster.watched() < times:
            await asyncio.sleep(0.01)


async def test_a_request_is_followed_to_its_end(cluster: MemoryCluster, requests: Requests) -> None:
    state = await requests.create(DOCUMENT)
    following = asyncio.create_task(follow(requests, state))
    await watching(cluster)
    finish(cluster)
    ended = await following
    assert (ended.finished, ended.exit_code()) == (True, ExitCode.DONE)


async def test_one_that_has_ended_already_is_not_waited_for(cluster: MemoryCluster, requests: Requests) -> None:
    state = await requests.create(DOCUMENT)
    finish(cluster, "AllRanksFailed", "False")
    ended = await follow(requests, await requests.find("look"))
    assert ended.exit_code() == ExitCode.PARTIAL
    assert (await follow(requests, state)).finished


@pytest.mark.parametrize(
    "broken",
    [None, ApiRefused(410, "Expired", "too old"), ApiUnreachable("the watch broke")],
    ids=["ended", "expired", "lost"],
)
async def test_a_watch_that_ends_is_begun_again(
    cluster: MemoryCluster, requests: Requests, broken: Exception | None
) -> None:
    following = asyncio.create_task(follow(requests, await requests.create(DOCUMENT)))
    await watching(cluster)
    cluster.end_watches(broken)
    await watching(cluster, times=2)
    finish(cluster)
    assert (await following).finished


async def test_a_request_that_somebody_deletes_is_over(cluster: MemoryCluster, requests: Requests) -> None:
    following = asyncio.create_task(follow(requests, await requests.create(DOCUMENT)))
    await watching(cluster)
    await cluster.delete(PATH)
    ended = await following
    assert ended.is_deleted
    assert ended.exit_code() == ExitCode.CAPTURE_FAILED


async def test_a_new_request_of_the_same_name_is_another_one(cluster: MemoryCluster, requests: Requests) -> None:
    state = await requests.create(DOCUMENT)
    del cluster.objects[PATH]
    await requests.create(DOCUMENT)
    assert (await follow(requests, state)).is_deleted
    await requests.cancel(state)
    assert "annotations" not in cluster.objects[PATH]["metadata"]


async def test_ctrl_c_has_the_capture_taken_back_and_waits_for_its_end(
    cluster: MemoryCluster, requests: Requests
) -> None:
    following = asyncio.create_task(follow(requests, await requests.create(DOCUMENT)))
    await watching(cluster)
    os.kill(os.getpid(), signal.SIGINT)
    async with asyncio.timeout(60):
        while not cluster.objects[PATH]["metadata"].get("annotations"):
            await asyncio.sleep(0.01)
    assert cluster.objects[PATH]["metadata"]["annotations"] == {"fleetprof.io/cancel": "true"}
    finish(cluster, "Cancelled", "False")
    assert (await following).reason() == "Cancelled"


async def test_ctrl_c_of_somebody_who_only_waits_leaves_the_request_alone(
    cluster: MemoryCluster, requests: Requests
) -> None:
    following = asyncio.create_task(follow(requests, await requests.create(DOCUMENT), takes_back=False))
    await watching(cluster)
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(Failure) as caught:
        await following
    assert caught.value.exit_code == ExitCode.INTERRUPTED
    assert "the operator goes on with it" in caught.value.message
    assert "annotations" not in cluster.objects[PATH]["metadata"]


async def test_somebody_who_may_not_take_it_back_is_told_and_a_second_ctrl_c_leaves(
    cluster: MemoryCluster, requests: Requests, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.refusals["PATCH", PATH] = ApiRefused(403, "Forbidden", "profilerequests is forbidden: cannot patch")
    following = asyncio.create_task(follow(requests, await requests.create(DOCUMENT)))
    await watching(cluster)
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(Failure) as caught:
        await following
    assert caught.value.exit_code == ExitCode.INTERRUPTED
    assert "cannot cancel it: profilerequests is forbidden: cannot patch" in capsys.readouterr().err


async def test_the_latest_request_needs_no_name(cluster: MemoryCluster, requests: Requests) -> None:
    with pytest.raises(Failure, match="there is no ProfileRequest in namespace team"):
        await requests.find("latest")
    for name, moment in (("older", "2026-11-20T09:00:00Z"), ("newer", TIME), ("oldest", "2026-11-19T09:00:00Z")):
        metadata = {"name": name, "namespace": "team", "uid": name, "creationTimestamp": moment}
        cluster.put(requests_path("team", name), {"metadata": metadata})
    assert (await requests.find("latest")).name == "newer"
    assert [state.name for state in await requests.list()] == ["newer", "older", "oldest"]


GROUP = "profilerequests.fleetprof.io"


@pytest.mark.parametrize(
    ("refused", "code", "step"),
    [
        (ApiRefused(401, "Unauthorized", "Unauthorized"), ExitCode.NO_HUB, "log in to the cluster again"),
        (
            ApiRefused(403, "Forbidden", f'{GROUP} is forbidden: User "me" cannot create resource "profilerequests"'),
            ExitCode.REFUSED,
            "the ClusterRole fleetprof-editor",
        ),
        (
            ApiRefused(403, "Forbidden", f'{GROUP} is forbidden: User "me" cannot list resource "profilerequests"'),
            ExitCode.REFUSED,
            "the ClusterRole fleetprof-viewer",
        ),
        (
            ApiRefused(403, "Forbidden", 'admission webhook "x" denied the request: no'),
            ExitCode.REFUSED,
            "admission rules",
        ),
        (ApiRefused(404, "", "404 page not found"), ExitCode.REFUSED, "docs/install.md"),
        (ApiRefused(404, "NotFound", f'{GROUP} "look" not found'), ExitCode.REFUSED, "kubectl fleetprof list -n team"),
        (ApiRefused(409, "AlreadyExists", "already exists"), ExitCode.REFUSED, "metadata.name"),
        (ApiRefused(422, "Invalid", "spec.window: wrong"), ExitCode.INVALID, "kubectl explain profreq.spec"),
        (ApiRefused(500, "InternalError", "boom"), ExitCode.FAILED, ""),
    ],
    ids=lambda value: str(value)[:40],
)
def test_every_refusal_names_the_next_step(refused: ApiRefused, code: ExitCode, step: str) -> None:
    failure = explain_refusal(refused, "team")
    assert failure.exit_code == code
    assert step in failure.next_step


async def test_an_api_server_that_is_away_is_waited_for_by_those_who_follow(
    cluster: MemoryCluster, requests: Requests
) -> None:
    state = await requests.create(DOCUMENT)
    cluster.refusals["LIST", requests_path("team")] = ApiUnreachable("connection refused")
    with pytest.raises(Away, match="the API server does not answer"):
        async for _ in requests.watch(state):
            pass
    following = asyncio.create_task(follow(requests, state))
    await asyncio.sleep(0.1)
    cluster.refusals.clear()
    finish(cluster)
    assert (await following).finished
