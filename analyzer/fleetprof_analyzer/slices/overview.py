"""The answer of a report and what it rests on.

Guarantees: pure; its size does not grow with the number of ranks, iterations or kernels: every list is cut, and what
was cut is counted.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec
from fleetprof_api.ledger import LedgerEntry, RankState
from fleetprof_api.report.report import Problem, Report, RequestInfo
from fleetprof_api.report.stragglers import Straggler, Stragglers
from fleetprof_api.slices.overview import (
    Answer,
    Facts,
    KeyFigure,
    LedgerCounts,
    Overview,
    ReasonCount,
    RequestFacts,
    StragglerSummary,
)
from fleetprof_api.slices.slice import unix_ns

from fleetprof_analyzer.slices.figures import find_iteration_ns, find_power_mw
from fleetprof_analyzer.views.answer.headline import describe
from fleetprof_analyzer.words.efficiency import list_efficiency, list_throughput
from fleetprof_analyzer.words.energy import list_energy

_FEW: Final = 16
_MOST_RANKS: Final = 8
_MOST_TEXT: Final = 1000


def make_overview(report: Report, most: int) -> Overview:
    """The slice, with at most so many findings and problems."""
    head = describe(report)
    return Overview(
        title=report.title[:_MOST_TEXT],
        made_by=report.made_by[:_MOST_TEXT],
        made_unix_ns=unix_ns(report.made_unix_ns),
        answer=Answer(
            sentence=head.answer.sentence, evidence=head.answer.evidence[:most], next_step=head.answer.next_step
        ),
        figures=[KeyFigure(name=one.name, value=one.value, context=one.context) for one in head.facts],
        sentences=head.sentences[:most],
        findings=report.findings[:most],
        totals=report.totals,
        stragglers=None if report.stragglers is None else _stragglers(report.stragglers, min(_FEW, most)),
        capture_cost=report.capture_cost,
        power_mw=find_power_mw(report),
        energy=list_energy(report)[:most],
        throughput=list_throughput(report)[:most],
        efficiency=list_efficiency(report)[:most],
        request=None if report.request is None else _describe_request(report.request),
        facts=_facts(report),
        ledger=_ledger(report.ledger) if report.ledger else None,
        whole_traces=report.whole_traces[:_FEW],
        problems=_problems(report.problems, most),
        problem_count=sum(problem.count for problem in report.problems),
        cut=max(0, len(report.findings) - most) + max(0, len(report.problems) - most),
    )


def _stragglers(found: Stragglers, most: int) -> StragglerSummary:
    return StragglerSummary(
        verdict=found.verdict,
        named=[_cut_evidence(one, most) for one in found.ranks[:most]],
        named_count=len(found.ranks),
        cause=found.cause,
        candidate=found.candidate,
        gain=found.gain,
    )


def _cut_evidence(one: Straggler, most: int) -> Straggler:
    evidence = [msgspec.structs.replace(shown, iterations=shown.iterations[:most]) for shown in one.evidence]
    return msgspec.structs.replace(one, evidence=evidence[:most])


def _describe_request(request: RequestInfo) -> RequestFacts:
    return RequestFacts(
        name=request.name[:_MOST_TEXT],
        target=request.target[:_MOST_TEXT],
        requester=request.requester[:_MOST_TEXT],
        collect=request.collect,
        submitted_unix_ns=unix_ns(request.submitted_unix_ns),
        outcome=request.outcome,
        message=request.message[:_MOST_TEXT],
    )


def _facts(report: Report) -> Facts:
    ranks = report.ranks
    longest = max((rank.iterations for rank in ranks), key=len, default=[])
    sizes = [rank.world_size for rank in ranks if rank.world_size is not None]
    return Facts(
        rank_count=len(ranks),
        host_count=len({rank.host_name for rank in ranks if rank.host_name}),
        world_size=max(sizes, default=None),
        devices=_most_frequent(rank.device_name for rank in ranks),
        torch_versions=_most_frequent(rank.torch_version for rank in ranks),
        iteration_count=len(longest),
        iteration_ns=find_iteration_ns(report),
        first_iteration=longest[0].index if longest else None,
        event_count=sum(rank.event_count for rank in ranks),
        trace_bytes=sum(rank.trace_bytes for rank in ranks),
        truncated_ranks=sum(rank.truncated for rank in ranks),
        start_spread_ns=report.start.spread_ns,
        same_first_iteration=report.start.same_first_iteration,
    )


def _most_frequent(texts: Iterable[str]) -> list[str]:
    return [text[:_MOST_TEXT] for text, _ in Counter(text for text in texts if text).most_common(_FEW)]


def _ledger(entries: list[LedgerEntry]) -> LedgerCounts:
    by_reason: dict[str, list[LedgerEntry]] = {}
    for entry in entries:
        if entry.reason is not None:
            by_reason.setdefault(entry.reason.value, []).append(entry)
    return LedgerCounts(
        targeted=len(entries),
        uploaded=sum(entry.state is RankState.UPLOADED for entry in entries),
        failed=sum(entry.state is RankState.FAILED for entry in entries),
        reasons=[
            ReasonCount(
                reason=reason,
                count=len(failed),
                ranks=[entry.rank for entry in failed[:_MOST_RANKS]],
                message=failed[0].message[:_MOST_TEXT],
            )
            for reason, failed in sorted(by_reason.items(), key=lambda item: -len(item[1]))
        ],
    )


def _problems(problems: list[Problem], most: int) -> list[Problem]:
    shown = sorted(problems, key=lambda problem: -problem.count)[:most]
    return [msgspec.structs.replace(problem, message=problem.message[:_MOST_TEXT]) for problem in shown]
