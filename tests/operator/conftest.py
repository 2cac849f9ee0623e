"""Fixtures: a real API server that serves ProfileRequests, and a namespace of it with an operator."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from api_server import ApiServer, find_programs
from local_system import wait_until
from request_ground import Ground

CRD_FILE = Path(__file__).parents[2] / "crds/fleetprof.io_profilerequests.yaml"
REQUESTS = "/apis/fleetprof.io/v1alpha1/profilerequests"


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server that knows ProfileRequests."""
    programs = find_programs()
    if isinstance(programs, str):
        if "cluster" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(programs)
        pytest.skip(programs)
    server = ApiServer(programs, tmp_path_factory.mktemp("api-server"))
    try:
        server.start()
        applied = server.kubectl("apply", "-f", str(CRD_FILE))
        assert applied.returncode == 0, applied.stderr
        wait_until(lambda: server.call("GET", REQUESTS)[0] == 200, "the kind to be served")
        yield server
    finally:
        server.stop()


@pytest.fixture
async def ground(api: ApiServer, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Ground]:
    """An operator over a namespace of its own; `indirect` parameters are its flags."""
    ground = Ground(api, tmp_path, *getattr(request, "param", ()))
    ground.start_operator()
    try:
        yield ground
    finally:
        await ground.close()
