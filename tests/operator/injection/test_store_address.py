"""The words of the webhook's DNS on the store, over time."""

import asyncio
import socket
from typing import Any

import pytest
from fleetprof_operator.injection import store_address
from fleetprof_operator.injection.store_address import StoreAddress

NAME = "fleetprof-store.tools.svc"


class Names:
    """A DNS whose answers are a list: an address, or what it raises; the names that were asked for."""

    def __init__(self, *answers: Any) -> None:
        self.hosts: list[str] = []
        self._answers = list(answers)

    async def getaddrinfo(self, host: str, port: None, *, type: int) -> Any:
        self.hosts.append(host)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [(socket.AF_INET, type, 6, "", (answer, 0))]


@pytest.mark.parametrize(
    ("host", "answers", "known"),
    [
        (NAME, ["10.0.0.8", "10.0.0.9"], ["10.0.0.8", "10.0.0.9"]),
        (NAME, [socket.gaierror("unknown"), "10.0.0.8"], ["", "10.0.0.8"]),
        (NAME, ["10.0.0.8", TimeoutError(), socket.gaierror("unknown")], ["10.0.0.8"] * 3),
        ("s3.example.com", [], ["", ""]),
        ("", [], [""]),
    ],
)
async def test_the_last_answer_stays(
    host: str, answers: list[Any], known: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_address, "LOOK_AGAIN_S", 0.0)
    names = Names(*answers)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", names.getaddrinfo, raising=False)
    address = StoreAddress(host)
    found = []
    for _ in known:
        await address.look_up()
        found.append(address.ip)
    assert found == known
    assert names.hosts == [host] * len(answers)


async def test_an_answer_is_good_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names("10.0.0.8")
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", names.getaddrinfo, raising=False)
    address = StoreAddress(NAME)
    for _ in range(3):
        await address.look_up()
    assert names.hosts == [NAME]


async def test_a_name_that_stays_unknown_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_address, "LOOK_AGAIN_S", 0.0)
    unknown = socket.gaierror("unknown")
    names = Names(unknown, unknown, "10.0.0.8", TimeoutError(), unknown)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", names.getaddrinfo, raising=False)
    address = StoreAddress(NAME)
    for _ in range(5):
        await address.look_up()
    message = f"the address of the store {NAME} is not known: "
    assert [record.message for record in caplog.records] == [f"{message}unknown", f"{message}DNS does not answer"]
