"""One capture followed to its end, or taken back, on either side of the seam.

Guarantees: who is away meanwhile is found again; leaving never leaves a rank armed without saying so.
"""

import asyncio
import signal
import time
from typing import Final

from fleetprof_cli.capture.seam import Away, Captures, State
from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.terminal.progress import Progress

_REFRESH_S: Final = 0.5
_AWAY_S: Final = 60.0
_RETRY_S: Final = 1.0


async def follow(captures: Captures[State], state: State, *, takes_back: bool = True) -> State:
    """Shows a capture until its end; its final state.

    Ctrl-C has it taken back, a second one leaves (Failure 130); without `takes_back` the first one does.
    """
    watching = asyncio.create_task(_watch(captures, state))
    interrupts = 0
    cancelling: set[asyncio.Task[None]] = set()

    def interrupt() -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts == 1 and takes_back:
            say("cancelling the capture; ranks that have begun to record end with their window (Ctrl-C: exit)")
            cancelling.add(asyncio.create_task(_cancel(captures, state)))
        else:
            watching.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        return await watching
    except asyncio.CancelledError:
        goes_on = "goes on cancelling it" if takes_back else "goes on with it"
        message = f"left {captures.view(state).title}; {captures.whereabouts} {goes_on}"
        raise Failure(message, code=ExitCode.INTERRUPTED) from None
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        for task in cancelling:
            task.cancel()


async def _watch(captures: Captures[State], state: State) -> State:
    gone_since: float | None = None
    with Progress() as progress:
        progress.show(captures.view(state), time.time_ns())
        ticking = asyncio.create_task(_tick(progress))
        try:
            while not captures.view(state).finished:
                try:
                    async for latest in captures.watch(state):
                        state, gone_since = latest, None
                        progress.show(captures.view(state), time.time_ns())
                except Away:
                    if gone_since is None:
                        gone_since = time.monotonic()
                        say(f"{captures.server} does not answer any more; waiting for it")
                    if time.monotonic() - gone_since > _AWAY_S:
                        raise
                if not captures.view(state).finished:
                    await asyncio.sleep(_RETRY_S)
        finally:
            ticking.cancel()
    return state


async def _tick(progress: Progress) -> None:
    while True:
        await asyncio.sleep(_REFRESH_S)
        progress.refresh(time.time_ns())


async def _cancel(captures: Captures[State], state: State) -> None:
    try:
        await captures.cancel(state)
    except Failure as error:
        say(f"cannot cancel it: {error.message}")
