"""A stranger finds their way: a folder of code or tests holds at most a dozen modules."""

from collections import Counter
from pathlib import PurePosixPath

from harness.repository import source_files

MOST_MODULES = 12
# What Python and pytest want by this name holds a docstring or fixtures, and is no module to look for.
NO_MODULES = {"__init__.py", "__main__.py", "conftest.py"}


def test_a_folder_holds_at_most_a_dozen_modules() -> None:
    modules = [path for path in map(PurePosixPath, source_files()) if path.name not in NO_MODULES]
    folders = Counter(str(path.parent) for path in modules)
    assert {folder: count for folder, count in folders.items() if count > MOST_MODULES} == {}, "make rooms in it"
