"""A request's first stage: waits for the target's ranks, plans one window for all of them and orders it.

Resolving and planning are pure (`resolution`, `plan`); here is the patience around them.

Guarantees: a request waits for what may still come, with the reason in its status, and no longer than its deadline, or
the grace that it gives to ranks that are missing; no rank is ordered that another request holds, and of those that wait
for a rank the first one gets it. A deadline stands still while others are captured for whose sake the request waits:
for its ranks, or for a place. An order follows from the ledger alone, so that it can be repeated (`recover_order`).
Where no rank at all took its order in time, since host or job stood still for a second, nothing has begun and one later
start is agreed on, once all ask again; where one did, the others have missed it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from fleetprof_api.ledger import CanaryVerdict, LedgerEntry, RankState, Reason
from fleetprof_api.process.version import VERSION
from fleetprof_api.request import Conflict, Spec

from fleetprof_operator.hub.capture.begin_permission import note_beginning
from fleetprof_operator.hub.capture.canary_stage import CanaryOutcome, send_canary
from fleetprof_operator.hub.capture.capture_state import CaptureState, PlaceState
from fleetprof_operator.hub.ledger.outcome import summarize_failures
from fleetprof_operator.hub.planning.first_steps import NO_STEP
from fleetprof_operator.hub.planning.orders import build_release
from fleetprof_operator.hub.planning.plan import find_obstacle, find_unsteady, make_plan
from fleetprof_operator.hub.planning.resolution import Resolution
from fleetprof_operator.hub.planning.target_pods import LOOKING
from fleetprof_operator.hub.planning.window_fit import NO_MEMORY, fit_window
from fleetprof_operator.hub.settings import SECOND_NS, HubSettings
from fleetprof_operator.hub.submission import ALREADY, QUEUED, TOO_MANY

MOST_PLANS: Final = 2
_MISSED: Final = (Reason.TOO_LATE, Reason.NOT_POLLING, Reason.BUSY)


async def resolve_and_arm(state: CaptureState) -> bool:
    """Waits for the target and arms it. False when the request ended meanwhile."""
    hub, spec = state.hub, state.request.spec
    gather_until = others_since = 0
    while True:
        now = hub.clock()
        if state.ledger.cancelled_unix_ns:
            state.leave_queue()
            sentence = f"cancelled by {state.ledger.cancelled_by} before any rank was asked"
            state.book.conclude("False", "Cancelled", sentence, now)
            return False
        found = hub.resolve(state.request, state.ledger.namespace, state.ledger.uid)
        state.looks_for_pods = found.reason == LOOKING
        others_since = (others_since or now) if found.others else 0
        if others_since and _is_grace_over(state, others_since, now):
            found = hub.resolve(state.request, state.ledger.namespace, state.ledger.uid, without_missing=True)
        holder = hub.find_holder(found.targets) if found.targets else ""
        earlier = hub.find_earlier(state.ledger.uid, found.targets) if found.targets else ()
        if holder or earlier:
            gather_until = 0
            first = holder or f"{earlier[0]} waits for the same ranks, and comes first"
            if spec.conflict is Conflict.FAIL:
                state.book.conclude("False", ALREADY, first, now)
                return False
            state.enter_queue(len(earlier) + bool(holder), found.targets)
            reason, message = QUEUED, f"place {state.queue_position} in the queue for these ranks: {first}"
        elif found.targets:
            pending = _find_pending(state, found, now)
            profiled = sum(target.process.busy for target in found.targets)
            if profiled and now < state.deadline_unix_ns - hub.settings.gap_ns:
                # Nobody else of ours holds them: an order would be given up after seconds, as the job's own wins.
                pending, gather_until = f"{profiled} of {len(found.targets)} ranks {_say_busy(state, found)}", 0
            gather_until = gather_until or now + hub.settings.gather_ns
            is_ready = not pending or now >= min(gather_until, state.deadline_unix_ns)
            if is_ready and (no_place := hub.claim_place(state.ledger.uid, now)):
                if spec.conflict is Conflict.FAIL:
                    state.book.conclude("False", TOO_MANY, no_place.message, now)
                    return False
                state.enter_queue(no_place.position, found.targets)
                reason, message = QUEUED, f"place {no_place.position} in the queue: {no_place.message}"
            else:
                state.leave_queue()
                if is_ready:
                    state.wait_for(found.targets)
                    if not await note_beginning(state, found):
                        if state.ledger.outcome:
                            return False
                        await state.wait(now + hub.settings.look_again_ns)
                        continue
                    if hub.find_holder(found.targets):
                        continue  # another request has taken them while that was written
                    match await send_canary(state, found):
                        case CanaryOutcome.ARM if not hub.find_holder(found.targets):
                            state.queued = frozenset()
                            return _arm(state, found, hub.clock())
                        case CanaryOutcome.ENDED:
                            return False
                    gather_until = 0
                    continue
                reason, message = "Gathering", pending
        else:
            state.leave_queue()
            state.place = PlaceState.NONE
            gather_until, state.queued = 0, frozenset()
            reason, message = found.reason, found.message
            deaf = found.deaf_since_unix_ns and now - found.deaf_since_unix_ns >= hub.settings.deaf_patience_ns
            impatient = state.fails_fast and now >= state.patient_until_unix_ns
            late = impatient and is_hopeless(found, spec, now, hub.settings)
            if deaf or late or now >= state.deadline_unix_ns:
                waited = "" if deaf or late else f" (until the deadline of {spec.active_deadline_seconds} s)"
                state.book.conclude("False", found.reason, found.message + waited, now)
                return False
        if state.book.wait_for(reason, message, now):
            state.note_change()
        await state.wait(now + _find_pause_ns(state, found, now))


def _find_pause_ns(state: CaptureState, found: Resolution, now_unix_ns: int) -> int:
    """Until the next look: the longer a request has waited for its job, the rarer it looks."""
    settings = state.hub.settings
    if found.targets and not state.queue_position:
        return settings.look_again_ns
    waited_ns = now_unix_ns - state.began_unix_ns
    return max(settings.look_again_ns, min(settings.look_rarely_ns, waited_ns // 32))


def _say_busy(state: CaptureState, found: Resolution) -> str:
    """What ranks record that are busy. What a sidecar said last may be of the canary, which is over."""
    canary = state.ledger.canary
    if canary is None or canary.entry is None or canary.verdict is not CanaryVerdict.UNHARMED:
        return "are being profiled by their job"
    own = any(target.process.busy and target.process.process_id == canary.entry.process_id for target in found.targets)
    return "still record, for the canary or for their job's own profiler" if own else "are being profiled by their job"


def _is_grace_over(state: CaptureState, others_since_unix_ns: int, now_unix_ns: int) -> bool:
    """Whether the request goes on without the ranks that have been missing since then."""
    grace_s = state.request.spec.missing_ranks_grace_seconds
    return grace_s is not None and now_unix_ns >= others_since_unix_ns + grace_s * SECOND_NS


def is_hopeless(found: Resolution, spec: Spec, now_unix_ns: int, settings: HubSettings) -> bool:
    """Tells whether a target without ranks does not come by itself: no job is there, or another one.

    Where a request gives missing ranks a grace, it goes on after that with those that are there.
    """
    if found.others and spec.missing_ranks_grace_seconds is not None:
        return False
    comes = found.starts or found.reason == NO_STEP
    return not comes and now_unix_ns >= found.heard_since_unix_ns + settings.returning_ns


async def await_second_start(state: CaptureState) -> bool:
    """Whether no rank took its order in time, and all have asked for one again since; waits a while for that."""
    hub, ledger = state.hub, state.ledger
    missed = all(entry.reason in _MISSED and not entry.armed_unix_ns for entry in ledger.entries)
    until = min(hub.clock() + hub.settings.returning_ns, state.deadline_unix_ns)
    while missed and ledger.plans < MOST_PLANS and not ledger.cancelled_unix_ns and hub.clock() < until:
        if _ask_again(state):
            return True
        await state.wait(hub.clock() + hub.settings.look_again_ns)
    return False


def _ask_again(state: CaptureState) -> bool:
    """Whether each process that was ordered has polled since the order's time was over: one that hangs does not."""
    ledger = state.ledger
    found = state.hub.resolve(state.request, ledger.namespace, ledger.uid)
    polls = {(t.sidecar_id, t.process.process_id): t.process.last_poll_unix_ns for t in found.targets}
    ordered = [e for e in ledger.entries if e.process_id and e.failed_unix_ns != e.asked_unix_ns]
    return all(polls.get((e.sidecar_id, e.process_id), 0) > ledger.deliver_until_unix_ns for e in ordered)


