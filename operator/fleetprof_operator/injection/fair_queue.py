"""Work of many namespaces, done in a thread beside the event loop, one namespace after another.

A tenant who asks for more than its share waits in its own queue, and others' work comes in between. The queues are
bounded, for each namespace and together. Guarantees: work that nobody waits for any more is not begun.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from fleetprof_api.errors import FleetprofError

WORKERS: Final = 1
"""A second one would take the interpreter from the event loop, and do no more work."""
MOST_WAITING: Final = 1024
MOST_WAITING_OF_ONE: Final = 384
"""Pods of a namespace with a quota wait for one look at it, and then come at once: a Job of some hundred is no attack.
Others are no worse off, as theirs come in between.
"""

_Result = TypeVar("_Result")
_Work = tuple["asyncio.Future[Any]", Callable[[], Any]]


class Busy(FleetprofError):
    """There is too much to do already; the message says whose."""


class FairQueue:
    """Use it in one event loop; end it with `close`."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="turn")
        # In the order of their turns; a namespace with nothing to do is not here.
        self._waiting: dict[str, deque[_Work]] = {}
        self._count = 0
        self._running = 0

    async def run(self, whose: str, work: Callable[[], _Result]) -> _Result:
        """The result of `work`, done in a thread when it is that namespace's turn. Raises Busy, and what it raises."""
        if len(self._waiting.get(whose, ())) >= MOST_WAITING_OF_ONE:
            raise Busy(f"{MOST_WAITING_OF_ONE} pods of {whose} wait already")
        if self._count >= MOST_WAITING:
            raise Busy(f"{MOST_WAITING} pods wait already")
        result: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(whose, deque()).append((result, work))
        self._count += 1
        self._go_on()
        return await result

    def close(self) -> None:
        """Ends the threads when they have done what they have begun; what waits stays undone."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _go_on(self) -> None:
        while self._running < WORKERS and self._waiting:
            whose = next(iter(self._waiting))
            waiting = self._waiting.pop(whose)
            result, work = waiting.popleft()
            self._count -= 1
            if waiting:
                self._waiting[whose] = waiting  # behind the others
            if result.done():
                continue
            self._running += 1
            asyncio.get_running_loop().run_in_executor(self._pool, work).add_done_callback(
                lambda future, result=result: self._end(future, result)  # type: ignore[misc]
            )

    def _end(self, future: "asyncio.Future[Any]", result: "asyncio.Future[Any]") -> None:
        self._running -= 1
        if future.cancelled():
            result.cancel()
        elif (problem := future.exception()) is not None:
            if not result.done():
                result.set_exception(problem)
        elif not result.done():
            result.set_result(future.result())
        self._go_on()
