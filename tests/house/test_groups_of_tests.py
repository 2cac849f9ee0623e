"""Tests of a group run in one worker, where what they share is started once: a pytest of late lost that silently."""

import os
import subprocess
import sys
from pathlib import Path

SAMPLE = """
import os
from pathlib import Path
import pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(8))
def test_sample(number):
    Path(f"{number}.worker").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_a_group_of_tests_runs_in_one_worker(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = ["-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr

    workers = [path.read_text() for path in tmp_path.glob("*.worker")]

    assert len(workers) == 8
    assert len(set(workers)) == 1