def recover_order(state: CaptureState, sidecar_id: str, missing: Sequence[LedgerEntry]) -> None:
    """A connected sidecar does not know these ranks' order: repeats it while there is time, else gives them up."""
    now = state.hub.clock()
    timely = now < state.ledger.deliver_until_unix_ns and not state.ledger.cancelled_unix_ns
    again = [e for e in missing if timely and e.state is RankState.ASKED]
    _send_order(state, sidecar_id, again)
    for entry in missing:
        if entry not in again:
            state.give_up(entry, *_say_lost(entry, state.ledger.cancelled_unix_ns > 0))


def _say_lost(entry: LedgerEntry, cancelled: bool) -> tuple[Reason, str]:
    """Why a rank is given up whose sidecar knows nothing of its order."""
    if cancelled:
        return Reason.CANCELLED, "its sidecar has let go of the capture, or has never heard of it"
    if entry.state is not RankState.ASKED:
        text = "the sidecar came back and knows nothing about this capture: it lost its spool"
        return Reason.SIDECAR_RESTARTED, text
    return Reason.TOO_LATE, "the order did not reach its sidecar before the start: the hub or their connection broke"


def _find_pending(state: CaptureState, found: Resolution, now_unix_ns: int) -> str:
    """What a short wait may still improve; empty when nothing."""
    if found.incomplete and not found.final:
        return found.incomplete
    settings = state.hub.settings
    # After a restart of its sidecar an agent is heard of before Kineto, whose client may still be backing off.
    agents = [t.process for t in found.targets if t.process.has_agent or t.process.agent_waits]
    silent = [p for p in agents if not p.polls_kineto]
    if returning := sum(now_unix_ns - p.first_seen_unix_ns < settings.returning_ns for p in silent):
        return f"{returning} of {len(found.targets)} ranks do not ask for orders yet"
    processes = [t.process for t in found.targets if t.process.polls_kineto]
    if unsteady := find_unsteady(processes, now_unix_ns):
        return unsteady
    if state.request.spec.window.iterations is None:
        return ""
    # An agent shows itself when PyTorch has been imported, Kineto in the middle of that.
    young = any(now_unix_ns - p.first_seen_unix_ns < settings.young_ns for p in processes)
    if not young and not any(p.has_agent for p in processes):
        return ""
    return find_obstacle(processes, state.request.spec.window, now_unix_ns)


