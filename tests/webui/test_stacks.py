"""The stacks of a request: grouped, the named rank first, bounded, for whoever may read the namespace."""

from typing import Any

import pytest
from fleetprof_api import keys
from fleetprof_api.stacks import ThreadStack
from fleetprof_webui.requests import stacks
from harness.memory_store import MemoryStore
from harness.stalls.planted_ranks import hang
from starlette.testclient import TestClient
from webui.conftest import put_stacks

ADDRESS = "/requests/team-a/hung"


def read(client: TestClient) -> dict[str, Any]:
    (look,) = client.get(f"{ADDRESS}/stacks").json()["looks"]
    found: dict[str, Any] = look
    return found


@pytest.fixture
def hung(store: MemoryStore) -> MemoryStore:
    """A store with a request that read the stacks of a job of 100 ranks; rank 7 hangs, and has a second thread."""
    ranks = hang(100, 7)
    ranks[7].threads.append(ThreadStack(name="loader", task=2, is_main=False, stack=[1]))
    put_stacks(store, "team-a", "hung", ranks, at=400)
    return store


@pytest.mark.usefixtures("hung")
def test_the_named_rank_comes_first_with_its_line(client: TestClient) -> None:
    look = read(client)
    assert look["sentence"].startswith("Rank 7 has not entered all_reduce 11 of group 0 default_pg: it is blocked")
    assert (look["cause"], look["may_go_on"], look["stands_ns"]) == ("blocked_in_line", False, 60 * 10**9)
    first, others = look["groups"]
    assert (first["ranks"], first["is_named"], first["nodes"]) == ([7], True, ["gpu-0"])
    assert first["frames"][0] == {"file": "/job/model.py", "line": 12, "function": "forward", "is_own": True}
    assert first["frames"][1]["is_own"] is False
    assert [thread["name"] for thread in first["threads"]] == ["loader"]
    assert (others["rank_count"], len(others["ranks"]), others["is_named"]) == (99, stacks.MOST_RANKS, False)
    detail = client.get(ADDRESS).json()
    assert (detail["asks_for_stacks"], detail["next_step"]) == (True, "")


@pytest.mark.usefixtures("hung")
def test_groups_beyond_the_bound_are_counted(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "MOST_GROUPS", 1)
    look = read(client)
    assert ([group["ranks"] for group in look["groups"]], look["groups_left_out"]) == ([[7]], 1)


@pytest.mark.parametrize("data", [None, b"no gzip", b""])
def test_what_is_not_there_or_cannot_be_read_is_said(client: TestClient, hung: MemoryStore, data: bytes | None) -> None:
    key = keys.stacks_key("team-a", "hung")
    if data is None:
        hung.delete([key])
    else:
        hung.put(key, data)
    assert client.get(f"{ADDRESS}/stacks").status_code == 404


def test_a_capture_asks_for_none(client: TestClient) -> None:
    assert client.get("/requests/team-a/slow").json()["asks_for_stacks"] is False
    assert client.get("/requests/team-a/slow/stacks").status_code == 404
