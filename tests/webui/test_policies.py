"""Policies and the jobs of the last day, as the service answers them from what the operator stored, by who may read."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import IO, Any

import pytest
from fleetprof_api import keys
from fleetprof_api.policy.stored import MOST_BYTES, InvalidPolicies, read_policies
from fleetprof_api.telemetry.history import POINTS, STEP_NS, NamespaceDay, WorkloadDay, write_day
from fleetprof_store.base import ObjectInfo, StoreError
from fleetprof_webui.catalog.catalog import Catalog
from fleetprof_webui.catalog.database import open_database, sqlite_url
from fleetprof_webui.policies.reading import StoredPolicies, find_policy
from fleetprof_webui.telemetry.jobs import JobsOfTheDay
from harness.memory_store import MemoryStore
from webui.conftest import Site

END = 4_000_000_200 * 10**9
"""After now, whenever that is: only a clock that is given makes a day of these tests old."""
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
    told_before: list[float | None] = [0.2, None, None, None]
    ended = WorkloadDay("Job", "old", {"gpu_busy_ratio": told_before, "iteration_seconds": told_before})
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
        ("team-c", "old", False, False, None),
    ]
    (first, *_) = page["items"]
    assert (len(first["rates"]), first["step_ns"]) == (48, 6 * STEP_NS)
    assert first["rates"][-1] == pytest.approx((4 * 4.0 + 2.0 + 1.0) / 6)
    assert [(action["action"], action["reason"], action["count"]) for action in first["actions"]] == [
        ("suppressed", "Cooldown", 2),
        ("captured", "Complete", 1),
    ]


@pytest.mark.parametrize(
    ("steps_later", "found"),
    [
        (-1, (True, 0.8, 90.0)),
        (2, (True, 0.8, None)),
        (3, (False, None, None)),
        (POINTS - 1, (False, None, None)),
        (POINTS, None),
    ],
    ids=["just written", "before the next write", "not written any more", "almost a day", "a day"],
)
def test_a_job_whose_day_is_not_written_any_more_has_ended(
    steps_later: int, found: tuple[bool, float | None, float | None] | None
) -> None:
    store = MemoryStore()
    day = WorkloadDay("Job", "llama", {"gpu_busy_ratio": [0.7, 0.8], "gpu_power_watts": [90.0, None]})
    store.put(keys.telemetry_day_key("team-a"), write_day(NamespaceDay(END, [day])))
    jobs = JobsOfTheDay(store, lambda namespaces: (), read_unix_ns=lambda: END + steps_later * STEP_NS)
    rows = [(job.running, job.activity, job.power_watts) for job in jobs.find({"team-a"}).items]
    assert rows == ([found] if found else [])
    assert jobs.knows("team-a", "Job", "llama") is (found is not None)


def test_nobody_waits_for_the_read_of_another_namespace() -> None:
    reading, go_on = Event(), Event()

    class Slow(MemoryStore):
        def open(self, key: str) -> IO[bytes]:
            if key == keys.telemetry_day_key("team-a"):
                reading.set()
                go_on.wait(60)
            return super().open(key)

    store = Slow()
    store.put(keys.telemetry_day_key("team-c"), write_day(NamespaceDay(END, [WorkloadDay("Job", "llama", {})])))
    jobs = JobsOfTheDay(store, lambda namespaces: ())
    with ThreadPoolExecutor() as threads:
        try:
            threads.submit(jobs.find, {"team-a"})
            assert reading.wait(60)
            assert threads.submit(jobs.find, {"team-c"}).result(timeout=20).total == 1
        finally:
            go_on.set()


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


class Counting(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def open(self, key: str) -> IO[bytes]:
        self.opened.append(key)
        return super().open(key)


def test_policies_are_read_again_when_the_store_has_another_version() -> None:
    store = Counting()
    for number in range(201):
        store.put(keys.policies_key(f"team-{number:03}"), document(POLICY))
    policies = StoredPolicies(store)
    versions = {f"team-{number:03}": "1" for number in range(201)}
    assert policies.find(versions).total == policies.find(versions).total == 200
    assert len(store.opened) == 200
    policies.find(versions | {"team-007": "2"})
    assert store.opened[200:] == [keys.policies_key("team-007")]
    for _ in range(2):
        policies.find({"team-001": ""})
    assert len(store.opened) == 203, "no version is none that is known"


def test_whose_policies_there_are_is_known_before_captures_are_written(store: MemoryStore, tmp_path: Path) -> None:
    class Stuck(MemoryStore):
        def list(self, prefix: str) -> Iterator[ObjectInfo]:
            return store.list(prefix)

        def open(self, key: str) -> IO[bytes]:
            if "/policies/" in key:
                return store.open(key)
            raise StoreError("no capture can be read", retryable=True)

    opened = Catalog(Stuck(), open_database(sqlite_url(tmp_path / "catalog.sqlite")))
    assert opened.refresh() is None
    assert [one.name for one in opened.policies(None).items] == ["llama"]
    opened.close()


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
    assert catalog.telemetry_namespaces(None) == {"team-a", "team-c"}
    assert catalog.telemetry_namespaces({"team-a", "team-b"}) == {"team-a"}
    assert [one.namespace for one in catalog.policies(None).items] == ["team-c"]
    assert catalog.policies({"team-a"}).items == []
    assert "team-c" in catalog.namespaces(), "rights are asked for there too"
    assert [job.name for job in catalog.jobs.find({"team-a"}).items] == ["llama"]
