"""The headline figures of a report. Pure; texts are cut to what a catalog keeps."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from fleetprof_api.report.efficiency import Throughput
from fleetprof_api.report.report import Report, TimeBreakdown
from fleetprof_api.slices.head import Figures, Head

from fleetprof_analyzer.slices.figures import find_iteration_ns, find_power_mw, measured_ranks
from fleetprof_analyzer.views.answer.answer import give_answer

_MOST_STRAGGLERS: Final = 8
_MOST_NAME: Final = 253
_MOST_SENTENCE: Final = 2048


def make_head(report: Report, most: int) -> Head:
    """The slice, with at most so many hosts."""
    total = report.totals[0] if report.totals else None
    time_ns = TimeBreakdown() if total is None else total.time_ns
    late = report.stragglers
    on_gpu = total is not None and total.kind == "gpu"
    hosts = list(dict.fromkeys(rank.host_name[:_MOST_NAME] for rank in report.ranks if rank.host_name))
    return Head(
        figures=Figures(
            rank_count=len(report.ranks),
            kind="" if total is None else total.kind,
            gpu=_most_frequent(rank.device_name for rank in measured_ranks(report)) if on_gpu else "",
            torch_version=_most_frequent(rank.torch_version for rank in measured_ranks(report)),
            iteration_ns=find_iteration_ns(report),
            span_ns=time_ns.span,
            compute_ns=time_ns.compute,
            overlapped_communication_ns=time_ns.overlapped_communication,
            exposed_communication_ns=time_ns.exposed_communication,
            exposed_memory_ns=time_ns.exposed_memory,
            idle_ns=time_ns.idle,
            busy_permille=_permille(time_ns.span - time_ns.idle - time_ns.unrecorded, time_ns.span),
            exposed_communication_permille=_permille(time_ns.exposed_communication, time_ns.span),
            power_mw=find_power_mw(report),
            rank_samples_per_ks=_count_samples(report.throughput),
            model_utilization_permille=_find_utilization(report),
            verdict=late.verdict if late else "not_judged",
            stragglers=[one.rank for one in late.ranks[:_MOST_STRAGGLERS]] if late else [],
            gain_permille=min(1000, max(0, round(1000 * late.gain))) if late else 0,
            top_finding=report.findings[0].kind if report.findings else "",
            top_finding_permille=report.findings[0].gain_permille if report.findings else 0,
            sentence=give_answer(report).sentence[:_MOST_SENTENCE],
        ),
        hosts=hosts[:most],
        cut=max(0, len(hosts) - most),
    )


def _count_samples(throughput: Throughput | None) -> int | None:
    """Samples of one rank in 1,000 s: by the pods' label, else the rows of an iteration."""
    if throughput is None or not throughput.ranks:
        return None
    of_job, of_rank = throughput.samples_per_second, throughput.rows_per_second
    found = of_rank if of_job is None else of_job / throughput.ranks
    return None if found is None else round(1000 * found)


def _find_utilization(report: Report) -> int | None:
    most = max(report.efficiency, key=lambda one: one.ranks, default=None)
    return None if most is None else most.model_utilization_permille


def _permille(part: int, whole: int) -> int | None:
    return min(1000, max(0, round(1000 * part / whole))) if whole > 0 else None


def _most_frequent(texts: Iterable[str]) -> str:
    counted = Counter(each for each in texts if each)
    return counted.most_common(1)[0][0][:_MOST_NAME] if counted else ""
