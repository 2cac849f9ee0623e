"""The policies that the control gives to the engine."""

from typing import Any, cast

import pytest
from fleetprof_api.process.address import HostPort
from fleetprof_operator.policies.control import PolicyControl
from fleetprof_operator.policies.engine import Engine


class Noting:
    """An engine that writes down what it is told."""

    def __init__(self) -> None:
        self.uids: set[str] = set()

    def note(self, body: dict[str, Any]) -> None:
        self.uids.add(body["metadata"]["uid"])

    def forget(self, uid: str) -> None:
        self.uids.discard(uid)


@pytest.mark.parametrize(
    ("events", "known"),
    [
        ([("ADDED", "ours")], {"1"}),
        ([("ADDED", "another's")], set()),
        ([("ADDED", "ours"), ("MODIFIED", "another's")], set()),  # its namespace got a release of its own
        ([("ADDED", "ours"), ("DELETED", "ours")], set()),
    ],
)
async def test_a_policy_is_watched_for_by_the_release_that_serves_its_namespace(
    events: list[tuple[str, str]], known: set[str]
) -> None:
    engine = Noting()
    control = PolicyControl(
        cast(Engine, engine), lambda body: body["metadata"]["namespace"] == "ours", None, HostPort("127.0.0.1", 0), None
    )
    for kind, namespace in events:
        await control.on_event({"type": kind, "object": {"metadata": {"uid": "1", "namespace": namespace}}})
    assert engine.uids == known
