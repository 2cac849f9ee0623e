"""Fixtures: a real API server that serves ProfileRequests, and a namespace of it with an operator."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from harness.kubernetes.api_server import ApiServer, serve_requests
from harness.kubernetes.request_ground import RequestGround


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server that knows ProfileRequests."""
    with serve_requests(tmp_path_factory.mktemp("api-server")) as server:
        yield server


@pytest.fixture
async def ground(api: ApiServer, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[RequestGround]:
    """An operator over a namespace of its own; `indirect` parameters are its flags."""
    ground = RequestGround(api, tmp_path, *getattr(request, "param", ()))
    ground.start_operator()
    try:
        yield ground
    finally:
        await ground.close()
