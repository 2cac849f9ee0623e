"""Tests that share an API server run in one worker. Both have been lost silently: groups were named after pytest-xdist
had looked at them, and a pytest (9.2) hid them from it.
"""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
SAMPLE = """
import os
from pathlib import Path
import pytest

@pytest.mark.cluster
@pytest.mark.parametrize("number", range(8))
def test_sample(number):
    Path(f"{number}.worker").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_a_folder_s_tests_on_an_api_server_run_in_one_worker(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS}\nmarkers =\n    cluster: as ours\n")
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    words = ["-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=240
    )
    assert result.returncode == 0, result.stdout + result.stderr

    workers = [path.read_text() for path in tmp_path.glob("*.worker")]

    assert len(workers) == 8
    assert len(set(workers)) == 1
