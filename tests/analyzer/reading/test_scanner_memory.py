"""The scanner in Rust: no code of ours is outside what the compiler checks, and no text makes it fail.

The tests of test_accelerator.py are run again, in a process of their own, with a build in which a number that overflows
is a fault as well.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fleetprof_analyzer.reading import scanning
from fleetprof_analyzer.reading.columns.columns import RowCollector
from fleetprof_analyzer.trace.limits import TraceLimits
from fleetprof_analyzer.trace.problems import Problems

ROOT = Path(__file__).parents[3]
CRATE = ROOT / "accelerator"
TESTS = Path(__file__).with_name("test_accelerator.py")
ROW = b'{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {"Collective name": "allreduce"}}'


def need(what: object, reason: str) -> None:
    if not what:
        if "accelerator" in os.environ.get("FLEETPROF_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)


def test_the_compiler_allows_no_unsafe_code_of_ours() -> None:
    assert "\n#![forbid(unsafe_code)]\n" in (CRATE / "src/lib.rs").read_text()


def make_scanner() -> scanning.Scanner:
    scanner = scanning.make_scanner(RowCollector(Problems(), TraceLimits()))
    need(scanner, "fleetprof-accelerator is not installed, or was built without Rust")
    assert scanner is not None
    return scanner


@pytest.mark.parametrize("length", [len(ROW) + 1, 1 << 40])
def test_more_than_the_text_has_is_not_taken(length: int) -> None:
    assert not make_scanner().take(ROW, length)


class Confused:
    """The accelerator, asked to add rows of another text than it has scanned."""

    def __init__(self, **words: Any) -> None:
        self._compiled = scanning.accelerator()(**words)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)

    def add(self, text: bytes, numbering: Any) -> Any:
        return self._compiled.add(b"another text", numbering)


def test_a_fault_of_its_own_is_an_error_of_this_trace() -> None:
    need(scanning.accelerator(), "fleetprof-accelerator is not installed, or was built without Rust")
    scanner = scanning.Scanner(Confused, RowCollector(Problems(), TraceLimits()))
    with pytest.raises(RuntimeError, match="a fault of its own"):
        scanner.take(ROW, len(ROW))


def build_checked(cargo: str) -> Path:
    """The library of that build, kept in the cache under the name of all that went into it: clones share it."""
    sources = [CRATE / "Cargo.toml", CRATE / "Cargo.lock", *sorted((CRATE / "src").rglob("*.rs"))]
    content = hashlib.sha256(subprocess.run([cargo, "-Vv"], check=True, capture_output=True).stdout)
    for file in sources:
        content.update(f"{file.relative_to(CRATE)} {file.stat().st_size}\n".encode() + file.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fleetprof" / "accelerator"
    library = cache / f"{content.hexdigest()}.so"
    if not library.exists():
        target = ROOT / "build/accelerator"
        build = (cargo, "build", "--quiet", "--locked", "--profile", "checked", "--target-dir", target)
        subprocess.run(build, cwd=CRATE, check=True, capture_output=True)
        cache.mkdir(parents=True, exist_ok=True)
        part = library.with_suffix(f".{os.getpid()}")
        shutil.copy2(target / "checked/libscan.so", part)
        part.rename(library)
    return library


@pytest.mark.timeout(3600)  # with the cases of `make fuzz` it takes longer than any test else
def test_no_text_makes_it_fail(tmp_path: Path) -> None:
    cargo = shutil.which("cargo")
    need(cargo, "there is no cargo")
    package = tmp_path / "fleetprof_accelerator"
    package.mkdir()
    shutil.copy2(CRATE / "fleetprof_accelerator/__init__.py", package)
    shutil.copy2(build_checked(str(cargo)), package / "_scan.abi3.so")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(TESTS)]
    environment = kept | {"PYTHONPATH": str(tmp_path)}
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
