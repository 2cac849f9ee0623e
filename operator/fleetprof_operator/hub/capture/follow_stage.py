"""A request's second stage: from the order until every rank's line is final.

Sidecars say how their ranks end (`capture`); this module ends ranks of which no sidecar says anything.

Guarantees: `follow` returns. A cancel and the deadline end every open line, a sidecar that stays away ends its own;
each within its bound, one whose pod is gone at once, with the most precise reason that the hub knows.
"""

from fleetprof_api.ledger import LedgerEntry, RankState, Reason

from fleetprof_operator.hub.capture.capture_state import CaptureState
from fleetprof_operator.hub.planning.orders import build_cancel
from fleetprof_operator.hub.settings import SECOND_NS


async def follow(state: CaptureState) -> None:
    """Waits until every line is final; takes care of cancel, deadline and lost sidecars."""
    hub, settings, lines = state.hub, state.hub.settings, state.book.lines
    cancel_until = deadline_until = 0
    while lines.open_count:
        now = hub.clock()
        if state.ledger.cancelled_unix_ns and (state.standing.hurried or not cancel_until):
            cancel_until = now + (0 if state.standing.hurried else settings.cancel_wait_ns)
        if now >= state.deadline_unix_ns and not deadline_until:
            deadline_until = now + settings.deadline_wait_ns
            text = f"the deadline of {state.request.spec.active_deadline_seconds} s has passed"
            state.send_all(build_cancel(state.ledger.uid, Reason.DEADLINE_EXCEEDED, text))
        if 0 < cancel_until <= now:
            for entry in lines.open_entries():
                text = f"cancelled by {state.ledger.cancelled_by}; the sidecar has not confirmed it"
                state.give_up(entry, Reason.CANCELLED, text)
        elif 0 < deadline_until <= now:
            for entry in lines.open_entries():
                _give_up_at_deadline(state, entry)
        else:
            _give_up_lost(state, now)
        later = [t for t in (cancel_until, deadline_until) if t] or [state.deadline_unix_ns]
        await state.wait_for_turn(min(*later, now + SECOND_NS))


def _give_up_lost(state: CaptureState, now_unix_ns: int) -> None:
    """Ends the lines of sidecars that are away: for too long, or with their pods."""
    away = [sidecar_id for sidecar_id in state.book.lines.open_sidecars() if not _is_connected(state, sidecar_id)]
    patience_ns = _find_patience(state, alone=len(away) == len(state.book.lines.open_sidecars()))
    for sidecar_id in away:
        record = state.hub.registry.find(sidecar_id)
        lost_since = record.lost_unix_ns if record is not None else state.began_unix_ns
        is_late = now_unix_ns - lost_since >= patience_ns
        for entry in state.open_entries_of(sidecar_id):
            if _is_gone(state, entry):
                text = (
                    f"its pod {entry.pod_name} is gone (it ended, or was deleted or evicted) before its trace was "
                    "uploaded"
                )
                state.give_up(entry, Reason.SIDECAR_LOST, text)
            elif is_late:
                seconds = patience_ns // SECOND_NS
                whose = "the pod" if entry.pod_uid else "its machine or its `fleetprof run`"
                text = f"its sidecar has not been heard of for {seconds} s: {whose} is gone, or cannot reach the hub"
                state.give_up(entry, Reason.SIDECAR_LOST, text)


def _find_patience(state: CaptureState, *, alone: bool) -> int:
    """The time that a sidecar may be away; `alone`: nobody else is waited for, as after each restart of the hub."""
    grace_s, settings = state.request.spec.missing_ranks_grace_seconds, state.hub.settings
    if grace_s is None or not alone:
        return settings.sidecar_lost_ns
    return min(settings.sidecar_lost_ns, max(grace_s * SECOND_NS, settings.reconnecting_ns))


def _is_connected(state: CaptureState, sidecar_id: str) -> bool:
    record = state.hub.registry.find(sidecar_id)
    return record is not None and record.link is not None


def _is_gone(state: CaptureState, entry: LedgerEntry) -> bool:
    """True when an operator knows the request's pods, and this rank's is none of them any more."""
    target = state.hub.pods_of(state.ledger.uid)
    return bool(target is not None and not target.reason and entry.pod_uid and entry.pod_uid not in target.pods)


def _give_up_at_deadline(state: CaptureState, entry: LedgerEntry) -> None:
    if not _is_connected(state, entry.sidecar_id):
        text = f"its sidecar did not come back before the deadline; the rank was {entry.state.lower()}"
        state.give_up(entry, Reason.SIDECAR_LOST, text)
        return
    progress = {
        RankState.ASKED: "the process had not taken its order",
        RankState.ARMED: "the process had its order, but no trace was begun",
        RankState.STARTED: "the trace was not complete",
        RankState.WRITTEN: "the trace was complete, but not uploaded",
    }.get(entry.state, "")
    trouble = f" ({state.writer.trouble})" if state.writer.trouble else ""
    seconds = state.request.spec.active_deadline_seconds
    state.give_up(entry, Reason.DEADLINE_EXCEEDED, f"{progress} when the deadline of {seconds} s passed{trouble}")
