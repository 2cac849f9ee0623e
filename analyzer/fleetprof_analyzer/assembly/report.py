"""The reduce step: merged summaries, request and ledger in, report out.

Guarantees: pure (the time of making is passed in); made of summaries only; GPU and CPU ranks are never added together;
a verdict on the first iteration is given only where every rank can prove it; what summaries say is within bounds.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec
from fleetprof_api import __version__
from fleetprof_api.kernel_class import KernelClass
from fleetprof_api.ledger import Ledger, RankState
from fleetprof_api.report.report import (
    HostSeries,
    KindTotal,
    Problem,
    Rank,
    Report,
    RequestInfo,
    UnrecordedReason,
    UnrecordedTime,
)
from fleetprof_api.report.start_skew import RankStart, StartSkew

from fleetprof_analyzer.assembly.bounds import bound_report
from fleetprof_analyzer.assembly.sections import ReportSections
from fleetprof_analyzer.findings.examples import give_examples
from fleetprof_analyzer.findings.registry import find_findings
from fleetprof_analyzer.job.cost import measure_cost
from fleetprof_analyzer.job.device_waits import name_device_waits
from fleetprof_analyzer.job.efficiency.efficiency import measure_efficiency
from fleetprof_analyzer.job.efficiency.roofline import add_roofs
from fleetprof_analyzer.job.efficiency.throughput import measure_throughput
from fleetprof_analyzer.job.energy import add_energy, find_worst_gpu
from fleetprof_analyzer.job.heterogeneity import measure_heterogeneity
from fleetprof_analyzer.job.modules import merge_modules
from fleetprof_analyzer.job.stragglers.causes.silence import add_silences
from fleetprof_analyzer.job.stragglers.hosts import add_hosts, name_hosts
from fleetprof_analyzer.job.stragglers.sampled_device import find_sampled_device
from fleetprof_analyzer.job.stragglers.verdict import judge_summaries
from fleetprof_analyzer.job.whole_traces import choose_whole_traces
from fleetprof_analyzer.rank.identity import find_doubles
from fleetprof_analyzer.rank.measures.breakdown import add
from fleetprof_analyzer.rank.measures.communication_table import merge_communication
from fleetprof_analyzer.rank.measures.device_time import add_idle
from fleetprof_analyzer.rank.measures.kernels.kernels import (
    find_outliers,
    list_device_work,
    merge_classes,
    merge_kernels,
)
from fleetprof_analyzer.rank.measures.kernels.operator_launches import merge_operator_launches
from fleetprof_analyzer.rank.sections import RankSection
from fleetprof_analyzer.rank.summary import RankSummary
from fleetprof_analyzer.trace.problems import ProblemKind
from fleetprof_analyzer.words.methods import METHOD_OF_COST
from fleetprof_analyzer.words.stragglers import say_stragglers


def assemble(
    summaries: Sequence[RankSummary],
    *,
    title: str,
    made_unix_ns: int,
    request: RequestInfo | None = None,
    ledger: Ledger | None = None,
    problems: Sequence[Problem] = (),
    kernel_classes: Sequence[KernelClass] = (),
) -> Report:
    """The report of merged summaries (`summary.merge`). `problems` are those that belong to no trace."""
    sections = ReportSections()
    find = sections.find
    ranks = find("device work of each rank", lambda: _list_ranks(summaries)).otherwise(
        [s.rank for s in summaries if s.rank]
    )
    requested_step = None if request is None else request.asked_first_step
    cost = find("cost", lambda: measure_cost([s.step_times for s in summaries if s.step_times is not None])).or_none()
    hosts = find("hosts", lambda: name_hosts(ranks, [] if ledger is None else ledger.entries)).otherwise({})
    judged = find(
        "stragglers",
        lambda: judge_summaries([(s.rank_number, s.operations, s.operations_bytes) for s in summaries], hosts),
    ).or_none()
    tree = find("modules", lambda: merge_modules([(s.rank_number, s.modules) for s in summaries])).or_none()
    efficiency = find("efficiency", lambda: measure_efficiency(ranks, tree)).otherwise([])
    kernels = [(summary.rank_number, summary.kernels) for summary in summaries]
    report = Report(
        made_by=f"fleetprof {__version__}",
        made_unix_ns=made_unix_ns,
        title=title,
        request=request,
        totals=find("totals", lambda: [*_total(ranks, "gpu"), *_total(ranks, "cpu")]).otherwise([]),
        ranks=ranks,
        start=find("start", lambda: measure_start(ranks, requested_step)).otherwise(StartSkew()),
        capture_cost=None if cost is None else msgspec.structs.replace(cost, method=METHOD_OF_COST),
        stragglers=find(
            "stragglers",
            lambda: (
                None
                if judged is None
                else add_silences(name_device_waits(say_stragglers(add_hosts(judged, hosts)), ranks), ranks)
            ),
        ).or_none(),
        ledger=[] if ledger is None else sorted(ledger.entries, key=lambda entry: (entry.rank, entry.process_id)),
        hosts=_join_hosts([summary.host for summary in summaries if summary.host is not None]),
        kernels=find("kernels", lambda: merge_kernels([groups for _, groups in kernels])).otherwise([]),
        kernel_outliers=find("kernel outliers", lambda: find_outliers(kernels)).otherwise([]),
        communication=find(
            "communication", lambda: merge_communication([s.communication for s in summaries])
        ).otherwise([]),
        kernel_classes=find("classes of work", lambda: merge_classes([groups for _, groups in kernels])).otherwise([]),
        asked_kernel_classes=list(kernel_classes),
        launching_operators=find(
            "operators that launch", lambda: merge_operator_launches([s.operators for s in summaries])
        ).otherwise([]),
        efficiency=efficiency,
        throughput=find("throughput", lambda: measure_throughput(ranks, tree)).or_none(),
        module_tree=find("modules", lambda: add_roofs(tree, efficiency)).otherwise(tree),
        heterogeneity=find("differences between ranks", lambda: measure_heterogeneity(ranks)).otherwise([]),
        energy=find("energy", lambda: add_energy(ranks)).or_none(),
        worst_gpu=find("worst GPU", lambda: find_worst_gpu(ranks, dict(kernels))).or_none(),
    )
    suspects = [] if report.stragglers is None else [rank.rank for rank in report.stragglers.ranks]
    gain = 0.0 if judged is None else judged.loading_gain
    device = find("samples of the late rank", lambda: find_sampled_device(report)).or_none()
    whole = msgspec.structs.replace(
        report,
        findings=find(
            "findings",
            lambda: give_examples(find_findings(report, gain, device), report.ranks),
        ).otherwise([]),
        whole_traces=find("whole traces", lambda: choose_whole_traces(ranks, suspects)).otherwise([]),
        problems=[
            *problems,
            *(_missing(ledger, summaries) if ledger is not None else []),
            *find("ranks", lambda: find_doubles([(rank.rank, rank.source) for rank in ranks])).otherwise([]),
            *(problem for summary in summaries for problem in summary.problems),
            *_first_step_problems(ranks, requested_step),
            *sections.problems,
        ],
    )
    return bound_report(whole)


def _list_ranks(summaries: Sequence[RankSummary]) -> list[Rank]:
    return [
        msgspec.structs.replace(summary.rank, device_work=list_device_work(summary.kernels))
        for summary in summaries
        if summary.rank is not None
    ]


def measure_start(ranks: Sequence[Rank], asked_first_step: int | None) -> StartSkew:
    """Compares the windows: spread of the starts, and whether the first iteration is the same one."""
    starts = [rank.start_ns for rank in ranks if rank.time_origin == "unix"]
    same: bool | None = None
    verified_by: Literal["agent_steps", "profiler_steps", "none"] = "none"
    if len(ranks) > 1 and all(rank.first_step is not None for rank in ranks):
        same, verified_by = len({rank.first_step for rank in ranks}) == 1, "agent_steps"
    elif len(ranks) > 1 and all(rank.index_from == "profiler_step" and rank.iterations for rank in ranks):
        same, verified_by = len({rank.iterations[0].index for rank in ranks}) == 1, "profiler_steps"
    return StartSkew(
        ranks=[
            RankStart(
                rank=rank.rank,
                source=rank.source,
                start_ns=rank.start_ns,
                first_step=rank.first_step,
                verified=None
                if asked_first_step is None or rank.first_step is None
                else rank.first_step == asked_first_step,
            )
            for rank in ranks
        ],
        spread_ns=max(starts) - min(starts) if len(starts) > 1 and len(starts) == len(ranks) else None,
        same_first_iteration=same,
        verified_by=verified_by,
        hosts=len({rank.host_name for rank in ranks if rank.host_name}),
    )


def _total(ranks: Sequence[Rank], kind: str) -> list[KindTotal]:
    chosen = [rank for rank in ranks if rank.kind == kind and RankSection.TIME not in rank.lost]
    if not chosen:
        return []
    time_ns = add([rank.time_ns for rank in chosen])
    idle = [rank.idle_ns for rank in chosen if rank.idle_ns is not None]
    if len(idle) < len(chosen):  # the causes would not add up to the idle time
        idle = []
    return [
        KindTotal(
            kind=chosen[0].kind,
            time_basis=chosen[0].time_basis,
            ranks=len(chosen),
            time_ns=time_ns,
            idle_ns=add_idle(idle) if idle else None,
            unrecorded=_add_unrecorded(chosen),
        )
    ]


def _add_unrecorded(ranks: Sequence[Rank]) -> list[UnrecordedTime]:
    times: Counter[UnrecordedReason] = Counter()
    for rank in ranks:
        for one in rank.unrecorded:
            times[one.reason] += one.time_ns
    return [UnrecordedTime(reason=reason, time_ns=time_ns) for reason, time_ns in times.items()]


def _join_hosts(hosts: Sequence[HostSeries]) -> list[HostSeries]:
    """One entry per host: every rank's sidecar samples the same machine, so the lowest rank's series stand for all."""
    by_name: dict[str, list[HostSeries]] = {}
    for host in hosts:
        by_name.setdefault(host.host_name, []).append(host)
    return [
        HostSeries(
            host_name=name,
            ranks=sorted({rank for host in group for rank in host.ranks}),
            series=min(group, key=lambda host: (host.ranks or [1 << 31], str(host.series))).series,
        )
        for name, group in sorted(by_name.items())
    ]


def _missing(ledger: Ledger, summaries: Sequence[RankSummary]) -> list[Problem]:
    here = {summary.rank_number for summary in summaries}
    return [
        Problem(
            kind=ProblemKind.RANK_MISSING,
            message="the ledger says uploaded, but the store holds no trace",
            rank=entry.rank,
        )
        for entry in ledger.entries
        if entry.state == RankState.UPLOADED and entry.rank not in here
    ]


def _first_step_problems(ranks: Sequence[Rank], requested_step: int | None) -> list[Problem]:
    return [
        Problem(
            kind=ProblemKind.FIRST_STEP_DIFFERS,
            message=f"asked for step {requested_step} first, recorded from step {rank.first_step}",
            source=rank.source,
            rank=rank.rank,
        )
        for rank in ranks
        if requested_step is not None and rank.first_step is not None and rank.first_step != requested_step
    ]
