"""A request's first stage: waits for the target's ranks, plans one window for all of them and orders it.

Resolving, deciding and planning are pure (`resolution`, `arm_steps`, `plan`); here is what they are asked, and what
is done.

Guarantees: a request waits for what may still come, with the reason in its status, and no longer than its deadline, or
the grace that it gives to ranks that are missing; no rank is ordered that another request holds, and of those that wait
for a rank the first one gets it. A deadline stands still while others are captured for whose sake the request waits:
for its ranks, or for a place. An order follows from the ledger alone, so that it can be repeated (`recover_order`).
Where no rank at all took its order in time, since host or job stood still for a second, nothing has begun and one later
start is agreed on, once all ask again; where one did, the others have missed it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fleetprof_api.ledger import CanaryVerdict, LedgerEntry, RankState, Reason
from fleetprof_api.process.version import VERSION

from fleetprof_operator.hub.capture.arm_steps import (
    EarlierLooks,
    Look,
    StepKind,
    decide,
    find_pause_ns,
    is_grace_over,
    note_missing,
    queue_for_place,
)
from fleetprof_operator.hub.capture.begin_permission import note_beginning
from fleetprof_operator.hub.capture.canary_stage import CanaryOutcome, send_canary
from fleetprof_operator.hub.capture.capture_state import CaptureState
from fleetprof_operator.hub.ledger.outcome import summarize_failures
from fleetprof_operator.hub.planning.orders import build_release
from fleetprof_operator.hub.planning.plan import make_plan
from fleetprof_operator.hub.planning.resolution import Resolution
from fleetprof_operator.hub.planning.target_pods import LOOKING
from fleetprof_operator.hub.planning.window_fit import NO_MEMORY, fit_window

MOST_PLANS: Final = 2
_MISSED: Final = (Reason.TOO_LATE, Reason.NOT_POLLING, Reason.BUSY)


async def resolve_and_arm(state: CaptureState) -> bool:
    """Waits for the target and arms it. False when the request ended meanwhile."""
    hub, earlier = state.hub, EarlierLooks()
    while not state.ledger.cancelled_unix_ns:
        look, earlier = _look(state, earlier)
        step, earlier = decide(look, earlier)
        if step.kind is StepKind.BEGIN and (no_place := hub.claim_place(state.ledger.uid, look.now_unix_ns)):
            step = queue_for_place(look.spec, no_place)
        match step.kind:
            case StepKind.END:
                state.end(step.reason, step.message, look.now_unix_ns)
                return False
            case StepKind.BEGIN:
                match await _begin(state, look):
                    case CanaryOutcome.ARM:
                        state.wait_for(())
                        return _arm(state, look.found, hub.clock())
                    case CanaryOutcome.ENDED:
                        return False
                    case CanaryOutcome.LOOK_AGAIN:
                        earlier = replace(earlier, gather_until_unix_ns=0)
                continue
            case StepKind.QUEUE:
                state.enter_queue(step.position, look.found.targets)
            case StepKind.GATHER:
                state.leave_queue()
            case StepKind.SEARCH:
                state.let_go()
        state.say(step.reason, step.message, look.now_unix_ns)
        await state.wait(look.now_unix_ns + find_pause_ns(step, look.now_unix_ns - state.began_unix_ns, hub.settings))
    sentence = f"cancelled by {state.ledger.cancelled_by} before any rank was asked"
    state.end("Cancelled", sentence, hub.clock())
    return False


def _look(state: CaptureState, earlier: EarlierLooks) -> tuple[Look, EarlierLooks]:
    hub, ledger, spec, now = state.hub, state.ledger, state.request.spec, state.hub.clock()
    found = hub.resolve(state.request, ledger.namespace, ledger.uid)
    state.look_for_pods(found.reason == LOOKING)
    earlier = note_missing(earlier, found, now)
    if is_grace_over(earlier, spec, now):
        found = hub.resolve(state.request, ledger.namespace, ledger.uid, without_missing=True)
    canary = ledger.canary
    is_over = canary is not None and canary.verdict is CanaryVerdict.UNHARMED
    look = Look(
        now_unix_ns=now,
        deadline_unix_ns=state.deadline_unix_ns,
        spec=spec,
        settings=hub.settings,
        found=found,
        holder=hub.find_holder(found.targets) if found.targets else "",
        earlier=hub.find_earlier(ledger.uid, found.targets) if found.targets else (),
        is_impatient=state.fails_fast and now >= state.standing.patient_until_unix_ns,
        canary=canary.entry.process_id if is_over and canary is not None and canary.entry is not None else "",
    )
    return look, earlier


async def _begin(state: CaptureState, look: Look) -> CanaryOutcome | None:
    """Does what comes before the order: the count, and the canary. None where only time has passed."""
    found = look.found
    state.leave_queue()
    state.wait_for(found.targets)
    if not await note_beginning(state, found):
        if state.ledger.outcome:
            return CanaryOutcome.ENDED
        await state.wait(look.now_unix_ns + state.hub.settings.look_again_ns)
        return None
    if state.hub.find_holder(found.targets):
        return None  # another request has taken them while that was written
    outcome = await send_canary(state, found)
    if outcome is CanaryOutcome.ARM and state.hub.find_holder(found.targets):
        return CanaryOutcome.LOOK_AGAIN
    return outcome


async def await_second_start(state: CaptureState) -> bool:
    """Tells whether no rank took its order in time, and all have asked for one again since; waits a while for that."""
    hub, ledger = state.hub, state.ledger
    missed = all(entry.reason in _MISSED and not entry.armed_unix_ns for entry in ledger.entries)
    until = min(hub.clock() + hub.settings.returning_ns, state.deadline_unix_ns)
    while missed and ledger.plans < MOST_PLANS and not ledger.cancelled_unix_ns and hub.clock() < until:
        if _ask_again(state):
            return True
        await state.wait(hub.clock() + hub.settings.look_again_ns)
    return False


def _ask_again(state: CaptureState) -> bool:
    """Tells whether each ordered process has polled since the order's time was over: one that hangs does not."""
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
    """The reason why a rank is given up whose sidecar knows nothing of its order."""
    if cancelled:
        return Reason.CANCELLED, "its sidecar has let go of the capture, or has never heard of it"
    if entry.state is not RankState.ASKED:
        text = "the sidecar came back and knows nothing about this capture: it lost its spool"
        return Reason.SIDECAR_RESTARTED, text
    return Reason.TOO_LATE, "the order did not reach its sidecar before the start: the hub or their connection broke"


def _arm(state: CaptureState, found: Resolution, now_unix_ns: int) -> bool:
    """Orders the window that fits. False when none does: the request has ended then."""
    spec, ledger = state.request.spec, state.ledger
    polling = [t for t in found.targets if t.process.polls_kineto]
    estimate = ledger.estimate or state.hub.estimate(ledger.namespace, state.request.target_text(), spec.options)
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
