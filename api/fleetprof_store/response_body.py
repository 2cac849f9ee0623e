"""The answer of a store, as a stream of bytes like any other."""

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO, Any, Final, cast

_BUFFER_BYTES: Final = 1 << 18


def open_body(answer: Any, explained: Callable[[], AbstractContextManager[None]]) -> IO[bytes]:
    """The body of an answer with `read(size)` and `close()`; `explained` turns what a read raises into a StoreError.

    It gives what callers of IO[bytes] expect: readinto, peek, readline.
    """
    return cast("IO[bytes]", io.BufferedReader(_Body(answer, explained), buffer_size=_BUFFER_BYTES))


class _Body(io.RawIOBase):
    def __init__(self, answer: Any, explained: Callable[[], AbstractContextManager[None]]) -> None:
        self._answer = answer
        self._explained = explained

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._explained():
            data: bytes = self._answer.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._answer.close()
        super().close()
