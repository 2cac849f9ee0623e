"""The last stage of `traces: Auto`: stores the whole traces of the few ranks that the report names.

The report chooses these ranks (`whole_traces`), not the hub. Guarantees: bounded in time and number; if a trace cannot
be stored, only that trace is lost; the sidecars delete every other trace with the capture.
"""

from typing import Final

from fleetprof_api.ledger import RankState
from fleetprof_store.base import StoreError

from fleetprof_operator.hub.capture.capture_state import CaptureState
from fleetprof_operator.hub.capture.report_stage import read_report_head
from fleetprof_operator.hub.planning.orders import build_fetch

MOST_TRACES: Final = 16


async def fetch_traces(state: CaptureState) -> None:
    """Asks for the chosen ranks' traces; returns when the store holds them, or after the patience for it."""
    try:
        head = await read_report_head(state)
    except StoreError:
        return
    chosen = set(head.whole_traces[:MOST_TRACES])
    until = state.hub.clock() + state.hub.settings.fetch_patience_ns
    while state.hub.clock() < until and not state.ledger.cancelled_unix_ns:
        wanted = [
            entry
            for entry in state.ledger.entries
            if entry.rank in chosen
            and entry.state is RankState.UPLOADED
            and not state.is_trace_stored((entry.sidecar_id, entry.process_id))
        ]
        for sidecar_id in {entry.sidecar_id for entry in wanted}:
            process_ids = [entry.process_id for entry in wanted if entry.sidecar_id == sidecar_id]
            # Again each time: a sidecar that was away has not heard it, and one that has does nothing more.
            state.hub.registry.send(sidecar_id, build_fetch(state.ledger.uid, process_ids))
        if not wanted:
            return
        await state.wait(min(until, state.hub.clock() + state.hub.settings.store_retry_ns))
