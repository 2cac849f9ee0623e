"""The pure modules of the pages have tests of their own, beside them; they run with the others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FRONTEND = Path(__file__).parents[3] / "webui" / "frontend"


@pytest.mark.skipif(not (FRONTEND / "node_modules").is_dir(), reason="the pages' packages are not there: make webui")
def test_the_tests_of_the_modules_pass() -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["npm", "--prefix", str(FRONTEND), "test", "--silent"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
