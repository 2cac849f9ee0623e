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
    ("reference", "uids"),
    [
        ("second", ["ab22"]),
        ("ab33", ["ab33"]),
        ("ab2", ["ab22"]),
        ("ab", ["ab22", "ab33"]),
        ("first", []),
        ("aa11", []),
        ("no", []),
    ],
)
def test_those_under_way_that_may_be_meant_are_found(reference: str, uids: list[str]) -> None:
    assert [capture.uid for capture in find_running(CAPTURES, reference)] == uids


def test_nothing_means_no_capture_though_one_alone_is_under_way() -> None:
    assert not find_running(CAPTURES[:2], "")
