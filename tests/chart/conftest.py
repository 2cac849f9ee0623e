import os

import pytest
from harness.kubernetes import chart


@pytest.fixture(autouse=True)
def _helm(request: pytest.FixtureRequest) -> None:
    """A test that renders the chart is skipped without helm, or fails where CI requires the cluster's programs."""
    needs_helm = any(request.node.get_closest_marker(name) for name in ("helm", "cluster"))
    if needs_helm and chart.find_helm() is None:
        reason = "there is no helm; install it, or let `make cluster` build one"
        if "cluster" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
