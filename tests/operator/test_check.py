"""`fleetprof-operator check`: what `helm test` says of an operator by its Lease."""

from typing import Any

import pytest
from fleetprof_operator.check import check, judge
from fleetprof_operator.ownership.lease import Holder, build_claim, lease_path
from harness.kubernetes.scripted_cluster import ScriptedCluster

OURS = Holder("pod-a", "system/fleetprof", "10.0.0.1:8443")
STRANGER = Holder("pod-b", "elsewhere/fleetprof", "10.0.0.2:8443")
S = 10**9


def lease(holder: Holder | None, renewed_unix_ns: int = S, trouble: str = "") -> dict[str, Any]:
    body: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "spec": {}}
    if holder is not None:
        claim = build_claim(body, holder, renewed_unix_ns, trouble)
        body = {"metadata": body["metadata"] | claim["metadata"], "spec": claim["spec"]}
    return body


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (None, lease(None), "no operator serves"),
        (lease(OURS), lease(OURS), "pod-a does not renew the Lease"),
        (lease(OURS), lease(OURS, 3 * S), ""),
        (lease(OURS), lease(STRANGER, 3 * S), "the release elsewhere/fleetprof serves here"),
        (lease(OURS), lease(OURS, 3 * S, "the object store cannot be used: no bucket"), "pod-a says: the object store"),
    ],
)
def test_what_a_lease_says(before: dict[str, Any] | None, now: dict[str, Any], says: str) -> None:
    problem = judge(before, now, OURS.owner)
    assert says in problem
    assert bool(problem) == bool(says)


async def test_each_lease_must_be_there_and_be_renewed() -> None:
    cluster = ScriptedCluster({lease_path("a"): lease(OURS)})
    problems = await check(cluster, ["a", "b"], OURS.owner, patience_s=0.02, look_s=0.01)
    assert [problem.partition(": ")[0] for problem in problems] == ["the Lease a/fleetprof", "the Lease b/fleetprof"]
