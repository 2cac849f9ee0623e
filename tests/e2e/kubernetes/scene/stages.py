"""The wall time of each stage of a capture, printed and never asserted."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class StageSeconds:
    """Stage → seconds."""

    title: str
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the seconds that the block takes."""
        begin = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - begin

    def print(self) -> None:
        """One line each on standard error; nothing where nothing was measured since the last time."""
        if not self.seconds:
            return
        print(f"\n{self.title}:", file=sys.stderr)
        for name, seconds in self.seconds.items():
            print(f"  {seconds:6.1f} s  {name}", file=sys.stderr, flush=True)
        self.seconds.clear()
