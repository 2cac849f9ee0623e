"""The place of the public traces (used in place, never copied)."""

from pathlib import Path

import pytest
from harness.traces.kept_traces import SHARED


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    if not SHARED.is_dir():
        pytest.skip(f"the public traces are not here: no folder {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def traps(shared_traces: Path) -> Path:
    return shared_traces / "traps"
