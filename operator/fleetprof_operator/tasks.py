"""Tasks that end together: the first end of several, work beside others or until a stop, signals that stop.

Guarantees: whoever waits here leaves no task behind; what a task raised is raised.
"""

import asyncio
import signal
from collections.abc import Collection, Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def heed_signals(stop: asyncio.Event) -> None:
    """SIGTERM and SIGINT set `stop`."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


async def await_first_end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Waits until one of kopf's tasks has ended, then ends the others. Raises what any of them raised.

    kopf.run_tasks does the same and then cancels every other task of the event loop, the hub's among them.
    """
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


async def run_unless_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Does the work. False when it was stopped first."""
    tasks = {asyncio.create_task(work), asyncio.create_task(stop.wait())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
        return not stop.is_set()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_beside(work: Coroutine[Any, Any, _Result], *others: Coroutine[Any, Any, None]) -> _Result:
    """The result of `work`; the others run as long, and a fault of theirs is one of the whole."""
    main = asyncio.create_task(work)
    tasks = {main, *map(asyncio.create_task, others)}
    running = set(tasks)
    try:
        while not main.done():
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {main}:
                task.result()
        return main.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