def _arm(state: CaptureState, found: Resolution, now_unix_ns: int) -> bool:
    """Orders the window that fits. False when none does: the request has ended then."""
    spec, ledger = state.request.spec, state.ledger
    polling = [t for t in found.targets if t.process.polls_kineto]
    estimate = ledger.estimate or state.hub.estimate(ledger.namespace, state.request.target_text(), spec.collect)
    fit = fit_window(spec, polling, estimate)
    if fit.refusal:
        state.book.conclude("False", NO_MEMORY, fit.refusal, now_unix_ns)
        return False
    missed = summarize_failures(state.ledger.entries)
    plan = make_plan([t.process for t in polling], fit.window, now_unix_ns, patient=bool(missed))
    canary = ledger.canary.message if ledger.canary is not None else ""
    notes = [text for text in (found.incomplete, canary, fit.note, _say_versions(state, found)) if text]
    if missed:
        notes.append(f"a second start, because no rank took its order before the first ({missed})")
        for sidecar_id in state.book.lines.sidecars():
            state.hub.registry.send(sidecar_id, build_release(state.ledger.uid))
    state.book.ask(found.targets, plan, "; ".join(notes), now_unix_ns, found.absent)
    state.book.note_estimate(estimate)
    state.book.note_iterations((fit.window.iterations or 0) if fit.note else 0)
    for sidecar_id in state.book.lines.sidecars():
        _send_order(state, sidecar_id, state.open_entries_of(sidecar_id))
    state.note_change()
    return True


def _say_versions(state: CaptureState, found: Resolution) -> str:
    """Sidecars of another build than the hub's: a running pod keeps the one that it started with."""
    records = [state.hub.registry.find(sidecar_id) for sidecar_id in {target.sidecar_id for target in found.targets}]
    versions = Counter(record.version or "an older version" for record in records if record is not None)
    del versions[VERSION]
    if not versions:
        return ""
    others = ", ".join(f"{number} of {version}" for version, number in sorted(versions.items()))
    return f"sidecars of another version than the hub's ({VERSION}): {others}"


def _send_order(state: CaptureState, sidecar_id: str, entries: Sequence[LedgerEntry]) -> None:
    if entries:
        message = state.book.build_order(state.request.spec, entries, state.deadline_unix_ns, state.hub.settings)
        state.hub.registry.send(sidecar_id, message)
