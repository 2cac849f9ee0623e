"""The traces that no test makes: those of the project in tests/data/traces, others' beside the checkout.

The project's own run everywhere; what only published traces can show stays beside them (`ROOT/../shared/traces`).
"""

import json
from pathlib import Path
from typing import Any

import pytest

COMMITTED = Path(__file__).parents[2] / "data" / "traces"
SHARED = Path(__file__).parents[4] / "shared" / "traces"
RECORDED = ("two_ranks_longer", "four_ranks")
GENERATED = ("gpu_loop", "gpu_one_step", "gpu_streams", "gpu_slow_rank", "gpu_healthy", "late_rank")


def find(name: str) -> Path:
    """A file or folder of kept traces; skips the test where it is published and not here."""
    path = COMMITTED / name
    if path.exists():
        return path
    if not SHARED.is_dir():
        pytest.skip(f"the public traces are not here: no folder {SHARED}")
    return SHARED / name


def traces_in(name: str) -> list[Path]:
    """The traces of a folder, in the order of their names."""
    return sorted(path for path in find(name).iterdir() if ".json" in path.name and path.name != "truth.json")


def truth_of(name: str) -> dict[str, Any]:
    """The truth that was planted in a folder's traces, or counted by hand."""
    truth: dict[str, Any] = json.loads((COMMITTED / name / "truth.json").read_text())
    return truth
