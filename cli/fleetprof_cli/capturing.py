"""One capture as a command sees it: asked for, followed to its end, taken back.

Guarantees: a hub that is restarted meanwhile is found again; leaving never leaves a rank armed without saying so.
"""

import asyncio
import signal
import time
from contextlib import suppress
from datetime import datetime
from typing import Final

from fleetprof_api import hub_pb2 as pb
from fleetprof_api.request import InvalidRequest, ProfileRequest, parse_request

from fleetprof_cli.exit_codes import ExitCode
from fleetprof_cli.hub_client import HubClient, NoHub
from fleetprof_cli.jobs import choose_job, group_jobs
from fleetprof_cli.messages import Failure, say
from fleetprof_cli.progress import Progress
from fleetprof_cli.request_flags import Wishes, make_document
from fleetprof_cli.state import StateDirectory

DEFAULT_NAMESPACE: Final = "local"
_REFRESH_S: Final = 0.5
_HUB_AWAY_S: Final = 60.0
_RETRY_S: Final = 1.0


def refuse_invalid(what: str, error: InvalidRequest) -> Failure:
    """The failure that names every problem of a request."""
    problems = "\n".join(f"  {problem}" for problem in error.problems)
    return Failure(f"{what}:\n{problems}", next_step="docs/request.md describes every field", code=ExitCode.INVALID)


async def take_capture(
    state: StateDirectory,
    request: ProfileRequest | None,
    wishes: Wishes,
    job: str | None,
    namespace: str | None,
    *,
    wait: bool,
) -> pb.CaptureStatus:
    """Asks for a capture, of `request` or of `wishes` for `job`, and follows it when told to. Raises Failure."""
    async with HubClient(state) as hub:
        if request is None:
            running = choose_job(group_jobs(await hub.fleet()), job, namespace)
            try:
                request = parse_request(make_document(running.job, wishes, datetime.now()))
            except InvalidRequest as error:
                raise refuse_invalid("the flags do not make a valid request", error) from None
        where = namespace or request.metadata.namespace or DEFAULT_NAMESPACE
        status = await hub.submit(request.to_json(), where)
    if status.finished and not status.ranks:
        return status
    return await follow(state, status) if wait else status


async def follow(state: StateDirectory, status: pb.CaptureStatus) -> pb.CaptureStatus:
    """Shows a capture until its end; the final status. Ctrl-C cancels it, a second one raises Failure (130)."""
    watching = asyncio.create_task(_watch(state, status))
    interrupts = 0
    cancelling: set[asyncio.Task[None]] = set()

    def interrupt() -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts == 1:
            say("taking the capture back; ranks that have begun to record end with their window (Ctrl-C: leave)")
            cancelling.add(asyncio.create_task(_cancel(state, status.uid)))
        else:
            watching.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        return await watching
    except asyncio.CancelledError:
        raise Failure(f"left; the hub goes on taking capture {status.uid} back", code=ExitCode.INTERRUPTED) from None
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        for task in cancelling:
            task.cancel()


async def _watch(state: StateDirectory, status: pb.CaptureStatus) -> pb.CaptureStatus:
    uid = status.uid
    gone_since: float | None = None
    with Progress() as progress:
        progress.show(status, time.time_ns())
        ticking = asyncio.create_task(_tick(progress))
        try:
            while not status.finished:
                try:
                    async with HubClient(state) as hub:
                        async for latest in hub.watch(uid):
                            status, gone_since = latest, None
                            progress.show(status, time.time_ns())
                except NoHub:
                    if gone_since is None:
                        gone_since = time.monotonic()
                        say("the hub has gone; waiting for it to come back")
                    if time.monotonic() - gone_since > _HUB_AWAY_S:
                        raise
                if not status.finished:
                    await asyncio.sleep(_RETRY_S)
        finally:
            ticking.cancel()
    return status


async def _tick(progress: Progress) -> None:
    while True:
        await asyncio.sleep(_REFRESH_S)
        progress.refresh(time.time_ns())


async def _cancel(state: StateDirectory, uid: str) -> None:
    with suppress(Failure):
        async with HubClient(state) as hub:
            await hub.cancel(uid)
