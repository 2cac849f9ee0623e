"""A request's last stage: has the report made of what the store holds.

Guarantees: the analyzer is called only when the store has the ledger; an analysis that failed while the store was away
is repeated when it is back; one that hangs is ended after a bound, and a running one at once by a cancel. What went
wrong is a sentence, for the traces are there all the same.
"""

import asyncio

from fleetprof_api import keys
from fleetprof_api.store.base import StoreError

from fleetprof_operator.hub.capture_state import CaptureState
from fleetprof_operator.hub.settings import SECOND_NS
from fleetprof_operator.hub.surroundings import Analyze


async def make_report(state: CaptureState) -> str:
    """Has the report made; what went wrong as a sentence, empty when nothing did."""
    analyze, settings = state.hub.analyze, state.hub.settings
    if analyze is None:
        state.book.end_analysis("Unknown", "NoAnalyzer", "this hub makes no reports", state.hub.clock())
        return ""
    state.book.begin_analysis(state.hub.clock())
    state.note_change()
    until = max(state.hub.clock(), state.deadline_unix_ns) + settings.store_patience_ns
    while True:
        if not await state.writer.flush(until - state.hub.clock()):
            return f"the store takes no ledger: {state.writer.trouble}"
        problem = await _analyze_once(state, analyze)
        if not problem or state.ledger.cancelled_unix_ns:
            break
        if state.hub.clock() >= until or not await _store_was_away(state):
            return problem
    if not state.ledger.cancelled_unix_ns:
        state.report_made = True
        state.book.end_analysis("True", "ReportMade", "", state.hub.clock())
    return ""


async def _analyze_once(state: CaptureState, analyze: Analyze) -> str:
    task = asyncio.ensure_future(analyze(state.ledger.namespace, state.ledger.uid))
    until = state.hub.clock() + state.hub.settings.analysis_patience_ns
    try:
        while not task.done() and not state.ledger.cancelled_unix_ns:
            now = state.hub.clock()
            if now >= until:
                return f"the analysis took longer than {state.hub.settings.analysis_patience_ns // SECOND_NS} s"
            poked = asyncio.ensure_future(state.wait(until))
            await asyncio.wait({task, poked}, return_when=asyncio.FIRST_COMPLETED)
            poked.cancel()
        if not task.done():
            return ""
        error = task.exception()
        return "" if error is None else f"{error}" or type(error).__name__
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _store_was_away(state: CaptureState) -> bool:
    """After a failed analysis: True when the store does not answer now (then waits until it does again)."""
    away = False
    while True:
        try:
            await state.hub.calls.get_if_there(keys.ledger_key(state.ledger.namespace, state.ledger.uid))
        except StoreError as error:
            if not error.retryable:
                return False
            away = True
            await asyncio.sleep(state.hub.settings.store_retry_ns / SECOND_NS)
            continue
        return away
