"""Fixtures: the CRD as a document, and a real API server that serves it."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from api_server import ApiServer, find_programs
from wrong_requests import REQUESTS

ROOT = Path(__file__).parents[2]
CRD_FILE = ROOT / "crds/fleetprof.io_profilerequests.yaml"


@pytest.fixture(scope="session")
def crd() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(CRD_FILE.read_text())
    return document


@pytest.fixture(scope="session")
def schema(crd: dict[str, Any]) -> dict[str, Any]:
    """The structural schema of a request."""
    (version,) = crd["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


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
        until = time.monotonic() + 60
        while server.call("GET", REQUESTS)[0] != 200:
            assert time.monotonic() < until, "the kind is not served"
            time.sleep(0.1)
        yield server
    finally:
        server.stop()
