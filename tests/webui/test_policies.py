"""Policies and the jobs of the last day, as the service answers them from what the operator stored, by who may read."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from fleetprof_api import keys
from fleetprof_api.policy.stored import MOST_BYTES, InvalidPolicies, read_policies
from fleetprof_api.telemetry.history import STEP_NS, NamespaceDay, WorkloadDay, write_day
from fleetprof_store.memory import MemoryStore
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.policies.reading import find_policy
from webui.conftest import Site

END = 1_800_000_000 * 10**9
POLICY: dict[str, Any] = {
    "name": "starved",
    "spec": {
        "mode": "Capture",
        "triggers": [{"name": "low", "type": "LowUtilization"}],
        "template": {"spec": {"window": {"iterations": 5}}},
    },
    "status": {
        "fired": 3,
        "captured": 1,
        "suppressed": 2,
        "lastFiredTime": "2027-01-15T07:58:00Z",
        "conditions": [{"type": "Ready", "status": "True", "reason": "Watching", "message": "watched for"}],
        "captures": [
            {
                "request": "starved-1",
                "uid": "slow",
                "workload": "Job/gpt/1",
                "trigger": "low",
                "cause": "12 % of the GPUs' activity",
                "firedTime": "2027-01-15T07:00:00Z",
                "result": "Complete",
                "headline": "It waits for data.",
            }
        ],
        "suppressions": [
            {
                "workload": "Job/gpt/1",
                "trigger": "low",
                "reason": "Cooldown",
                "message": "captured 600 s ago",
                "count": 2,
                "firstTime": "2027-01-15T07:10:00Z",
                "lastTime": "2027-01-15T07:58:00Z",
            }
        ],
    },
}


def document(*policies: dict[str, Any]) -> bytes:
    return json.dumps({"version": 1, "policies": policies}).encode()


@pytest.fixture
def site(make_site: Callable[..., Site], store: MemoryStore) -> Site:
    """team-c was never captured; team-a was."""
    rates: list[float | None] = [*[4.0] * 286, 2.0, 1.0]
    idle = WorkloadDay("Job", "gpt/1", {"gpu_busy_ratio": [0.1], "iterations_per_second": rates})
    ended = WorkloadDay("Job", "old", {"gpu_busy_ratio": [0.9, None, None, None], "iteration_seconds": [0.2, None]})
    busy = WorkloadDay("Job", "llama", {"gpu_busy_ratio": [0.2], "gpu_sm_active_ratio": [0.8]})
    store.put(keys.telemetry_day_key("team-c"), write_day(NamespaceDay(END, [ended, idle])))
    store.put(keys.telemetry_day_key("team-a"), write_day(NamespaceDay(END, [busy])))
    store.put(keys.policies_key("team-c"), document(POLICY))
    store.delete([keys.policies_key("team-a")])
    site = make_site()
    site.sign_in()
    return site


def test_jobs_that_were_never_captured_are_listed_the_idlest_of_those_that_run_first(site: Site) -> None:
    page = site.client.get("/telemetry").json()
    rows = [(job["namespace"], job["name"], job["captured"], job["running"], job["activity"]) for job in page["items"]]
    assert rows == [
        ("team-c", "gpt/1", False, True, 0.1),
        ("team-a", "llama", True, True, 0.8),
        ("team-c", "old", False, True, None),
    ]
    (first, *_) = page["items"]
    assert (len(first["rates"]), first["step_ns"]) == (48, 6 * STEP_NS)
    assert first["rates"][-1] == pytest.approx((4 * 4.0 + 2.0 + 1.0) / 6)
    assert [(action["action"], action["reason"], action["count"]) for action in first["actions"]] == [
        ("suppressed", "Cooldown", 2),
        ("captured", "Complete", 1),
    ]


def test_a_job_that_was_never_captured_has_a_page(site: Site) -> None:
    assert site.client.get("/fleet/team-c/Job/gpt/1").json()["items"] == []
    assert site.client.get("/fleet/team-c/Job/nobody").status_code == 404


def test_policies_say_what_fired_and_what_came_of_it(site: Site) -> None:
    (policy,) = site.client.get("/policies").json()["items"]
    assert policy == {
        "namespace": "team-c",
        "name": "starved",
        "mode": "Capture",
        "ready": True,
        "message": "watched for",
        "triggers": ["low: LowUtilization"],
        "fired": 3,
        "captured": 1,
        "suppressed": 2,
        "last_fired_unix_ns": "1799999880000000000",
    }
    detail = site.client.get("/policies/team-c/starved").json()
    assert "triggers:\n- name: low\n" in detail["spec_yaml"]
    suppressed, captured = detail["actions"]
    assert (suppressed["message"], suppressed["at_unix_ns"]) == ("captured 600 s ago", "1799999880000000000")
    assert (captured["headline"], captured["uid"]) == ("It waits for data.", "slow")
    assert site.client.get("/policies/team-c/other").status_code == 404
    assert site.client.get("/policies/team-b/starved").status_code == 404


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"rubbish", b'{"version": 2, "policies": []}', b" " * (MOST_BYTES + 1), b"[" * 100_000],
    ids=["empty", "nothing", "rubbish", "of tomorrow", "too large", "nested"],
)
def test_what_cannot_be_read_is_none(store: MemoryStore, data: bytes) -> None:
    store.put(keys.policies_key("team-c"), data)
    assert find_policy(store, "team-c", "starved") is None
    with pytest.raises(InvalidPolicies):
        read_policies(data)


def test_who_may_read_a_namespace_decides(site: Site) -> None:
    catalog: Catalog = site.catalog
    assert catalog.told_namespaces(None) == {"team-a", "team-c"}
    assert catalog.told_namespaces({"team-a", "team-b"}) == {"team-a"}
    assert "team-c" in catalog.namespaces(), "rights are asked for there too"
    assert [job.name for job in catalog.jobs.find({"team-a"}).items] == ["llama"]
