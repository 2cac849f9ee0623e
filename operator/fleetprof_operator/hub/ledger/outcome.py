"""The end of a request, from its ranks' lines: the status, reason and message of its Succeeded condition.

Guarantees: pure; the reasons are those that `ledger_book` lists.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from fleetprof_api.ledger import LedgerEntry, RankState, Reason

from fleetprof_operator.hub.ledger.ledger_view import LedgerView


def decide_outcome(ledger: LedgerView, deadline_passed: bool, difference: str = "") -> tuple[str, str, str]:
    """(status, reason, message) of Succeeded once every line is final and, where there is one, the report is made.

    `difference`: what keeps the ranks' iterations from being the same, though all are stored.
    """
    entries = ledger.entries
    uploaded = sum(e.state is RankState.UPLOADED for e in entries)
    summary = f"{uploaded} of {count_noun(len(entries), 'rank')} captured"
    if failed := summarize_failures(entries):
        summary += f"; failed: {failed}"
    if ledger.cancelled_unix_ns:
        return "False", "Cancelled", f"cancelled by {ledger.cancelled_by}; {summary}"
    if not uploaded:
        first = next((e for e in entries if e.message), None)
        detail = f". Rank {first.rank}: {first.message}" if first is not None else ""
        return "False", "DeadlineExceeded" if deadline_passed else "AllRanksFailed", summary + detail
    whole = uploaded == len(entries) and not difference
    return "True", "Complete" if whole else "PartiallyCaptured", f"{summary}; {difference}" if difference else summary


def say_not_done(reason: str) -> str:
    """The message of a condition that the request's end has overtaken."""
    return f"not done: the request ended with {reason}"


def summarize_failures(entries: Iterable[LedgerEntry]) -> str:
    """The reasons of the failed ranks, counted: `2 TooLate, 1 ProcessExited`."""
    return count_reasons(Counter(e.reason or Reason.INTERNAL for e in entries if e.state is RankState.FAILED))


def count_reasons(reasons: Mapping[Reason, int]) -> str:
    """Reasons and how many ranks have each, the most frequent first."""
    return ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items(), key=lambda r: (-r[1], r[0])))


def count_noun(number: int, noun: str) -> str:
    """`1 rank`, `2 ranks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
