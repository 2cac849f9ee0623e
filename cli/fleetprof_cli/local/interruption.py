"""SIGTERM and SIGHUP as exceptions, so that a command stops on its way out what it started.

Guarantees: while an event loop runs, a signal cancels what runs in it, and the exception is raised after the loop has
ended, because one that is raised while gRPC makes a channel can crash the interpreter. The exit code is 128 + the
signal's number.
"""

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any, Final, TypeVar

_Result = TypeVar("_Result")

SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Raises SystemExit in the main thread when one of SIGNALS comes, from its making to the end of the process."""

    def __init__(self) -> None:
        self._running: asyncio.Task[Any] | None = None
        self._number: int | None = None
        self._listen()

    def _listen(self) -> None:
        for number in SIGNALS:
            signal.signal(number, self._interrupt)

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """`asyncio.run`; raises SystemExit after it where a signal came meanwhile."""
        try:
            return asyncio.run(self._remember(work))
        finally:
            self._running = None
            self._listen()  # what ran may have had handlers of its own
            if self._number is not None:
                raise SystemExit(128 + self._number)

    async def _remember(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        self._running = asyncio.current_task()
        return await work

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        if self._running is None:
            raise SystemExit(128 + number)
        self._number = number
        if not self._running.done():  # after it the loop may be closed
            self._running.get_loop().call_soon_threadsafe(self._running.cancel)
