"""Many requests that wait for their pods: what they cost the API server, and that nothing else waits for them."""

import asyncio
import re
from collections import Counter

import pytest
from fleetprof_operator.ownership.lease import DURATION_S, lease_path
from harness.kubernetes.request_ground import RequestGround, condition
from harness.ports import find_ports

pytestmark = pytest.mark.cluster

MANY = 120  # more than the Kubernetes client has connections
MOST = 1000  # fewer than may wait in one namespace: who comes after so many is taken


def count_watches(ground: RequestGround, resource: str) -> int:
    """The watches of that resource that all clients hold."""
    page = ground.api.send("GET", "/metrics", None, {}).data.decode()
    series = [line for line in page.splitlines() if line.startswith("apiserver_longrunning_requests{")]
    of_kind = [line for line in series if f'resource="{resource}"' in line and 'verb="WATCH"' in line]
    return sum(int(float(line.split()[-1])) for line in of_kind)


def count_pod_reads(ground: RequestGround) -> int:
    """The number of single pods that were ever read."""
    page = ground.api.send("GET", "/metrics", None, {}).data.decode()
    found = re.findall(r'^apiserver_request_total\{.*resource="pods".*verb="GET".*\} (\S+)$', page, re.MULTILINE)
    return sum(int(float(number)) for number in found)


def count_states(ground: RequestGround) -> Counter[str]:
    """The number of requests by state. In pages: all of a thousand at once take a busy API server a minute."""
    states, more = Counter[str](), ""
    while True:
        page = ground.must("GET", f"{ground.path('profilerequests')}?limit=100&continue={more}")
        states.update(condition(item.get("status") or {})[1] for item in page["items"])
        if not (more := page["metadata"].get("continue", "")):
            return states


def read_figure(ground: RequestGround, name: str) -> float:
    """A figure of the operator's own."""
    (line,) = (line for line in ground.scrape().splitlines() if line.startswith(f"{name} "))
    return float(line.split()[1])


def absent(number: int) -> dict[str, object]:
    return {"workload": {"apiVersion": "batch/v1", "kind": "Job", "name": f"absent-{number}"}}


@pytest.mark.parametrize("ground", [("--max-captures-per-namespace", str(2 * MANY), "--max-captures", str(2 * MANY))],
                         indirect=True)  # fmt: skip
async def test_more_requests_wait_than_a_client_has_connections(ground: RequestGround) -> None:
    ground.end_operator()
    ground.add_lease(ground.namespace)
    ground.arguments += ["--leases", ground.namespace, "--listen", f"hub=127.0.0.1:{find_ports(1)[0]}"]
    ground.start_operator()
    before, reads = count_watches(ground, "pods"), count_pod_reads(ground)
    ground.add_pod("stuck-0", "Pending", labels={"batch.kubernetes.io/job-name": "absent-0"})
    for number in range(MANY):
        ground.ask(f"absent-{number}", target=absent(number), activeDeadlineSeconds=86_400)

    await ground.until(lambda: count_states(ground) == {"Waiting": MANY}, "each to say that it waits")
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


@pytest.mark.nightly
@pytest.mark.timeout(1200)
async def test_a_thousand_requests_wait_at_little_cost(ground: RequestGround) -> None:
    for number in range(MOST):
        ground.ask(f"absent-{number}", target=absent(number), activeDeadlineSeconds=86_400)
    while count_states(ground) != {"Waiting": MOST}:
        await asyncio.sleep(10)
    await asyncio.sleep(100)  # the longer they wait, the rarer they look
    busy_s = read_figure(ground, "process_cpu_seconds_total")
    await asyncio.sleep(30)
    cores = (read_figure(ground, "process_cpu_seconds_total") - busy_s) / 30
    resident_bytes = read_figure(ground, "process_resident_memory_bytes")
    print(f"{cores:.3f} cores, {resident_bytes / (1 << 20):.0f} MiB")
    sidecar = await ground.add_rank(0, 1)
    ground.ask("now")
    await ground.deliver(sidecar)
    assert condition(await ground.until_finished("now")) == ("True", "Complete")
    assert cores <= 0.2
    assert resident_bytes <= 250 << 20
