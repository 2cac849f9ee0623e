"""A request that an earlier hub began: what its sidecars and the store know of it comes before anything is decided.

Guarantees: sidecars get a while to come back and restate; what one of them holds, or the store has, goes on; an order
that never left the hub that died is planned anew; what a sidecar has lost is ordered again while there is time, and
given up with a reason otherwise. A ledger that was lost with that hub is rebuilt from what sidecars say.
"""

import asyncio

from fleetprof_api import keys
from fleetprof_api.ledger import LedgerEntry, RankState, Reason
from fleetprof_store.base import StoreError

from fleetprof_operator.hub.capture.arm_stage import recover_order
from fleetprof_operator.hub.capture.capture_state import CaptureState
from fleetprof_operator.hub.settings import SECOND_NS


class Restoration:
    """One request's restoration; nothing is left to do for a request that this hub began, or that had ended.

    `under_way`: sidecars still have time to restate, so nothing is concluded from what one does not hold. `adopts`: the
    ledger has no lines, so until then a sidecar's word about a process makes one.
    """

    def __init__(self, state: CaptureState, *, restored: bool) -> None:
        self._state = state
        self.under_way = restored and not state.ledger.outcome
        self.adopts = restored and not state.ledger.entries
        self._restated: set[str] = set()  # sidecars that said hello since the restart
        self._held: set[tuple[str, str]] = set()  # (sidecar, process) that were restated
        if self.under_way:
            state.be_patient(state.began_unix_ns + state.hub.settings.reconnecting_ns)
        if self.adopts and self.under_way:
            state.book.wait_for("Restarted", "the hub was restarted and asks its sidecars", state.began_unix_ns)

    def note_held(self, sidecar_id: str, process_id: str) -> None:
        """That sidecar still holds its part of the request for this process."""
        self._held.add((sidecar_id, process_id))

    def note_restated(self, sidecar_id: str) -> None:
        """That sidecar has said all that it holds."""
        self._restated.add(sidecar_id)

    async def complete(self) -> None:
        """Lets sidecars say first what they hold; then decides about what nobody holds."""
        until = self._state.hub.clock() + self._state.hub.settings.restate_ns
        while self._state.hub.clock() < until:
            if not self.adopts and self._restated.issuperset(self._state.book.lines.open_sidecars()):
                break
            await self._state.wait(until)
        self.under_way = self.adopts = False
        await self._find_stored()
        unheld = [
            e for e in self._state.book.lines.open_entries() if e.sidecar_id in self._restated and not self._is_held(e)
        ]
        untouched = all(
            e.state is RankState.ASKED or e.reason is Reason.NOT_POLLING for e in self._state.ledger.entries
        )
        late = self._state.hub.clock() >= self._state.ledger.deliver_until_unix_ns
        if unheld and untouched and late and not self._held and not self._state.ledger.cancelled_unix_ns:
            # The order never left the hub that died: nothing has happened, so it can be planned anew.
            self._state.book.withdraw_plan()
            return
        of_sidecar: dict[str, list[LedgerEntry]] = {}
        for entry in unheld:
            of_sidecar.setdefault(entry.sidecar_id, []).append(entry)
        for sidecar_id, entries in of_sidecar.items():
            recover_order(self._state, sidecar_id, entries)

    async def _find_stored(self) -> None:
        """The traces or summaries that an earlier hub had accepted. A store that is away is asked until it answers."""
        while self._state.book.lines.open_count and self._state.hub.clock() < self._state.deadline_unix_ns:
            try:
                prefix = keys.request_prefix(self._state.ledger.namespace, self._state.ledger.uid)
                stored_keys = {info.key for info in await self._state.hub.calls.list(f"{prefix}ranks/")}
            except StoreError:
                await asyncio.sleep(self._state.hub.settings.store_retry_ns / SECOND_NS)
                continue
            for entry in self._state.book.lines.open_entries():
                place = (self._state.ledger.namespace, self._state.ledger.uid, entry.rank)
                if keys.trace_key(*place) in stored_keys or keys.summary_key(*place) in stored_keys:
                    self._state.note_stored((entry.sidecar_id, entry.process_id))
            return

    def _is_held(self, entry: LedgerEntry) -> bool:
        return (entry.sidecar_id, entry.process_id) in self._held
