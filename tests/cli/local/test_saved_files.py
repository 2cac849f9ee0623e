"""Files that `fleetprof sweep --watch` looks at: it goes on when one was saved, and not before that has ended."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fleetprof_cli.local.saved_files import SavedFiles


def save(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


SAVED: list[tuple[list[Callable[[Path], None]], list[str]]] = [
    ([lambda root: save(root / "train.py", "changed")], ["train.py"]),
    ([lambda root: save(root / "new.py", "new")], ["new.py"]),
    ([lambda root: (root / "train.py").unlink()], ["train.py"]),
    ([lambda _: None, lambda root: save(root / "train.py", "later")], ["train.py"]),
    # Still being written: both belong to one change.
    ([lambda root: save(root / "a.py", "a"), lambda root: save(root / "b.py", "b")], ["a.py", "b.py"]),
    ([lambda root: save(root / ".git" / "index", "x"), lambda root: save(root / "c.py", "c")], ["c.py"]),
]


@pytest.mark.parametrize(("saves", "changed"), SAVED)
def test_a_change_is_told_once_it_is_over(
    tmp_path: Path, saves: list[Callable[[Path], None]], changed: list[str]
) -> None:
    save(tmp_path / "train.py", "first")
    files, left = SavedFiles([tmp_path]), list(saves)

    def sleep(_seconds: float) -> None:
        if left:
            left.pop(0)(tmp_path)

    assert [str(path.relative_to(tmp_path)) for path in files.wait(sleep)] == changed
