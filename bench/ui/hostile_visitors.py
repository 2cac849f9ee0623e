"""Visitors of a web UI who do their worst, all of it at once, as fast as it goes: for the others' answers.

    python hostile_visitors.py PORT COOKIE SECONDS

Some have no account: silent connections, bodies that trickle, guessed cookies, words that are no tokens. One has the
session COOKIE: lists with filters that find nothing, and the longest YAML. Prints how many answers each had. Loopback
only; ends by itself, or at SIGTERM.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable

SILENT = 200
TRICKLING = 50
MOST_YAML = 60_000

answers: Counter[str] = Counter()


class Visitors:
    """The visitors, each over connections of its own to the web UI at this port."""

    def __init__(self, port: int, cookie: str) -> None:
        self._port = port
        self._cookie = cookie
        # One field of many lines, which is read to its end before it is refused.
        lines = "".join(f"    label-{number}: value-{number}\n" for number in range(MOST_YAML // 32))
        spec = "spec:\n  target:\n    selector:\n      matchLabels:\n"
        text = (
            "apiVersion: fleetprof.io/v1alpha1\nkind: ProfileRequest\nmetadata: {name: r}\n"
            + spec
            + lines.replace("    label", "        label")
        )
        self._yaml = json.dumps({"yaml": text, "namespace": "team-b"})

    async def keep_silent(self) -> None:
        """As many connections as there are places for one address, or nearly, that say nothing."""
        await self._hold([b""] * SILENT)

    async def trickle(self) -> None:
        """Requests whose bodies do not come."""
        await self._hold([self._head("POST", "/requests", {"Content-Length": "60000"}) + b"{"] * TRICKLING)

    async def guess(self) -> None:
        """Sessions that are nobody's."""
        name = self._cookie.partition("=")[0]
        await self._ask("guess", lambda: self._head("GET", "/fleet", {"Cookie": f"{name}={secrets.token_urlsafe(32)}"}))

    async def bring(self) -> None:
        """Words that are no Kubernetes tokens."""
        await self._ask(
            "bring",
            lambda: self._write("/session/kubectl", "", {"Authorization": f"Bearer {secrets.token_urlsafe(32)}"}),
        )

    async def list_fleet(self) -> None:
        """Lists by a text that no workload has."""
        own = {"Cookie": self._cookie}
        await self._ask("list", lambda: self._head("GET", f"/fleet?text={secrets.token_hex(16)}&sort=-gain", own))

    async def send_yaml(self) -> None:
        """The longest YAML that is read."""
        own = {"Cookie": self._cookie}
        await self._ask("yaml", lambda: self._write("/requests/check", self._yaml, own))

    def _head(self, method: str, path: str, headers: dict[str, str]) -> bytes:
        host = f"127.0.0.1:{self._port}"
        known = {"Host": host, "Accept": "application/json", **headers}
        if method == "POST":
            known |= {"Origin": f"http://{host}", "X-Fleetprof-Request": "1", "Content-Type": "application/json"}
        return "\r\n".join([f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in known.items()), "", ""]).encode()

    def _write(self, path: str, body: str, headers: dict[str, str]) -> bytes:
        return self._head("POST", path, {"Content-Length": str(len(body)), **headers}) + body.encode()

    async def _hold(self, texts: list[bytes]) -> None:
        opened = [await asyncio.open_connection("127.0.0.1", self._port) for _ in texts]
        try:
            for (_, writer), text in zip(opened, texts, strict=True):
                writer.write(text)
            await asyncio.sleep(5)
        finally:
            for _, writer in opened:
                writer.close()

    async def _ask(self, name: str, make: Callable[[], bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            while True:
                writer.write(make())
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(head.partition("content-length:")[2].split()[0])
                await reader.readexactly(length)
                answers[f"{name} {head.split()[1]}"] += 1
        finally:
            writer.close()


async def repeat(act: Callable[[], Awaitable[None]]) -> None:
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, IndexError):
            await act()
        await asyncio.sleep(0.01)


async def main(port: int, cookie: str, seconds: float) -> None:
    visitors = Visitors(port, cookie)
    acts = [visitors.keep_silent, visitors.trickle] + [visitors.guess] * 8 + [visitors.bring] * 4
    acts += [visitors.list_fleet] * 8 + [visitors.send_yaml] * 4
    tasks = [asyncio.create_task(repeat(act)) for act in acts]
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps(answers))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
