"""Objects that sidecars say are in the store, and that this hub did not see arrive: looked up before they count.

Guarantees: a claim counts when the store has the trace, or the summary, of that rank; one that is repeated costs
nothing: a line is looked up once at a time, and never again after it has ended. A store that is away is asked until it
answers.
"""

import asyncio

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import LedgerEntry, Reason, is_final
from fleetprof_store.base import StoreError

from fleetprof_operator.hub.capture.capture_state import CaptureState
from fleetprof_operator.hub.capture.upload_grants import UploadGrants
from fleetprof_operator.hub.settings import SECOND_NS


class Claims:
    """The claims about one request's lines."""

    def __init__(self, state: CaptureState, grants: UploadGrants) -> None:
        self._state = state
        self._grants = grants
        self._looking: dict[tuple[str, str], asyncio.Task[None]] = {}

    def check(self, event: pb.CaptureEvent, entry: LedgerEntry) -> None:
        """The sidecar of `entry` says that its trace is uploaded."""
        line = entry.sidecar_id, entry.process_id
        if line in self._looking or is_final(entry) or entry.rank != event.rank:
            return
        task = asyncio.create_task(self._look(event, *line))
        self._looking[line] = task
        task.add_done_callback(lambda _: self._looking.pop(line, None))

    async def close(self) -> None:
        """Ends all looks."""
        tasks = list(self._looking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self, event: pb.CaptureEvent, sidecar_id: str, process_id: str) -> None:
        state = self._state
        while not state.ledger.outcome:
            try:
                is_stored = await self._grants.holds_result(event.rank)
            except StoreError:
                await asyncio.sleep(state.hub.settings.store_retry_ns / SECOND_NS)
                continue
            entry = state.book.lines.find(sidecar_id, process_id)
            if entry is None or entry.rank != event.rank or is_final(entry):
                return
            if is_stored:
                state.note_stored((sidecar_id, process_id))
                state.book.apply(event, sidecar_id, state.hub.clock())
            else:
                text = "the sidecar says that the trace is uploaded, but the store does not have it"
                state.book.fail(entry, Reason.UPLOAD_FAILED, text, state.hub.clock())
            state.note_change()
            return
