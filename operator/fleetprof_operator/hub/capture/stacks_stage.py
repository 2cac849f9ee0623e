"""The stage of a request for stacks: finds the job's sidecars, asks them, has the answers judged, stores both.

Guarantees: sidecars of the request's own pods alone are asked, so that nobody reads another namespace's stacks; a
cancel and the deadline are honoured in every state; the request ends well only when the store holds the stacks.
"""

import asyncio
from typing import Final

from fleetprof_analyzer.stalls.verdict import judge_stall
from fleetprof_api import keys
from fleetprof_api.request import Stacks
from fleetprof_api.stacks import ProcessStacks
from fleetprof_api.stalls import JobStacks, StacksSample, write_job_stacks
from fleetprof_store.base import StoreError

from fleetprof_operator.hub.capture.capture_state import CaptureState
from fleetprof_operator.hub.ledger.outcome import count_noun
from fleetprof_operator.hub.settings import SECOND_NS
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord
from fleetprof_operator.hub.submission import CaptureRefused

PAUSE_NS: Final = 2 * SECOND_NS  # between two samples


async def read_job(state: CaptureState, wanted: Stacks) -> None:
    """Brings a request for stacks to its end."""
    samples: list[StacksSample] = []
    while len(samples) < wanted.samples:
        if samples:
            await asyncio.sleep(PAUSE_NS / SECOND_NS)
        sidecars = await _await_sidecars(state)
        if not sidecars:
            return
        try:
            processes = [process async for _, process in state.hub.questions.ask(sidecars)]
        except CaptureRefused:  # too many ask
            await state.wait(state.hub.clock() + state.hub.settings.look_again_ns)
            continue
        verdict = await asyncio.to_thread(judge_stall, processes)
        samples.append(StacksSample(at_unix_ns=state.hub.clock(), verdict=verdict, processes=processes))
    if problem := await _store(state, JobStacks(samples=samples)):
        state.book.conclude("False", "StoreUnavailable", problem, state.hub.clock())
        return
    if _has_ended(state):
        return
    state.note_report()
    last = samples[-1]
    state.book.note_stacks(_say_where(last.processes), last.verdict.sentence, state.hub.clock())
    state.book.conclude("True", "Complete", last.verdict.sentence, state.hub.clock())


async def _await_sidecars(state: CaptureState) -> list[SidecarRecord]:
    """The sidecars of the job, once they are there; none when the request has ended meanwhile."""
    hub, spec = state.hub, state.request.spec
    some_since = 0
    while not _has_ended(state):
        now = hub.clock()
        found = hub.find_sidecars(state.request, state.ledger.namespace, state.ledger.uid)
        if found.nobody is None:
            some_since = some_since or now
            # After a restart of the hub they come back one by one: a rank is not missing for that.
            if not found.missing.reason or now - some_since >= hub.settings.returning_ns:
                return found.connected
            reason, message = found.missing.reason, found.missing.message
        else:
            some_since = 0
            reason, message = found.nobody.reason, found.nobody.message
            deaf_since = found.nobody.deaf_since_unix_ns
            if deaf_since and now - deaf_since >= hub.settings.deaf_patience_ns:
                state.book.conclude("False", reason, message, now)
                return []
        if now >= state.deadline_unix_ns:
            waited = f"{message} (until the deadline of {spec.active_deadline_seconds} s)"
            state.book.conclude("False", reason, waited, now)
            return []
        state.say(reason, message, now)
        await state.wait(now + hub.settings.look_again_ns)
    return []


def _has_ended(state: CaptureState) -> bool:
    """Concludes a request that somebody has taken back."""
    if state.ledger.cancelled_unix_ns:
        text = f"cancelled by {state.ledger.cancelled_by}"
        state.book.conclude("False", "Cancelled", text, state.hub.clock())
    return bool(state.ledger.outcome)


async def _store(state: CaptureState, stacks: JobStacks) -> str:
    """Puts them into the store; the sentence about why not, where it stays away until the deadline."""
    key = keys.stacks_key(state.ledger.namespace, state.ledger.uid)
    data = await asyncio.to_thread(write_job_stacks, stacks)
    while True:
        try:
            await state.hub.calls.run(lambda: state.hub.calls.store.put(key, data))
            return ""
        except StoreError as error:
            is_late = state.hub.clock() >= state.deadline_unix_ns or state.ledger.cancelled_unix_ns
            if not error.retryable or is_late:
                return f"the store does not take the stacks: {error}"
            await asyncio.sleep(state.hub.settings.store_retry_ns / SECOND_NS)


def _say_where(processes: list[ProcessStacks]) -> str:
    answered = sum(process.has_answered for process in processes)
    nodes = len({process.node for process in processes})
    return f"{answered} of {len(processes)} processes on {count_noun(nodes, 'node')} answered"
