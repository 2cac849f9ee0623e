"""What a process tells kubelet and Prometheus."""

import asyncio

import pytest
from aiohttp.test_utils import TestClient, TestServer
from fleetprof_operator.web import figures_page
from fleetprof_operator.web.probes import make_probes
from prometheus_client import CollectorRegistry, Gauge


@pytest.mark.parametrize(
    ("path", "obstacle", "has_metrics", "status", "text"),
    [
        ("/healthz", "", True, 200, "ok\n"),
        ("/healthz", "no certificate yet", True, 200, "ok\n"),
        ("/readyz", "", True, 200, "ok\n"),
        ("/readyz", "no certificate yet", True, 503, "no certificate yet\n"),
        ("/metrics", "no certificate yet", True, 200, "# HELP rooms Rooms.\n# TYPE rooms gauge\nrooms 3.0\n"),
        ("/metrics", "", False, 404, "404: Not Found"),
    ],
)
async def test_probes(path: str, obstacle: str, has_metrics: bool, status: int, text: str) -> None:
    registry = CollectorRegistry()
    Gauge("rooms", "Rooms.", registry=registry).set(3)
    app = make_probes(lambda: obstacle, registry if has_metrics else None)
    async with TestClient(TestServer(app)) as client, client.get(path) as answer:
        assert (answer.status, await answer.text()) == (status, text)


FIGURES = {("", ""): b'{"workloads":[]}', ("team", "Job/llama"): b'{"workloads":[1]}'}


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("", 200, '{"workloads":[]}'),
        ("?namespace=team&workload=Job/llama", 200, '{"workloads":[1]}'),
        ("?namespace=away", 503, '{"error": "this replica stands by"}'),
        (f"?workload={'x' * 321}", 400, '{"error": "a name may have 320 characters"}'),
    ],
)
async def test_figures_are_one_document(query: str, status: int, text: str) -> None:
    async def read(namespace: str, workload: str) -> bytes | None:
        return FIGURES.get((namespace, workload))

    app = make_probes(str, figures=read)
    async with TestClient(TestServer(app)) as client, client.get(f"/figures{query}") as answer:
        assert (answer.status, await answer.text()) == (status, text)


async def test_figures_are_made_once_for_all_who_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def read(namespace: str, _: str) -> bytes | None:
        asked.append(namespace)
        await asyncio.sleep(0)
        return namespace.encode() if namespace != "away" else None

    monkeypatch.setattr(figures_page, "KEPT_S", 3600.0)
    async with TestClient(TestServer(make_probes(str, figures=read))) as client:

        async def ask(namespace: str) -> str:
            async with client.get(f"/figures?namespace={namespace}") as answer:
                return await answer.text()

        assert await asyncio.gather(*map(ask, ("a", "a", "b", "a"))) == ["a", "a", "b", "a"]
        assert sorted(asked) == ["a", "b"]
        await ask("away")
        await ask("away")  # it may have begun to serve
        assert asked.count("away") == 2
        monkeypatch.setattr(figures_page, "KEPT_S", 0.0)
        await ask("c")
        await ask("c")
        assert asked.count("c") == 2
