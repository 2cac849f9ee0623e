"""Files that a command watches: it goes on when one was saved and no other is being saved any more.

Guarantees: looks at times of change and sizes alone, of at most `MOST_FILES` files, hidden ones and folders left out.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

MOST_FILES: Final = 10_000
_LOOK_EVERY_S: Final = 0.5
_Look = dict[Path, tuple[int, int]]


class SavedFiles:
    """Files, and all below folders, as they were when last looked at."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = list(paths)
        self._last = self._look()

    def wait(self, sleep: Callable[[float], None] = time.sleep) -> list[Path]:
        """The files that were saved, made or deleted since the last time, once two looks are alike."""
        before, now = self._last, self._look()
        while now == self._last or now != before:
            sleep(_LOOK_EVERY_S)
            before, now = now, self._look()
        changed = sorted(path for path in {*now, *self._last} if now.get(path) != self._last.get(path))
        self._last = now
        return changed

    def _look(self) -> _Look:
        found: _Look = {}
        for path in self._files():
            try:
                state = path.stat()
            except OSError:
                continue
            found[path] = (state.st_mtime_ns, state.st_size)
            if len(found) == MOST_FILES:
                break
        return found

    def _files(self) -> Iterator[Path]:
        for path in self._paths:
            if not path.is_dir():
                yield path
                continue
            for folder, names, files in os.walk(path):
                names[:] = sorted(name for name in names if not name.startswith((".", "__")))
                yield from (Path(folder, name) for name in sorted(files) if not name.startswith("."))
