"""`fleetprof cancel` takes the one capture under way that is meant, and none that has ended."""

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_cli.commands.local.cancel import find_running

CAPTURES = [
    pb.CaptureStatus(uid="aa11", name="first", finished=True),
    pb.CaptureStatus(uid="ab22", name="second"),
    pb.CaptureStatus(uid="ab33", name="third"),
]


@pytest.mark.parametrize(
    ("reference", "uid"),
    [
        ("second", "ab22"),
        ("ab33", "ab33"),
        ("ab2", "ab22"),
        ("ab", None),
        ("first", None),
        ("aa11", None),
        ("no", None),
    ],
)
def test_one_that_is_under_way_is_found(reference: str, uid: str | None) -> None:
    found = find_running(CAPTURES, reference)
    assert (None if found is None else found.uid) == uid
