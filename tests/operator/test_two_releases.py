"""Two releases of one cluster at once, each with its own hub and webhook: real processes, a real API server.

The webhooks' configurations are the chart's own. A namespace's label says which release has it.
"""

from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from harness.kubernetes.api_server import serve_requests
from harness.kubernetes.chart import S3, render
from harness.kubernetes.request_ground import RequestGround
from harness.kubernetes.webhook_process import RunningWebhook, run_webhook
from harness.ports import find_ports

pytestmark = [pytest.mark.cluster, pytest.mark.helm]

HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
LEASES = "kube-system"
ON = {"fleetprof.io/inject": "true"}


def register(ground: RequestGround, name: str, values: tuple[str, ...], webhook: RunningWebhook) -> None:
    """The configuration of a release with these values, for a webhook that listens here."""
    document = render(values).one("MutatingWebhookConfiguration", "fleetprof")
    document["metadata"]["name"] = name
    for each in document["webhooks"]:
        each["clientConfig"] = webhook.address(each["clientConfig"]["service"]["path"])
    ground.must("POST", HOOKS, document)


def find_hub(pod: dict[str, Any]) -> str:
    """The hub that a pod's sidecar was given; "" without a sidecar."""
    containers = pod["spec"].get("initContainers", [])
    return next((each["value"] for c in containers for each in c.get("env", []) if each["name"] == "FLEETPROF_HUB"), "")


@pytest.fixture
async def releases(tmp_path: Path) -> AsyncIterator[dict[str, RequestGround]]:
    """A release for one namespace, and the one for the whole cluster, which is asked in another."""
    with ExitStack() as running:
        (tmp_path / "cluster").mkdir()
        api = running.enter_context(serve_requests(tmp_path / "cluster"))
        shard = RequestGround(api, tmp_path)
        port = f"hub=127.0.0.1:{find_ports(1)[0]}"  # which it has from when it holds its Lease
        wide = shard.beside("wide", "--leases", LEASES, "--listen", port, "--owner", "fleetprof-system/wide")
        wide.namespace = f"{shard.namespace}-other"
        wide.must("POST", "/api/v1/namespaces", {"metadata": {"name": wide.namespace}})
        account = {"metadata": {"name": "default"}}
        wide.must("POST", f"/api/v1/namespaces/{wide.namespace}/serviceaccounts", account)
        shard.add_lease(shard.namespace)
        shard.add_lease(LEASES)
        shard.arguments += ["--owner", "ml-system/ml"]
        labels = {shard: {**ON, "fleetprof.io/release": "ml"}, wide: ON}
        grounds = {"ml": shard, "fleetprof": wide}  # the API server asks by name, the latter's webhook first
        try:
            for name, ground in grounds.items():
                ground.must("PATCH", f"/api/v1/namespaces/{ground.namespace}", {"metadata": {"labels": labels[ground]}})
                ground.start_operator()
                await ground.until(lambda: "the hub listens" in ground.log(), "its hub")  # noqa: B023
                (ground.folder / "webhook").mkdir()
                hub = f"127.0.0.1:{ground.ports['hub']}"
                webhook = running.enter_context(run_webhook(ground.folder / "webhook", api.kubeconfig(), hub))
                places = (f"scope.namespaces={{{shard.namespace}}}", "scope.cluster=false", "crds.enabled=false")
                register(ground, name, (*S3, *(places if ground is shard else ())), webhook)
            yield grounds
        finally:
            for ground in grounds.values():
                await ground.close()


async def test_each_namespace_has_the_hub_of_its_release(releases: dict[str, RequestGround]) -> None:
    made: dict[str, str] = {}

    def try_pod(ground: RequestGround) -> str:
        """The hub that a pod would be given."""
        probe = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        return find_hub(ground.must("POST", f"{ground.path('pods')}?dryRun=All", probe))

    for name, ground in releases.items():
        hub = f"127.0.0.1:{ground.ports['hub']}"
        # The configuration takes a moment to be heeded.
        await ground.until(lambda: try_pod(ground) == hub, f"the webhook of {name}")  # noqa: B023
        uid = ground.add_pod("llama-0", injected=False)
        pod = ground.must("GET", ground.path("pods", "llama-0"))
        assert find_hub(pod) == hub
        sidecar = await ground.add_sidecar("llama-0", uid, ground.process(0, 1))
        made[name] = ground.ask()["metadata"]["uid"]
        await ground.deliver(sidecar)
    for name, ground in releases.items():
        status = await ground.until_finished()
        assert (status["owner"], status["ranks"]["uploaded"]) == (ground.arguments[-1], 1)
        assert ground.made()["metadata"]["annotations"]["fleetprof.io/requested-by"] == "admin"
        assert ground.ledger({"metadata": {"uid": made[name]}})["uid"] == made[name]
