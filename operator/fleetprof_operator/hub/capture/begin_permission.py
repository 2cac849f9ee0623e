"""Permission of the administrator's bounds for a capture whose ranks are known, and a note that it has begun.

Guarantees: what is counted is in the store before a rank is asked, so neither a restart nor a deletion forgets it; of
two captures that begin at once the second is counted after the first. Where bounds count and the store is away, a
capture waits for the store.
"""

import logging

from fleetprof_api.errors import FleetprofError
from fleetprof_store.base import StoreError

from fleetprof_operator.hub.bounds import BEYOND, find_too_many_ranks, find_too_often
from fleetprof_operator.hub.capture.capture_state import CaptureState
from fleetprof_operator.hub.planning.resolution import Resolution
from fleetprof_operator.hub.storage.workload_costs import WorkloadRecord, name_workload, note_begun

log = logging.getLogger(__name__)

NO_STORE = "StoreUnavailable"


class BeyondBounds(FleetprofError):
    """The capture may not begin; the message says why and whom to ask."""


async def note_beginning(state: CaptureState, found: Resolution) -> bool:
    """Counts the capture. False where the request has ended instead (by its ledger), or waits for the store."""
    ledger, settings = state.ledger, state.hub.settings
    bounds, contact = settings.bounds.of(ledger.namespace), settings.bounds.contact
    try:
        if problem := find_too_many_ranks(len(found.targets) + len(found.absent), bounds, contact):
            raise BeyondBounds(problem)
        await _count(state, found)
    except BeyondBounds as refusal:
        now = state.hub.clock()
        state.book.wait_for(BEYOND, str(refusal), now)
        state.book.conclude("False", BEYOND, str(refusal), now)
        return False
    except StoreError as error:
        if bounds.counts:
            problem = f"captures are counted in the object store, which cannot be asked: {error}"
            now = state.hub.clock()
            state.say(NO_STORE, problem, now)
            if now >= state.deadline_unix_ns:
                state.book.conclude("False", NO_STORE, problem, now)
            return False
        log.warning("that capture %s was begun is not remembered: %s", ledger.uid, error)
    return True


async def _count(state: CaptureState, found: Resolution) -> None:
    ledger, settings, records = state.ledger, state.hub.settings, state.hub.records
    bounds, contact = settings.bounds.of(ledger.namespace), settings.bounds.contact
    workload, uid, now = find_workload(state, found.targets[0].sidecar_id), ledger.uid, state.hub.clock()

    def count(known: WorkloadRecord, of_namespace: WorkloadRecord) -> WorkloadRecord:
        if problem := find_too_often(known, of_namespace, bounds, contact, uid, now):
            raise BeyondBounds(problem)
        return note_begun(known, uid, now)

    if not bounds.captures_per_day_of_namespace:
        await records.change(ledger.namespace, workload, lambda known: count(known, WorkloadRecord()))
        return
    async with records.hold(ledger.namespace):
        of_namespace = await records.read(ledger.namespace, "")
        await records.change(ledger.namespace, workload, lambda known: count(known, of_namespace))
        await records.change(ledger.namespace, "", lambda known: note_begun(known, uid, now))


def find_workload(state: CaptureState, sidecar_id: str) -> str:
    """The name under which a capture is counted and remembered, one of whose ranks has this sidecar.

    It is what the request names, else what that pod belongs to, however its labels were chosen.
    """
    target, record = state.request.spec.target, state.hub.registry.find(sidecar_id)
    if target.workload is not None:
        return name_workload(target.workload.api_version, target.workload.kind, target.workload.name)
    owner = record.identity.workload if record is not None else None
    if owner is not None and owner.kind and owner.name:
        return name_workload(owner.api_version, owner.kind, owner.name)
    return target.text()
