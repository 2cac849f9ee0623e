"""`fleetprof sweep`: what it refuses, and a real job at two batch sizes with the size to take."""

import subprocess
from collections.abc import Callable

import pytest

Fleetprof = Callable[..., subprocess.CompletedProcess[str]]

REFUSED = [
    ("batch_size=8", "two or more"),
    ("batch_size=8,8", "two or more"),
    ("batch_size=8,x", "batch_size=8,16,32"),
    ("batch_size=0,8", "batch_size=8,16,32"),
    ("lr=8,16", "batch_size=8,16,32"),
]


@pytest.mark.parametrize(("setting", "reason"), REFUSED)
def test_sizes_that_tell_nothing_are_refused(fleetprof: Fleetprof, setting: str, reason: str) -> None:
    result = fleetprof("sweep", "--set", setting, "--", "true", "{batch_size}")
    assert result.returncode == 2
    assert reason in result.stderr


def test_a_command_without_the_size_is_refused(fleetprof: Fleetprof) -> None:
    result = fleetprof("sweep", "--set", "batch_size=8,16", "--", "true")
    assert result.returncode == 2
    assert "{batch_size} is nowhere" in result.stderr
