"""/figures: who is told what jobs do now, and that many who ask cost one document."""

import asyncio

import pytest
from aiohttp.test_utils import TestClient, TestServer
from fleetprof_operator.web import figures_page
from fleetprof_operator.web.figures_page import make_figures

FIGURES = {("", ""): b'{"workloads":[]}', ("team", "Job/llama"): b'{"workloads":[1]}'}
GOOD = {"Fleetprof-Token": "good"}


async def admit(token: str) -> bool | None:
    return {"good": True, "cannot tell": None}.get(token, False)


@pytest.mark.attack
@pytest.mark.parametrize(
    ("query", "headers", "status", "text"),
    [
        ("", GOOD, 200, '{"workloads":[]}'),
        ("?namespace=team&workload=Job/llama", GOOD, 200, '{"workloads":[1]}'),
        ("?namespace=away", GOOD, 503, '{"message": "this replica stands by"}'),
        (f"?workload={'x' * 321}", GOOD, 400, '{"message": "a name may have 320 characters"}'),
        ("", {}, 401, '{"message": "Fleetprof-Token holds no good token"}'),
        ("", {"Authorization": "Bearer good"}, 401, '{"message": "Fleetprof-Token holds no good token"}'),
        ("", {"Fleetprof-Token": "bad"}, 401, '{"message": "Fleetprof-Token holds no good token"}'),
        ("", {"Fleetprof-Token": "cannot tell"}, 503, '{"message": "the token cannot be checked now"}'),
    ],
)
async def test_only_a_good_token_is_told_figures(query: str, headers: dict[str, str], status: int, text: str) -> None:
    async def read(namespace: str, workload: str) -> bytes | None:
        return FIGURES.get((namespace, workload))

    server = TestServer(make_figures(read, admit))
    async with TestClient(server) as client, client.get(f"/figures{query}", headers=headers) as answer:
        assert (answer.status, await answer.text()) == (status, text)


async def test_figures_are_made_once_for_all_who_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    namespaces: list[str] = []

    async def read(namespace: str, _: str) -> bytes | None:
        namespaces.append(namespace)
        await asyncio.sleep(0)
        return namespace.encode() if namespace != "away" else None

    monkeypatch.setattr(figures_page, "KEPT_S", 3600.0)
    async with TestClient(TestServer(make_figures(read, admit))) as client:

        async def ask(namespace: str) -> str:
            async with client.get(f"/figures?namespace={namespace}", headers=GOOD) as answer:
                return await answer.text()

        assert await asyncio.gather(*map(ask, ("a", "a", "b", "a"))) == ["a", "a", "b", "a"]
        assert sorted(namespaces) == ["a", "b"]
        await ask("away")
        await ask("away")  # it may have begun to serve
        assert namespaces.count("away") == 2
        monkeypatch.setattr(figures_page, "KEPT_S", 0.0)
        await ask("c")
        await ask("c")
        assert namespaces.count("c") == 2
