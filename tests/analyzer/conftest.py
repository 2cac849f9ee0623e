"""Where the public traces lie (used in place, never copied), and a builder of traces with planted truth."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "traces"


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    if not SHARED.is_dir():
        pytest.skip(f"the public traces are not here: no folder {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def traps(shared_traces: Path) -> Path:
    return shared_traces / "traps"
