"""The identities of webhook and analyzer."""

import pytest
from harness.kubernetes.api_server import ApiServer
from harness.kubernetes.stolen_identities import (
    ANALYZER,
    BINDINGS,
    EVERYTHING,
    HOOKS,
    JOBS,
    REQUESTS,
    SECRETS,
    TEAM,
    WEBHOOK,
    job,
    profile_request,
    widen,
)

pytestmark = pytest.mark.cluster


@pytest.mark.attack
@pytest.mark.parametrize("account", [WEBHOOK, ANALYZER])
def test_webhook_and_analyzer_reach_next_to_nothing(account: str, server: ApiServer) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    for method, place, document in (
        ("GET", f"{HOOKS}/fleetprof", None),
        ("PATCH", f"{HOOKS}/fleetprof", {"webhooks": widen(server, rules=EVERYTHING)}),
        ("GET", f"{SECRETS}/fleetprof-webhook-tls", None),
        ("GET", f"{SECRETS}/fleetprof-tls", None),
        ("GET", f"{TEAM}/secrets", None),
        ("GET", f"{TEAM}/pods", None),
        ("POST", f"{TEAM}/pods", pod),
        ("GET", "/api/v1/namespaces", None),
        ("GET", REQUESTS, None),
        ("POST", REQUESTS, profile_request("x")),
        ("POST", JOBS, job(server)),
        ("DELETE", f"{BINDINGS}/fleetprof-requester", None),
        ("POST", f"{TEAM}/serviceaccounts/default/token", {"spec": {}}),
    ):
        assert server.call(method, place, document, account=account)[0] == 403, (method, place)
    quotas = {server.call("GET", f"{TEAM}/{what}", account=account)[0] for what in ("resourcequotas", "limitranges")}
    assert quotas == ({200} if account == WEBHOOK else {403})
