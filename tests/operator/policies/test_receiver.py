"""Callers of the receiver, what it takes, and what a flood comes to."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from fleetprof_operator.policies.receiver import MOST_BYTES, AlertReceiver
from fleetprof_operator.policies.triggers.alerts import FiringAlert
from fleetprof_operator.web.connections import Connections

TOKEN = "0123456789abcdef-told"
LABELS = {"alertname": "Low", "namespace": "team", "kind": "Job", "workload": "llama"}
BODY = json.dumps({"version": "4", "alerts": [{"status": "firing", "labels": LABELS}]}).encode()


class Told:
    """A receiver that listens, and what it took."""

    def __init__(self, token_file: Path) -> None:
        self.token_file = token_file
        self.taken: list[FiringAlert] = []
        self.server = Connections(
            AlertReceiver(token_file, self.taken.extend).make_application(), None, what="alert receiver"
        )

    async def call(self, body: bytes = BODY, authorization: str = f"Bearer {TOKEN}") -> tuple[int, Any]:
        headers = {"Authorization": authorization} if authorization else {}
        address = f"http://127.0.0.1:{self.server.port}/alerts"
        async with aiohttp.ClientSession() as session, session.post(address, data=body, headers=headers) as answer:
            return answer.status, await answer.json()


@pytest.fixture
async def receiver(tmp_path: Path) -> AsyncIterator[Told]:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    receiver = Told(tmp_path / "token")
    await receiver.server.start("127.0.0.1", 0)
    yield receiver
    await receiver.server.close()


async def test_an_alert_is_taken_with_the_token(receiver: Told) -> None:
    assert await receiver.call() == (200, {"taken": 1})
    assert [alert.workload for alert in receiver.taken] == ["llama"]


@pytest.mark.parametrize("authorization", ["", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \u00e9"])
async def test_nobody_else_is_heard(receiver: Told, authorization: str) -> None:
    status, answer = await receiver.call(authorization=authorization)
    assert (status, answer["error"]) == (401, "no bearer token, or not the one of this receiver")
    assert receiver.taken == []


async def test_a_token_may_be_changed_and_must_not_be_short_or_missing(receiver: Told) -> None:
    receiver.token_file.write_text("another-token-0123")
    assert (await receiver.call())[0] == 401
    assert (await receiver.call(authorization="Bearer another-token-0123"))[0] == 200
    receiver.token_file.write_text("short")
    assert (await receiver.call(authorization="Bearer short"))[0] == 401
    receiver.token_file.unlink()
    assert (await receiver.call(authorization="Bearer "))[0] == 401


async def test_a_body_has_a_bound_and_a_form(receiver: Told) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", receiver.server.port)
    head = (
        f"POST /alerts HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {MOST_BYTES + 1}\r\n\r\n"
    )
    writer.write(head.encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
    writer.close()
    status, answer = await receiver.call(b"{}")
    assert (status, "must be a message of Alertmanager's webhook" in answer["error"]) == (400, True)
