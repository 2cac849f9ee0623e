"""Many requests that wait for their pods: what they cost the API server, and that nothing else waits for them."""

import re

import pytest
from fleetprof_operator.ownership.lease import DURATION_S, lease_path
from harness.kubernetes.request_ground import RequestGround, condition
from harness.ports import find_ports

pytestmark = pytest.mark.cluster

MANY = 120  # more than the Kubernetes client has connections


def count_watches(ground: RequestGround, resource: str) -> int:
    """The watches of that resource that all clients hold."""
    page = ground.api.send("GET", "/metrics", None, {}).data.decode()
    series = [line for line in page.splitlines() if line.startswith("apiserver_longrunning_requests{")]
    of_kind = [line for line in series if f'resource="{resource}"' in line and 'verb="WATCH"' in line]
    return sum(int(float(line.split()[-1])) for line in of_kind)


def count_pod_reads(ground: RequestGround) -> int:
    """How many single pods were ever read."""
    page = ground.api.send("GET", "/metrics", None, {}).data.decode()
    found = re.findall(r'^apiserver_request_total\{.*resource="pods".*verb="GET".*\} (\S+)$', page, re.MULTILINE)
    return sum(int(float(number)) for number in found)


def absent(number: int) -> dict[str, object]:
    return {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": f"absent-{number}"}}


@pytest.mark.parametrize("ground", [("--max-captures-per-namespace", str(2 * MANY), "--max-captures", str(2 * MANY))],
                         indirect=True)  # fmt: skip
async def test_more_requests_wait_than_a_client_has_connections(ground: RequestGround) -> None:
    ground.end_operator()
    ground.add_lease(ground.namespace)
    ground.arguments += ["--leases", ground.namespace, "--hub-listen", f"127.0.0.1:{find_ports(1)[0]}"]
    ground.start_operator()
    before, reads = count_watches(ground, "pods"), count_pod_reads(ground)
    ground.add_pod("stuck-0", "Pending", labels={"batch.kubernetes.io/job-name": "absent-0"})
    for number in range(MANY):
        ground.ask(f"absent-{number}", target=absent(number), activeDeadlineSeconds=86_400)

    def states() -> list[str]:
        items = ground.must("GET", ground.path("profilerequests"))["items"]
        return [condition(item.get("status") or {})[1] for item in items]

    await ground.until(lambda: states() == ["Waiting"] * MANY, "each to say that it waits")
    assert count_watches(ground, "pods") - before == 1
    assert count_pod_reads(ground) == reads

    def renewals() -> str:
        renewed: str = ground.must("GET", lease_path(ground.namespace))["spec"]["renewTime"]
        return renewed

    first = renewals()
    await ground.until(lambda: renewals() != first, f"the Lease of {DURATION_S} s to be renewed")
    await ground.until(lambda: "the hub listens" in ground.log(), "its hub")
    sidecar = await ground.add_rank(0, 1)
    ground.ask("now")
    await ground.deliver(sidecar)
    assert condition(await ground.until_finished("now")) == ("True", "Complete")
