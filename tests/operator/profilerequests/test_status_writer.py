"""The writes of a status, and what happens when one fails: the writer over an API that counts and refuses."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_operator.kubernetes.cluster import Cluster
from fleetprof_operator.profilerequests import status_writer
from fleetprof_operator.profilerequests.status_writer import StatusWriter

PATH = "/apis/fleetprof.io/v1alpha1/namespaces/team/profilerequests/five"


class FakeApi:
    """Takes patches as long as `answers` has none to raise first."""

    def __init__(self, *answers: Exception, uid: str = "u") -> None:
        self.answers = list(answers)
        self.uid = uid
        self.written: list[Any] = []

    async def patch(self, path: str, operations: Any) -> None:
        assert path == f"{PATH}/status"
        if self.answers:
            raise self.answers.pop(0)
        test, add = operations
        assert test == {"op": "test", "path": "/metadata/uid", "value": "u"}
        self.written.append(add["value"])

    async def list(self, path: str, query: Any, *, metadata_only: bool) -> Any:
        assert (path, query, metadata_only) == (PATH.rpartition("/")[0], {"fieldSelector": "metadata.name=five"}, True)
        return [{"metadata": {"uid": self.uid}}], "1"


def status(reason: str, armed: int = 0) -> Any:
    return {"conditions": [{"type": "Succeeded", "status": "Unknown", "reason": reason}], "ranks": {"armed": armed}}


@asynccontextmanager
async def writing(api: FakeApi, known: Any = None) -> Any:
    writer = StatusWriter(cast("Cluster", api), PATH, "u", known or {}, on_write=lambda: None)
    task = asyncio.create_task(writer.run())
    try:
        yield writer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_is_there_already_is_not_written() -> None:
    api = FakeApi()
    async with writing(api, status("Waiting")) as writer:
        writer.want(status("Waiting"))
        await writer.flush()
    assert api.written == []


async def test_many_wishes_are_few_writes_and_the_last_one_counts() -> None:
    api = FakeApi()
    async with writing(api) as writer:
        for armed in range(100):
            writer.want(status("Capturing", armed))
            await asyncio.sleep(0)
        await writer.flush()
    assert len(api.written) <= 2  # the first at once, then all the others
    assert api.written[-1] == status("Capturing", 99)


async def test_counts_wait_where_conditions_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_writer, "SOON_S", 0.01)
    monkeypatch.setattr(status_writer, "LATER_S", 3600.0)
    api = FakeApi()
    async with writing(api) as writer:
        writer.want(status("Capturing"))
        await writer.flush()
        writer.want(status("Capturing", 1))
        await asyncio.sleep(0.3)
        assert len(api.written) == 1
        writer.want(status("Uploading", 2))
        while len(api.written) == 1:
            await asyncio.sleep(0.01)
    assert api.written == [status("Capturing"), status("Uploading", 2)]


async def test_a_failed_write_is_repeated_with_the_newest() -> None:
    api = FakeApi(
        ApiUnreachable("no route"), ApiRefused(500, "InternalError", "no"), ApiRefused(422, "Invalid", "not this one")
    )
    async with writing(api) as writer:
        writer.want(status("Capturing"))
        await asyncio.sleep(0.1)
        writer.want(status("Uploading"))
        await writer.flush()
    assert api.written == [status("Uploading")]


async def test_an_object_that_is_gone_or_anothers_ends_the_writing() -> None:
    for api in (
        FakeApi(ApiRefused(404, "NotFound", "gone")),
        FakeApi(ApiRefused(422, "Invalid", "test failed"), uid="v"),
    ):
        async with writing(api) as writer:
            writer.want(status("Capturing"))
            await writer.flush()
            writer.want(status("Uploading"))
            await writer.flush()
        assert writer.is_deleted
        assert api.written == []
