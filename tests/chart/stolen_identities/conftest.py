"""The rights of each of our identities, used and overstepped: attempts at a real API server.

The release is the chart's, installed by helm; nothing runs there, so that every call is made in an identity's name
(impersonation: its rights and no other). What comes of it is the table in docs/security.md.
"""

import os
import subprocess
from collections.abc import Iterator

import pytest
from harness.kubernetes import chart
from harness.kubernetes.api_server import ApiServer, run_api_server
from harness.kubernetes.chart import CHART, VALUE_SETS
from harness.kubernetes.stolen_identities import (
    CERTIFICATES,
    DENIED,
    HOOKS,
    JOBS,
    OPERATOR,
    REQUESTS,
    SYSTEM,
    TEAM,
    job,
    must,
    widen,
)
from harness.waiting import wait_until


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server with a release, a team beside it, and policies that are heeded."""
    with run_api_server(tmp_path_factory.mktemp("stolen")) as server:
        for namespace in (SYSTEM, "team-a"):
            must(server, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        must(server, "POST", f"{TEAM}/serviceaccounts", {"metadata": {"name": "default"}})
        must(server, "POST", f"{TEAM}/secrets", {"metadata": {"name": "of-the-team"}})
        helm = chart.find_helm()
        assert helm is not None
        settings = [word for value in VALUE_SETS["S3"] for word in ("--set", value)]
        result = subprocess.run(
            [helm, "--namespace", SYSTEM, "install", "fleetprof", str(CHART), *settings],
            env=os.environ | {"KUBECONFIG": str(server.kubeconfig())},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert result.returncode == 0, result.stderr
        wait_until(lambda: server.call("GET", REQUESTS)[0] == 200, "the kind to be served")
        # A policy is heeded a moment after it is made.
        wider = {"webhooks": widen(server, failurePolicy="Fail")}
        path = f"{HOOKS}/fleetprof?dryRun=All"
        wait_until(lambda: server.call("PATCH", path, wider, account=CERTIFICATES)[0] in DENIED, "the policy", 60)
        free = job(server, serviceAccountName="fleetprof-webhook")
        path = f"{JOBS}?dryRun=All"
        wait_until(lambda: server.call("POST", path, free, account=OPERATOR)[0] in DENIED, "the policy of Jobs", 60)
        yield server
