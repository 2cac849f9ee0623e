"""A request's canary, before its ranks are asked: ordered, followed, judged, released; what captures cost, remembered.

To its sidecar a canary is a capture with an id of its own, so that nothing of it can be taken for the capture's.

Guarantees: `send_canary` returns: each of its waits ends with deadline, cancel or loss of the sidecar. However it ends,
the sidecar is told to let go. A canary that another hub began is nobody's, and is repeated. What is not remembered as
the store is away costs a canary, never a capture.
"""

import logging
from enum import Enum
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import (
    CanaryVerdict,
    LedgerEntry,
    RankState,
    Reason,
    is_final,
)
from fleetprof_api.report.recording import learn
from fleetprof_store.base import StoreError

from fleetprof_operator.hub.capture.begin_permission import find_workload
from fleetprof_operator.hub.capture.capture_state import CanaryRun, CaptureState
from fleetprof_operator.hub.planning import canary as rules
from fleetprof_operator.hub.planning.orders import build_canary, build_release
from fleetprof_operator.hub.planning.plan import make_plan
from fleetprof_operator.hub.planning.rank_targets import RankTarget
from fleetprof_operator.hub.planning.resolution import Resolution
from fleetprof_operator.hub.settings import SECOND_NS
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord
from fleetprof_operator.hub.storage.workload_costs import WorkloadRecord, note_cost, sum_up

log = logging.getLogger(__name__)

_STEP_PATIENCE_NS: Final = 300 * SECOND_NS  # for one more iteration: the job may evaluate just then
_PAUSE_NS: Final = 10 * SECOND_NS  # without an iteration, after which people are told
_MEASURE_PATIENCE_NS: Final = 30 * SECOND_NS  # for the sidecar's figures; an older one never sends any


class CanaryOutcome(Enum):
    """The request's next act: arm its ranks, look for them again as time has passed, or nothing: it has ended."""

    ARM = "arm"
    LOOK_AGAIN = "look again"
    ENDED = "ended"


async def send_canary(state: CaptureState, found: Resolution) -> CanaryOutcome:
    """Has one of these ranks record first, where that is called for."""
    ledger, spec, now = state.ledger, state.request.spec, state.hub.clock()
    if ledger.canary is not None and ledger.canary.verdict is not CanaryVerdict.NONE:
        return CanaryOutcome.ARM
    workload = find_workload(state, found.targets[0].sidecar_id)
    decision = rules.decide(spec, found.targets, await _read_record(state, workload), now)
    state.book.note_estimate(decision.estimate)
    if decision.impossible:
        message = f"{decision.message}; spec.canary: Auto captures all the same"
        return _end(state, CanaryVerdict.FAILED, "CanaryImpossible", message)
    if decision.target is None:
        state.book.canary.omit(decision.message)
        return CanaryOutcome.ARM
    entry = await _record_one(state, decision.target, found)
    if entry is None:
        return _end_early(state)
    repeats = rules.can_repeat(state.book.canary.known, spec.limits.max_slowdown_percent)
    return CanaryOutcome.LOOK_AGAIN if repeats else _judge(state, entry)


def hear(state: CaptureState, event: pb.CaptureEvent, record: SidecarRecord) -> None:
    """A sidecar's word about a canary of this request; one that is over, or another hub's, is let go."""
    run = state.standing.canary
    is_current = run is not None and (run.capture_id, run.target.sidecar_id) == (event.capture_id, record.sidecar_id)
    if not is_current:
        state.hub.registry.send(record.sidecar_id, build_release(event.capture_id))
    elif state.book.canary.apply(event):
        state.note_change()


def welcome(state: CaptureState, record: SidecarRecord) -> None:
    """A sidecar is back: the order is repeated, which changes nothing where it was heard."""
    run = state.standing.canary
    if run is not None and run.target.sidecar_id == record.sidecar_id:
        state.hub.registry.send(record.sidecar_id, run.order)


async def remember(state: CaptureState) -> None:
    """Keeps what the capture, or its canary, cost for the next one of the workload."""
    ledger, spec = state.ledger, state.request.spec
    entries = [e for e in ledger.entries if e.time_cost is not None and e.state is RankState.UPLOADED]
    if not entries and ledger.canary is not None and ledger.canary.entry is not None:
        entries = [ledger.canary.entry]
    if not entries:
        return
    record = state.hub.registry.find(entries[0].sidecar_id)
    process = record.processes.get(entries[0].process_id) if record is not None else None
    cost = None if process is None else sum_up(entries, spec.options, process, ledger.uid, state.hub.clock())
    if cost is not None:
        try:
            workload = find_workload(state, entries[0].sidecar_id)
            await state.hub.records.change(ledger.namespace, workload, lambda known: note_cost(known, cost))
        except StoreError as error:
            log.warning("what capture %s cost is not remembered: %s", ledger.uid, error)


# ---------------------------------------------------------------- one try


