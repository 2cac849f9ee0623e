"""Signals as exceptions, so that a command stops on its way out what it started.

Guarantees: from the making of an event loop to its end, a signal cancels what runs in it, and the exception is raised
after the loop has ended, because one that is raised while gRPC makes a channel can crash the interpreter, and one that
is raised while a loop is made leaves half of it. The exit code is 128 + the signal's number.
"""

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any, Final, NoReturn, TypeVar

_Result = TypeVar("_Result")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Raises in the main thread when one of SIGNALS comes, from its making to the end of the process.

    SIGINT raises KeyboardInterrupt, as Python does, and the others raise SystemExit.
    """

    def __init__(self) -> None:
        self._has_loop = False
        self._running: asyncio.Task[Any] | None = None
        self._number: int | None = None
        self._listen()

    def _listen(self) -> None:
        for number in SIGNALS:
            signal.signal(number, self._interrupt)

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """`asyncio.run`; raises after it where a signal came meanwhile."""
        self._has_loop = True
        try:
            return asyncio.run(self._remember(work))
        finally:
            self._running = None
            self._listen()  # what ran may have had handlers of its own
            self._has_loop = False
            if self._number is not None:
                _raise(self._number)

    async def _remember(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        self._running = asyncio.current_task()
        if self._number is not None:  # it came while the loop was made
            work.close()
            raise asyncio.CancelledError
        return await work

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        if not self._has_loop:
            _raise(number)
        self._number = number
        if self._running is not None and not self._running.done():  # after it the loop may be closed
            self._running.get_loop().call_soon_threadsafe(self._running.cancel)


def _raise(number: int) -> NoReturn:
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
