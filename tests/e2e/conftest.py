"""Fixtures of the end-to-end tests; the system itself is tests/harness/training/local_system.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.training.local_system import Local, make_local


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    """A local fleetprof with its hub up and nothing running."""
    system = make_local(tmp_path)
    try:
        system.up()
        yield system
    finally:
        system.close()