async def _record_one(state: CaptureState, target: RankTarget, found: Resolution) -> LedgerEntry | None:
    """The line of one try once it can be judged; None when the request was cancelled or its deadline came."""
    hub, ledger, now = state.hub, state.ledger, state.hub.clock()
    earlier = state.book.canary.entry
    missed = earlier is not None and earlier.state is RankState.FAILED
    plan = make_plan([target.process], rules.ONE, now, patient=missed)
    steps_per_iteration = max(1, target.process.step.steps_per_iteration)
    plan = rules.set_apart(plan, state.book.canary.known, state.standing.canary_step, steps_per_iteration)
    entry = state.book.canary.begin(target, now)
    tries = state.book.canary.known.tries
    capture_id = rules.canary_id(ledger.uid, tries)
    run = CanaryRun(
        capture_id=capture_id,
        target=target,
        order=build_canary(capture_id, plan, entry, state.request.spec, state.deadline_unix_ns, hub.settings),
        reserved=frozenset((t.sidecar_id, t.process.process_id) for t in found.targets),
    )
    state.begin_canary(run, plan.first_step or 0)
    again = ", once more" if tries > 1 else ""
    state.book.wait_for("Canary", f"canary: rank {target.rank} records one iteration first{again}", now)
    state.note_change()
    hub.registry.send(target.sidecar_id, run.order)
    try:
        return await _follow(state, run)
    finally:
        state.end_canary()
        hub.registry.send(target.sidecar_id, build_release(capture_id))


async def _follow(state: CaptureState, run: CanaryRun) -> LedgerEntry | None:
    written_at = 0
    while True:
        now, entry = state.hub.clock(), state.book.canary.entry
        assert entry is not None
        if state.ledger.cancelled_unix_ns or now >= state.deadline_unix_ns:
            return None
        if is_final(entry):
            return entry
        record = state.hub.registry.find(run.target.sidecar_id)
        connected = record is not None and record.link is not None
        if not connected and _is_lost(state, entry, record, now):
            return state.book.canary.fail(entry, Reason.SIDECAR_LOST, "its sidecar, or its pod, is gone", now)
        if entry.state is RankState.WRITTEN and connected and record is not None:
            written_at = written_at or now
            process = record.processes.get(entry.process_id)
            if process is None:
                text = "the process ended right after its canary was recorded"
                return state.book.canary.fail(entry, Reason.PROCESS_KILLED, text, now)
            waited = now - written_at
            if entry.time_cost is not None or waited >= _MEASURE_PATIENCE_NS:
                stepped = entry.time_cost is not None and entry.time_cost.iterations_after > 0
                if stepped or process.step.at_unix_ns > entry.written_unix_ns:
                    return entry
                text = f"canary: rank {entry.rank} has recorded, and made no iteration since: it pauses, or it hangs"
                if waited >= _PAUSE_NS:
                    state.say("Canary", text, now)
                if waited >= _STEP_PATIENCE_NS + 5 * process.step.iteration_ns:
                    text = f"it has made no iteration in the {waited // SECOND_NS} s after its canary was recorded"
                    return state.book.canary.fail(entry, Reason.NOT_STEPPING, text, now)
        await state.wait(now + state.hub.settings.look_again_ns)


def _is_lost(state: CaptureState, entry: LedgerEntry, record: SidecarRecord | None, now_unix_ns: int) -> bool:
    pods = state.hub.pods_of(state.ledger.uid)
    if pods is not None and not pods.reason and entry.pod_uid and entry.pod_uid not in pods.pods:
        return True
    return record is None or now_unix_ns - record.lost_unix_ns >= state.hub.settings.sidecar_lost_ns


# ---------------------------------------------------------------- its end


def _judge(state: CaptureState, entry: LedgerEntry) -> CanaryOutcome:
    canary, limit_percent = state.book.canary.known, state.request.spec.limits.max_slowdown_percent
    who = f"the canary, rank {entry.rank}"
    if harm := rules.find_harm(canary, limit_percent):
        message = f"{who}, was harmed: {harm}; no other rank was asked"
        return _end(state, CanaryVerdict.HARMED, "CanaryHarmed", message)
    if entry.reason is Reason.NO_MEMORY:
        return _end(state, CanaryVerdict.FAILED, "NoMemory", f"{who}: {entry.message}; no rank was asked")
    if entry.state is RankState.FAILED:
        message = f"{who}, has no trace ({entry.reason}): {entry.message}; no other rank was asked"
        return _end(state, CanaryVerdict.FAILED, "CanaryFailed", message)
    if learned := learn([entry.recording_cost] if entry.recording_cost is not None else []):
        state.book.note_estimate(learned)
    state.book.canary.conclude(CanaryVerdict.UNHARMED, rules.say_unharmed(canary, limit_percent))
    state.note_change()
    return CanaryOutcome.LOOK_AGAIN


def _end(state: CaptureState, verdict: CanaryVerdict, reason: str, message: str) -> CanaryOutcome:
    state.book.canary.conclude(verdict, message)
    now = state.hub.clock()
    state.book.wait_for(reason, message, now)
    state.book.conclude("False", reason, message, now)
    return CanaryOutcome.ENDED


def _end_early(state: CaptureState) -> CanaryOutcome:
    if state.ledger.cancelled_unix_ns:
        return _end(
            state,
            CanaryVerdict.FAILED,
            "Cancelled",
            f"cancelled by {state.ledger.cancelled_by} while the canary recorded",
        )
    seconds = state.request.spec.active_deadline_seconds
    message = f"the canary had not ended when the deadline of {seconds} s passed; no other rank was asked"
    return _end(state, CanaryVerdict.FAILED, "DeadlineExceeded", message)


# ---------------------------------------------------------------- what is remembered


async def _read_record(state: CaptureState, workload: str) -> WorkloadRecord:
    try:
        return await state.hub.records.read(state.ledger.namespace, workload)
    except StoreError as error:
        log.warning("what earlier captures cost cannot be read: %s", error)
        return WorkloadRecord()
