"""A report's first page: the answer and what it rests on.

Guarantees: pure; its size does not grow with the number of ranks, iterations or kernels: every list is cut, and what
was cut is counted.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec
from fleetprof_analyzer.views.answer.answer import give_answer
from fleetprof_analyzer.views.words.energy_words import list_energy
from fleetprof_analyzer.views.words.straggler_words import verdict as say_verdict
from fleetprof_api.ledger import LedgerEntry, RankState
from fleetprof_api.report.report import Problem, Report, RequestInfo
from fleetprof_api.report.stragglers import Straggler, Stragglers

from fleetprof_webui.models.model import unix_ns
from fleetprof_webui.models.report import (
    Answer,
    EnergySummary,
    Facts,
    LedgerCounts,
    ReasonCount,
    ReportPage,
    RequestFacts,
    StragglerPage,
    StragglerSummary,
)
from fleetprof_webui.reports.figures import find_iteration_ns, find_power_mw
from fleetprof_webui.reports.reading import StoredReport
from fleetprof_webui.reports.stored_files import FileList

_MOST_NAMED: Final = 16
_MOST_FINDINGS: Final = 50
_MOST_PROBLEMS: Final = 50
_MOST_RANKS: Final = 8
_MOST_TEXT: Final = 1000


def make_overview(stored: StoredReport, namespace: str, uid: str, files: FileList) -> ReportPage:
    """The page of one report."""
    report = stored.report
    answer = give_answer(report)
    return ReportPage(
        namespace=namespace,
        uid=uid,
        version=stored.version,
        title=report.title[:_MOST_TEXT],
        made_by=report.made_by[:_MOST_TEXT],
        made_unix_ns=unix_ns(report.made_unix_ns),
        answer=Answer(sentence=answer.sentence, evidence=answer.evidence, next_step=answer.next_step),
        findings=report.findings[:_MOST_FINDINGS],
        totals=report.totals,
        stragglers=None if report.stragglers is None else _stragglers(report.stragglers),
        capture_cost=report.capture_cost,
        energy=_energy(report),
        energy_sentences=list_energy(report),
        request=None if report.request is None else _describe_request(report.request),
        facts=_facts(report),
        ledger=_ledger(report.ledger) if report.ledger else None,
        whole_traces=report.whole_traces[:_MOST_NAMED],
        problems=_problems(report.problems),
        problem_count=sum(problem.count for problem in report.problems),
        files=files.files,
        has_timeline=files.has_timeline,
        has_tables=files.has_tables,
    )


def show_stragglers(report: Report) -> StragglerPage | None:
    """The verdict with its tables; None where there is none."""
    found = report.stragglers
    if found is None:
        return None
    return StragglerPage(
        verdict=found.verdict,
        sentence=say_verdict(found),
        reason=found.reason,
        ranks=found.ranks,
        order=found.order,
        candidate=found.candidate,
        slow_links=found.slow_links,
        iterations=found.iterations,
        matched_by=found.matched_by,
        operations=found.operations,
        unmatched=found.unmatched,
        not_captured=found.not_captured,
        clocks=found.clocks,
    )


def _stragglers(found: Stragglers) -> StragglerSummary:
    return StragglerSummary(
        verdict=found.verdict,
        reason=found.reason,
        named=[_cut_evidence(one) for one in found.ranks[:_MOST_NAMED]],
        named_count=len(found.ranks),
        cause=found.cause,
        candidate=found.candidate,
        gain=found.gain,
        smallest_gain=found.smallest_gain,
        fidelity=found.fidelity,
        transfer_share=found.transfer_share,
        approximate=found.approximate,
        unidentifiable=found.unidentifiable[:_MOST_NAMED],
    )


def _cut_evidence(one: Straggler) -> Straggler:
    evidence = [msgspec.structs.replace(shown, iterations=shown.iterations[:_MOST_NAMED]) for shown in one.evidence]
    return msgspec.structs.replace(one, evidence=evidence[:_MOST_NAMED])


def _energy(report: Report) -> EnergySummary | None:
    if report.energy is None:
        return None
    return EnergySummary(
        rank_count=report.energy.ranks,
        mean_mj=report.energy.mean_mj,
        power_mw=find_power_mw(report),
    )


def _describe_request(request: RequestInfo) -> RequestFacts:
    return RequestFacts(
        name=request.name,
        target=request.target,
        requester=request.requester,
        start_mode=request.start_mode,
        asked_first_step=request.asked_first_step,
        asked_iterations=request.asked_iterations,
        asked_duration_ns=request.asked_duration_ns,
        collect=request.collect,
        submitted_unix_ns=unix_ns(request.submitted_unix_ns),
        armed_unix_ns=unix_ns(request.armed_unix_ns),
        completed_unix_ns=unix_ns(request.completed_unix_ns),
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
    return [text[:_MOST_TEXT] for text, _ in Counter(text for text in texts if text).most_common(_MOST_NAMED)]


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


def _problems(problems: list[Problem]) -> list[Problem]:
    shown = sorted(problems, key=lambda problem: -problem.count)[:_MOST_PROBLEMS]
    return [msgspec.structs.replace(problem, message=problem.message[:_MOST_TEXT]) for problem in shown]
