"""The words of a process to kubelet and Prometheus."""

import pytest
from aiohttp.test_utils import TestClient, TestServer
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
