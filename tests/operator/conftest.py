"""Fixtures: a namespace of a real API server with an operator that answers its ProfileRequests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.request_ground import RequestGround


@pytest.fixture
async def ground(api: ApiServer, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[RequestGround]:
    """An operator over a namespace of its own; `indirect` parameters are its flags."""
    ground = RequestGround(api, tmp_path, *getattr(request, "param", ()))
    ground.start_operator()
    try:
        yield ground
    finally:
        await ground.close()
