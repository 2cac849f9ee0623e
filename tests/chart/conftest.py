import os

import pytest
from harness.kubernetes import chart


@pytest.fixture(autouse=True)
def _helm(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("cluster") and chart.find_helm() is None:
        reason = "there is no helm; install it, or let `make cluster` build one"
        if "cluster" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
