"""An obstacle to a job's capture is said once, as a sentence that `fleetprof run` passes on."""

import logging

import pytest
from fleetprof_sidecar.obstacles import Obstacles
from harness.sidecar.process_views import view

S = 10**9
NOW = 2_000_000_000 * S


@pytest.mark.parametrize(
    ("ahead_s", "sentence"),
    [
        (0, ""),
        (-59, ""),
        (59, ""),
        (-400 * 86_400, "is 400 days behind the hub's; set it (NTP)"),
        (3 * 3_600, "is 3 hours ahead of the hub's; set it (NTP)"),
        (-90, "is 90 seconds behind the hub's; set it (NTP)"),
    ],
)
def test_a_clock_is_named_that_does_not_fit(ahead_s: int, sentence: str, caplog: pytest.LogCaptureFixture) -> None:
    obstacles = Obstacles("node-7")
    for _ in range(2):
        obstacles.compare_clocks(NOW, NOW + ahead_s * S)
    expected = [f"this job cannot be captured: the clock of node-7 {sentence}"] if sentence else []
    assert [record.getMessage() for record in caplog.records] == expected


def test_nothing_is_said_of_a_hub_that_does_not_tell_the_time(caplog: pytest.LogCaptureFixture) -> None:
    Obstacles().compare_clocks(0, NOW)
    assert not caplog.records


@pytest.mark.parametrize(
    ("version", "polls", "is_said"),
    [("2.9.1", False, True), ("2.9.1", True, False), ("2.10.0", False, False), ("", False, False)],
)
def test_a_pytorch_is_named_that_is_too_old(
    version: str, polls: bool, is_said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    process = view(torch_version=version, polls_kineto=polls)
    obstacles = Obstacles()
    for each in (process, None, process):
        obstacles.look_at(each)
    assert [record.__dict__["fields"]["obstacle"] for record in caplog.records] == (
        [f"PyTorch {version} is too old; use PyTorch 2.10 or later"] if is_said else []
    )
