"""Fixture: a namespace with what two operators need."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.request_ground import RequestGround


@pytest.fixture
async def grounds(api: ApiServer, tmp_path: Path) -> AsyncIterator[list[RequestGround]]:
    """Grounds that are closed at the end; the first has no operator yet, and is to hold its namespace's Lease."""
    first = RequestGround(api, tmp_path)
    first.arguments += ["--leases", first.namespace]
    grounds = [first]
    try:
        yield grounds
    finally:
        for ground in reversed(grounds):
            await ground.close()


@pytest.fixture
def leases(api: ApiServer) -> str:
    """A namespace whose Lease stands for the whole cluster."""
    name = f"leases-{uuid.uuid4().hex[:8]}"
    assert api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})[0] == 201
    return name
