"""Ids of captures that are fit for file names."""

import pytest
from fleetprof_sidecar.capture.process_capture import check_capture_id


@pytest.mark.parametrize("bad", ["", "../x", "a/b", "UPPER", "-a", "a-", "a" * 64, "a.b", "a\n"])
def test_a_capture_id_cannot_leave_its_place(bad: str) -> None:
    with pytest.raises(ValueError, match="capture id"):
        check_capture_id(bad)
    assert check_capture_id("a" * 63) == "a" * 63
