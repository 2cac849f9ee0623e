"""Every field of a ProfileRequest has a rule in words and a meaning, for errors and docs/request.md to say."""

import pytest
from fleetprof_api.request import FailedRanks, ProfileRequest, Status, WorkloadReference
from fleetprof_api.request.fields import FieldRow, field_names, find_rule, list_fields, longest
from pydantic import BaseModel

LABEL_VALUE = "a text of at most 63 characters of letters, digits, -, _ and ., with a letter or digit at both ends"
ROWS = list(list_fields(ProfileRequest))


@pytest.mark.parametrize("row", ROWS, ids=[row.path for row in ROWS])
def test_every_field_is_described(row: FieldRow) -> None:
    assert row.rule != "any value"
    assert row.meaning.endswith(".")


@pytest.mark.parametrize(
    ("location", "rule"),
    [
        (("spec", "window", "iterations"), "a whole number from 1 to 100"),
        (("spec", "ranks", "list", 3), "a whole number from 0 to 1000000"),
        (("spec", "suspend"), "true or false"),
        (("spec", "target", "selector", "matchLabels", "app"), LABEL_VALUE),
        (("spec", "nowhere"), ""),
        (("spec", "suspend", "deeper"), ""),
    ],
)
def test_a_rule_is_found_by_an_errors_location(location: tuple[str | int, ...], rule: str) -> None:
    assert find_rule(ProfileRequest, location) == rule


def test_the_fields_of_an_object_are_known_by_its_location() -> None:
    assert field_names(ProfileRequest, ("spec", "limits")) == ["maxTraceBytes", "maxSlowdownPercent"]
    assert field_names(ProfileRequest, ("spec", "suspend")) == []


@pytest.mark.parametrize(
    ("model", "attribute", "most"),
    [
        (Status, "target", 330),
        (Status, "failures", 8),
        (FailedRanks, "first_ranks", 10),
        (WorkloadReference, "name", 253),
    ],
)
def test_who_writes_a_field_knows_its_bound(model: type[BaseModel], attribute: str, most: int) -> None:
    assert longest(model, attribute) == most


def test_a_field_without_a_bound_has_none() -> None:
    with pytest.raises(ValueError, match=r"Status\.ranks has no bound"):
        longest(Status, "ranks")
