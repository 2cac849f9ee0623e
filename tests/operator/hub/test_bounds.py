"""The bounds of an administrator: refused at once with the field, the bound and whom to ask; counted in the store."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from fleetprof_api.request import Collect
from fleetprof_operator.hub.bounds import AllBounds, Bounds, find_too_often, parse_bounds
from fleetprof_operator.hub.storage.workload_costs import Begun, WorkloadRecord
from fleetprof_operator.hub.submission import CaptureRefused

S = 10**9
HOUR = 3600 * S


async def _with_bounds(ground: Any, **bounds: Any) -> None:
    ground.settings = replace(ground.settings, bounds=AllBounds(contact="Ada", namespaces={"team": Bounds(**bounds)}))
    await ground.restart_hub()


@pytest.mark.attack
@pytest.mark.parametrize(
    ("bounds", "spec", "says"),
    [
        (
            {"max_iterations": 4},
            {},
            "spec.window.iterations: 5 is more than the 4 that are allowed in this namespace; ask Ada",
        ),
        (
            {"collect": [Collect.SHAPES]},
            {"collect": ["Stacks"]},
            "spec.collect: Stacks is not allowed in this namespace, Shapes is; ask Ada",
        ),
        (
            {"max_duration_millis": 100},
            {"window": {"durationMillis": 101}},
            "spec.window.durationMillis: 101 is more than the 100",
        ),
        ({"max_ranks": 1}, {"ranks": {"list": [0, 1]}}, "spec.ranks.list: 2 is more than the 1"),
    ],
)
async def test_a_request_beyond_a_bound_is_refused_at_once(
    ground: Any, kit: Any, bounds: dict[str, Any], spec: dict[str, Any], says: str
) -> None:
    await _with_bounds(ground, **bounds)
    await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    taken: list[Callable[[], Awaitable[object]]] = [
        lambda: ground.hub.submit(kit.make_request(**spec), "team", fail_fast=True),
        lambda: ground.hub.adopt(kit.make_request(**spec), namespace="team", uid="u", name="n"),
    ]
    for take in taken:
        with pytest.raises(CaptureRefused) as refusal:
            await take()
        assert refusal.value.reason == "BeyondBounds"
        assert says in str(refusal.value)
    assert not await ground.hub.list()


async def test_more_ranks_than_are_allowed_are_not_asked(ground: Any, kit: Any) -> None:
    await _with_bounds(ground, max_ranks=1)
    sidecar = await ground.add_sidecar(0, kit.make_process(0), kit.make_process(1))
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    status = await ground.await_end(uid)
    assert kit.succeeded(status) == ("False", "BeyondBounds")
    assert "2 ranks would be captured, 1 are allowed in this namespace" in status.conditions[-1].message
    assert not [m for m in sidecar.received if m.HasField("arm")]


@pytest.mark.attack
@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ({"captures_per_day": 1}, "1 captures of this workload were begun within a day, 1 are allowed"),
        ({"captures_per_day_of_namespace": 1}, "1 captures of this namespace were begun within a day"),
        ({"cooldown_seconds": 600}, "was begun less than 10 min ago; the next may begin in"),
    ],
)
async def test_captures_are_counted_over_restarts_deletions_and_other_names(
    ground: Any, kit: Any, bounds: dict[str, Any], says: str
) -> None:
    await _with_bounds(ground, **bounds)
    sidecar = await ground.add_sidecar(0)
    first = (await ground.hub.submit(kit.make_request(), "team", fail_fast=True)).uid
    await sidecar.deliver(ground.store, await sidecar.expect("arm"))
    assert kit.succeeded(await ground.await_end(first)) == ("True", "Complete")
    ground.store.delete([info.key for info in ground.store.list(f"v1/team/{first}/")])

    await ground.restart_hub()
    await ground.reconnect()
    by_labels = {"selector": {"matchLabels": {"app": "llama"}}}  # the same pods, asked for otherwise
    for target in (None, by_labels):
        uid = (await ground.hub.submit(kit.make_request(target=target), "team", fail_fast=True)).uid
        status = await ground.await_end(uid)
        assert kit.succeeded(status) == ("False", "BeyondBounds")
        assert says in status.conditions[-1].message
        assert "ask Ada" in status.conditions[-1].message


async def test_a_capture_that_is_counted_waits_for_the_store(ground: Any, kit: Any) -> None:
    await _with_bounds(ground, captures_per_day=1)
    uid = (await ground.hub.submit(kit.make_request(), "team", fail_fast=False)).uid
    ground.store.pull_plug()
    sidecar = await ground.add_sidecar(0)
    await ground.await_status(uid, lambda s: kit.condition(s, "TargetsResolved") == ("False", "StoreUnavailable"))
    ground.store.plug_in()
    assert (await sidecar.expect("arm")).capture_id == uid


def _record(*ages_ns: int) -> WorkloadRecord:
    return WorkloadRecord(begun=[Begun(uid=f"u{n}", at_unix_ns=100 * HOUR - age) for n, age in enumerate(ages_ns)])


@pytest.mark.parametrize(
    ("bounds", "workload", "namespace", "says"),
    [
        ({}, _record(S, S), _record(S, S), ""),
        ({"captures_per_day": 2}, _record(S), _record(), ""),
        ({"captures_per_day": 2}, _record(25 * HOUR, S), _record(), ""),
        ({"captures_per_day": 2}, _record(20 * HOUR, S), _record(), "the next may begin in 4.0 h"),
        ({"captures_per_day_of_namespace": 3}, _record(S), _record(9, 8, 7), "3 captures of this namespace"),
        ({"cooldown_seconds": 60}, _record(61 * S), _record(), ""),
        ({"cooldown_seconds": 60}, _record(59 * S), _record(), "less than 60 s ago; the next may begin in 1 s"),
    ],
)
def test_how_often_is_too_often(
    bounds: dict[str, Any], workload: WorkloadRecord, namespace: WorkloadRecord, says: str
) -> None:
    found = find_too_often(workload, namespace, Bounds(**bounds), "Ada", "new", 100 * HOUR)
    assert (says in found) if says else not found
    assert not find_too_often(workload, namespace, Bounds(**bounds), "Ada", "u0", 100 * HOUR) or not workload.begun


def test_a_namespace_has_its_own_bounds_and_the_default_ones_otherwise() -> None:
    bounds = parse_bounds({"default": {"maxIterations": 7}, "namespaces": {"a": {"maxRanks": 3}, "b": None}})
    assert (bounds.of("a").max_iterations, bounds.of("a").max_ranks) == (7, 3)
    assert bounds.of("b") == bounds.of("c") == bounds.default


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"x": 1},
        {"default": {"maxIteration": 1}},
        {"default": {"maxIterations": 0}},
        {"namespaces": {"a": {"collect": ["x"]}}},
        {"namespaces": {"a": 3}},
        {"contact": 3},
    ],
)
def test_wrong_bounds_are_refused(document: object) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_bounds(document)
