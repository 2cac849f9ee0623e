"""The scanner in C, built with the compiler's sanitizers: no text makes it touch memory that is not its own.

The tests of test_accelerator.py are run again with it, in a process of their own.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "accelerator" / "fleetprof_accelerator"
TESTS = Path(__file__).with_name("test_accelerator.py")
BUILD = ("-O1", "-g", "-fPIC", "-shared", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# More bytes are claimed than the text has.
BEYOND = """
import ctypes
import fleetprof_accelerator as package
library, block = package.load(), package.Block()
handle = library.fp_new(0, 9)
text = b'{"ph": "X", "name": "' + b"a" * 5000
library.fp_scan(handle, text, len(text) + 4096, block)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """In which `fleetprof_accelerator` is the sanitized one."""
    place = tmp_path_factory.mktemp("sanitized")
    shutil.copytree(SOURCES, place / SOURCES.name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    compiler = shutil.which("gcc")
    library = "" if compiler is None else _output(compiler, "-print-file-name=libasan.so")
    if compiler is None or not Path(library).is_absolute():
        reason = "no gcc with libasan: the scanner's memory accesses cannot be checked"
        if "accelerator" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    package = place / SOURCES.name
    _output(compiler, *BUILD, "-o", str(package / "_scan.so"), str(package / "scan.c"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    return kept | {
        "PYTHONPATH": str(place),
        "PYTHONMALLOC": "malloc",  # each text by itself, so that its end is known
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
    }


def test_reading_beyond_a_text_would_be_seen(environment: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", BEYOND], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


@pytest.mark.timeout(3600)  # with the cases of `make fuzz` it takes longer than any test else
def test_no_text_makes_it_touch_what_is_not_its_own(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(TESTS)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
