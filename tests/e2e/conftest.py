"""Fixtures of the end-to-end tests; the system itself is tests/harness/training/local_system.py.

A test that ends the hub or counts what it holds has a hub of its own (`local`). The others of a file share one
(`hub`), and where they only capture, a training job as well, whose end a test of the file asserts: importing
PyTorch is most of what these tests cost.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.training.local_system import Local, make_local


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps a file's tests in one worker, so that its hub and its job are started once."""
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    """A local fleetprof with its hub up and nothing running."""
    yield from _run(tmp_path)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """The same, for all tests of a file."""
    yield from _run(tmp_path_factory.mktemp("shared"))


def _run(folder: Path) -> Iterator[Local]:
    system = make_local(folder, forks=True)
    try:
        system.up()
        yield system
    finally:
        system.close()
