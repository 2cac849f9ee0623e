"""A request's last stage: has the report made of what the store holds.

Guarantees: the analyzer is called only when the store has the ledger; an analysis that failed while the store was away
is repeated when it is back; a cancel ends everything here at once, and each wait has a bound: the analysis its own, the
store's return the request's deadline and a while. What went wrong is a sentence, for the traces are there all the same.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fleetprof_api import keys
from fleetprof_store.base import StoreError

from fleetprof_operator.hub.capture.capture_state import CaptureState
from fleetprof_operator.hub.capture.environment import AnalysisOrder, Analyze
from fleetprof_operator.hub.planning.common_start import say_different_steps
from fleetprof_operator.hub.settings import SECOND_NS
from fleetprof_operator.hub.storage.report_head import MOST_BYTES, ReportHead, read_head

_Result = TypeVar("_Result")


async def make_report(state: CaptureState) -> str:
    """Has the report made; what went wrong as a sentence, empty when nothing did or the user cancelled it."""
    analyze, settings = state.hub.analyze, state.hub.settings
    if analyze is None:
        state.book.end_analysis("Unknown", "NoAnalyzer", "this hub makes no reports", state.hub.clock())
        return ""
    state.book.begin_analysis(state.hub.clock())
    state.note_change()
    until = max(state.hub.clock(), state.deadline_unix_ns) + settings.store_patience_ns
    problem = await _make_within(state, analyze, until)
    if state.ledger.cancelled_unix_ns:
        return ""
    if not problem:
        state.note_report()
        state.book.end_analysis("True", "ReportMade", "the report is in the store", state.hub.clock())
    return problem


async def find_difference(state: CaptureState) -> str:
    """Says what keeps the ranks' iterations from being the same, as the report found it; mostly nothing."""
    if not state.standing.report_made or state.ledger.start_mode != "step":
        return ""
    try:
        head = await read_report_head(state)
    except StoreError:
        return ""  # the report says it
    return say_different_steps(head.start)


async def read_report_head(state: CaptureState) -> ReportHead:
    """The beginning of the report that the store holds. Raises StoreError."""
    key = keys.report_key(state.ledger.namespace, state.ledger.uid)
    return read_head(await state.hub.calls.get_beginning(key, MOST_BYTES))


async def _make_within(state: CaptureState, analyze: Analyze, until_unix_ns: int) -> str:
    while True:
        if not await _attend(state, _await_ledger(state), until_unix_ns):
            return f"the store takes no ledger: {state.writer.trouble}"
        problem = await _analyze_once(state, analyze)
        if not problem or not await _attend(state, _outlast_outage(state), until_unix_ns):
            return problem


async def _analyze_once(state: CaptureState, analyze: Analyze) -> str:
    patience_ns = state.hub.settings.analysis_patience_ns
    try:
        in_time = await _attend(state, _run(analyze, _make_order(state)), state.hub.clock() + patience_ns)
    except Exception as error:
        return f"{error}" or type(error).__name__
    return "" if in_time else f"the analysis took longer than {patience_ns // SECOND_NS} s"


async def _attend(state: CaptureState, work: Coroutine[Any, Any, _Result], until_unix_ns: int) -> _Result | None:
    """The result of `work`; None, and the work ended, when the user cancels before or the time is over."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done() and not state.ledger.cancelled_unix_ns and (now := state.hub.clock()) < until_unix_ns:
            poked = asyncio.ensure_future(state.wait(min(until_unix_ns, now + SECOND_NS)))
            await asyncio.wait({task, poked}, return_when=asyncio.FIRST_COMPLETED)
            poked.cancel()
        return task.result() if task.done() else None
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _make_order(state: CaptureState) -> AnalysisOrder:
    ledger = state.ledger
    stored = sum(bool(entry.uploaded_unix_ns) for entry in ledger.entries)
    return AnalysisOrder(ledger.namespace, ledger.uid, ledger.name, stored, state.request.spec.analysis)


async def _run(analyze: Analyze, order: AnalysisOrder) -> bool:
    await analyze(order)
    return True


async def _await_ledger(state: CaptureState) -> bool:
    """True once the store has the ledger as it stands; `_attend` bounds it."""
    while not await state.writer.flush(state.hub.settings.store_patience_ns):
        pass
    return True


async def _outlast_outage(state: CaptureState) -> bool:
    """After a failed analysis: True when the store was away, and is back; `_attend` bounds it."""
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
