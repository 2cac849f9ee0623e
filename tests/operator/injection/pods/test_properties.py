"""Whatever the pod: what the user wrote stays, a second injection does nothing, the patch is the change."""

import copy
import json
from typing import Any

from fleetprof_operator.injection.pods.change import change_pod
from fleetprof_operator.injection.pods.json_patch import make_patch
from fleetprof_operator.injection.pods.quota_check import NamespaceLimits
from fleetprof_operator.injection.pods.resources import find_class
from harness.kubernetes.documents.pods_to_inject import SETTINGS, pods
from hypothesis import given
from hypothesis import strategies as st

NO_LIMITS = NamespaceLimits()


def apply_patch(document: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902, as far as we use it: written against the RFC, not against our own code."""
    document = copy.deepcopy(document)
    for operation in operations:
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        place = document
        for part in path:
            place = place[int(part)] if isinstance(place, list) else place[part]
        match operation["op"], place:
            case "add", list():
                assert 0 <= int(last) <= len(place)
                place.insert(int(last), operation["value"])
            case "add", dict():
                place[last] = operation["value"]
            case "replace", list():
                place[int(last)] = operation["value"]
            case "replace", dict():
                assert last in place
                place[last] = operation["value"]
            case "remove", dict():
                del place[last]
            case other:
                raise AssertionError(other)
    return document


@given(pods())
def test_the_patch_is_the_change_and_the_given_pod_is_not_touched(pod: dict[str, Any]) -> None:
    before = json.dumps(pod)
    change = change_pod(pod, NO_LIMITS, SETTINGS)
    assert json.dumps(pod) == before
    assert apply_patch(pod, change.patch) == change.pod
    assert bool(change.patch) is not bool(change.reason)


@given(pods())
def test_a_second_injection_changes_nothing(pod: dict[str, Any]) -> None:
    once = change_pod(pod, NO_LIMITS, SETTINGS)
    twice = change_pod(once.pod, NO_LIMITS, SETTINGS)
    assert twice.patch == []
    assert twice.pod == once.pod


@given(pods())
def test_all_that_the_user_wrote_is_still_there(pod: dict[str, Any]) -> None:
    assert_kept(pod, change_pod(pod, NO_LIMITS, SETTINGS).pod)


def assert_kept(before: Any, after: Any) -> None:
    """Every value stands where it stood; lists may have new neighbours; PYTHONPATH may be longer in front."""
    if isinstance(before, dict):
        if before.get("name") == "PYTHONPATH" and "value" in before:
            assert after["value"].endswith(before["value"])
            before = {"name": "PYTHONPATH"}
        for key, value in before.items():
            assert_kept(value, after[key])
    elif isinstance(before, list):
        first = before[0] if before else None
        start = next((i for i, item in enumerate(after) if name_of(item) == name_of(first)), 0)
        for mine, kept in zip(before, after[start:], strict=False):
            assert_kept(mine, kept)
        assert len(after) - start >= len(before)
    else:
        assert before == after


def name_of(item: Any) -> Any:
    return item.get("name") if isinstance(item, dict) else item


@given(pods())
def test_the_class_of_service_stays(pod: dict[str, Any]) -> None:
    before = find_class(pod["spec"])
    after = find_class(change_pod(pod, NO_LIMITS, SETTINGS).pod["spec"])
    assert after == before or (before, after) == ("BestEffort", "Burstable")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text("a/~", max_size=3),
    lambda inner: st.dictionaries(st.text("a/~b", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_a_patch_of_any_two_objects_leads_from_one_to_the_other(before: Any, after: Any) -> None:
    patched = apply_patch({"root": before}, make_patch({"root": before}, {"root": after}))
    assert json.dumps(patched, sort_keys=True) == json.dumps({"root": after}, sort_keys=True)
