"""Captures as the store knows them, taken up again by a hub that was restarted.

Guarantees: all that is unfinished goes on; of what has ended, the newest are remembered, as many as fit.
"""

import asyncio
import logging
from collections.abc import Sequence

from fleetprof_api.ledger import Ledger

from fleetprof_operator.hub.capture.environment import CaptureEnvironment
from fleetprof_operator.hub.capture.request_capture import RequestCapture
from fleetprof_operator.hub.capture_registry import CaptureRegistry
from fleetprof_operator.hub.ledger.ledger_book import LedgerBook
from fleetprof_operator.hub.storage.stored_requests import read_stored
from fleetprof_operator.hub.submission import name_capture

log = logging.getLogger(__name__)


async def restore_all(
    captures: CaptureRegistry, environment: CaptureEnvironment, places: Sequence[tuple[str, str]], *, fails_fast: bool
) -> bool:
    """Takes up those of the requests (namespace, uid) that the store has. False when it has none. Raises StoreError.

    `fails_fast`: they were submitted like that.
    """
    room = asyncio.Semaphore(16)
    # A request that was killed before its ledger was written has its place in the queue from the order of `places`.
    now = environment.clock()
    work = [
        _restore_one(environment, namespace, uid, now + n, room, fails_fast=fails_fast)
        for n, (namespace, uid) in enumerate(places)
    ]
    restored = await asyncio.gather(*work)
    # The newest are remembered, and all that is unfinished goes on.
    found = sorted((c for c in restored if c is not None), key=lambda c: c.ledger.submitted_unix_ns)
    finished = [capture for capture in found if capture.finished]
    for capture in finished[-environment.settings.max_remembered :]:
        captures.by_uid[capture.ledger.uid] = capture
    for capture in found:
        if not capture.finished:
            log.info("request %s goes on", capture.ledger.uid)
            captures.begin(capture)
    return bool(found)


async def _restore_one(
    environment: CaptureEnvironment,
    namespace: str,
    uid: str,
    submitted_unix_ns: int,
    room: asyncio.Semaphore,
    *,
    fails_fast: bool,
) -> RequestCapture | None:
    """`submitted_unix_ns`: where no ledger says when."""
    async with room:
        stored = await read_stored(environment.calls, namespace, uid)
    if stored is None:
        return None
    ledger = stored.ledger or Ledger(
        uid=uid, name=name_capture(stored.request), namespace=namespace, submitted_unix_ns=submitted_unix_ns
    )
    book = LedgerBook(ledger)
    capture = RequestCapture(
        stored.request, stored.request_json, book, environment, restored=True, fails_fast=fails_fast
    )
    if book.ledger.outcome:
        capture.remember_finished()
    return capture
