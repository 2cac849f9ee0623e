"""The last day of a workload, as the service answers it from what the hub stored."""

from collections.abc import Callable
from typing import Any

import pytest
from fleetprof_api import keys
from fleetprof_api.telemetry.history import STEP_NS, NamespaceDay, WorkloadDay, write_day
from fleetprof_store.memory import MemoryStore
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
NOTHING: dict[str, Any] = {"end_unix_ns": None, "step_ns": STEP_NS, "source": "store", "series": []}


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
    assert (day["end_unix_ns"], day["step_ns"], day["source"]) == (str(END), STEP_NS, "store")
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
