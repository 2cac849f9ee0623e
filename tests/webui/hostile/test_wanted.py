"""The YAML of a capture that somebody asks for: whose, and where it is read."""

import threading
from typing import Any

import pytest
from fleetprof_webui.access.viewer import Viewer
from fleetprof_webui.cluster.captures import ClusterCaptures
from fleetprof_webui.service import CaptureCallRefused
from fleetprof_webui.wanted import read_capture

YAML = """
apiVersion: fleetprof.io/v1alpha1
kind: ProfileRequest
metadata: {name: five}
spec: {target: {workload: {apiVersion: batch/v1, kind: Job, name: llama}}, window: {iterations: 5}}
"""


class Reviews:
    """Lets a person ask for captures in these namespaces."""

    def __init__(self, *permitted: str) -> None:
        self._permitted = frozenset(permitted)

    async def find_permitted(self, person: object, verb: str, namespaces: list[str]) -> frozenset[str]:
        return self._permitted.intersection(namespaces)


class Api:
    """Makes whatever is asked for."""

    async def call_as_person(self, name: str, groups: object, method: str, path: str, *rest: object) -> Any:
        return {"metadata": {"name": "five", "uid": "u"}}


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads that read YAML."""
    threads: list[int] = []

    def read(yaml: str) -> Any:
        threads.append(threading.get_ident())
        return read_capture(yaml)

    monkeypatch.setattr("fleetprof_webui.cluster.captures.read_capture", read)
    return threads


def open_door(*permitted: str) -> Any:
    doors: Any = ClusterCaptures
    viewer = Viewer(name="ann", groups=(), mode="oidc", namespaces=None, may_capture=True)
    request: Any = type("Request", (), {"path_params": {}})
    return doors(Api(), Reviews(*permitted), None, None, "impersonate").open_door(request, viewer)


@pytest.mark.attack
@pytest.mark.parametrize("asks", ["submit", "check"])
async def test_of_who_may_ask_for_nothing_nothing_is_read(asks: str, readers: list[int]) -> None:
    door = open_door("team-a")
    with pytest.raises(CaptureCallRefused, match="you may not create a ProfileRequest in team-b"):
        await getattr(door, asks)(YAML, "team-b")
    assert readers == []


@pytest.mark.attack
async def test_what_is_read_holds_up_nobody_else(readers: list[int]) -> None:
    answer = await open_door("team-a").submit(YAML, "team-a")
    assert (answer.namespace, answer.uid) == ("team-a", "u")
    assert readers
    assert threading.get_ident() not in readers
