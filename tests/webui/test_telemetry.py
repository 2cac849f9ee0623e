"""The last day of a workload, as the service answers it from what the hub stored."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from fleetprof_api import keys
from fleetprof_api.telemetry.history import STEP_NS, NamespaceDay, WorkloadDay, write_day
from harness.memory_store import MemoryStore
from webui.conftest import Site

END = 1_800_000_000 * 10**9
STORED = NamespaceDay(
    END,
    [
        WorkloadDay(
            "Job", "llama", {"gpu_busy_ratio": [0.5, None, 0.7], "of-tomorrow": [1.0], "gpu_power_watts": [None]}
        ),
        WorkloadDay("PyTorchJob", "bert/1", {"iteration_seconds": [0.2]}),
    ],
)
NOTHING: dict[str, Any] = {"end_unix_ns": None, "step_ns": STEP_NS, "series": [], "actions": []}


@pytest.mark.parametrize(
    ("path", "series"),
    [
        ("team-a/Job/llama", {"gpu_busy_ratio": [0.5, None, 0.7]}),
        ("team-a/-/llama", {"gpu_busy_ratio": [0.5, None, 0.7]}),
        ("team-a/PyTorchJob/bert/1", {"iteration_seconds": [0.2]}),
    ],
)
def test_answers_what_is_kept(
    make_site: Callable[..., Site], store: MemoryStore, path: str, series: dict[str, Any]
) -> None:
    store.put(keys.telemetry_day_key("team-a"), write_day(STORED))
    site = make_site()
    site.sign_in()
    day = site.client.get(f"/telemetry/{path}").json()
    assert (day["end_unix_ns"], day["step_ns"]) == (str(END), STEP_NS)
    assert {one["measure"]: one["values"] for one in day["series"]} == series


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (write_day(STORED), "team-a/Job/bert/1"),  # of another kind
        (write_day(STORED), "team-b/Job/llama"),
        (b"rubbish", "team-a/Job/llama"),
        (b" " * ((16 << 20) + 1), "team-a/Job/llama"),
    ],
    ids=["another kind", "another namespace", "rubbish", "too large"],
)
def test_answers_nothing_where_nothing_can_be_read(
    make_site: Callable[..., Site], store: MemoryStore, data: bytes, path: str
) -> None:
    store.put(keys.telemetry_day_key("team-a"), data)
    site = make_site()
    site.sign_in()
    assert site.client.get(f"/telemetry/{path}").json() == NOTHING


@pytest.mark.parametrize("kind", ["Job", "-"])
def test_what_policies_did_since_the_first_step_is_beside_it(
    make_site: Callable[..., Site], store: MemoryStore, kind: str
) -> None:
    def suppression(workload: str, last_time: str) -> dict[str, Any]:
        times = {"firstTime": "2027-01-13T00:00:00Z", "lastTime": last_time}
        return {"workload": workload, "trigger": "low", "reason": "Cooldown", "message": "", "count": 2, **times}

    left = [
        suppression("Job/llama", "2027-01-14T08:00:00Z"),  # the end is 2027-01-15T08:00:00Z
        suppression("Job/llama", "2027-01-14T07:59:59Z"),
        suppression("Job/llama", "2027-01-15T08:09:00Z"),
        suppression("Job/bert", "2027-01-15T07:00:00Z"),
    ]
    document = {"version": 1, "policies": [{"name": "starved", "spec": {}, "status": {"suppressions": left}}]}
    store.put(keys.telemetry_day_key("team-a"), write_day(STORED))
    store.put(keys.policies_key("team-a"), json.dumps(document).encode())
    site = make_site()
    site.sign_in()
    actions = site.client.get(f"/telemetry/team-a/{kind}/llama").json()["actions"]
    assert [action["at_unix_ns"] for action in actions] == [str(END + 540 * 10**9), str(END - 24 * 3600 * 10**9)]
