"""A capture's objects as rows of the catalog.

Guarantees: pure; texts of traces are cut, without control characters, and fit their columns; integers fit 64 bits, so
that no report can make a statement fail.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleetprof_analyzer.views.answer.answer import give_answer
from fleetprof_api.ledger import Ledger, LedgerEntry, RankState
from fleetprof_api.plain_text import make_printable
from fleetprof_api.report.report import Rank, Report
from fleetprof_api.stored_request import ProfileRequest

from fleetprof_webui.catalog.schema import UNKNOWN
from fleetprof_webui.reports.figures import find_iteration_ns, find_power_mw, lateness_by_rank, measured_ranks

RUNNING: Final = "Running"
SELECTOR: Final = "Selector"
_MOST: Final = (1 << 63) - 1
_MOST_INTEGER: Final = (1 << 31) - 1
_MOST_STRAGGLERS: Final = 8
_MOST_LABELS: Final = 32
# What controllers and fleetprof write: no two workloads share it, or all do.
_MADE: Final = re.compile(r"(^|/)(controller-uid|pod-template-hash|job-name|fleetprof\.io)($|/)|^fleetprof\.io/")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReportRows:
    """What the catalog's tables hold of one report."""

    report: Row
    ranks: list[Row]
    findings: list[Row]


def name_workload(request: ProfileRequest | None, ledger: Ledger | None, uid: str) -> tuple[str, str]:
    """(kind, name) of what was captured; where nothing says it, the capture itself."""
    target = None if request is None else request.spec.target
    if target is not None and target.workload is not None:
        return _text(target.workload.kind, 64), _text(target.workload.name, 400)
    if target is not None and target.selector is not None:
        labels = [f"{key}={value}" for key, value in sorted((target.selector.match_labels or {}).items())]
        labels += [f"{one.key} {one.operator}" for one in target.selector.match_expressions or []]
        return SELECTOR, _text(",".join(labels), 400)
    return "", _text(ledger.name if ledger else "", 400) or uid


def label_texts(request: ProfileRequest | None, ledger: Ledger | None) -> list[str]:
    """`key=value` of the labels by which people know a workload: of its pods, and those that a selector names."""
    found = dict(ledger.labels) if ledger is not None else {}
    if request is not None and request.spec.target.selector is not None:
        found |= request.spec.target.selector.match_labels or {}
    kept = [(key, value) for key, value in sorted(found.items()) if not _MADE.search(key)]
    return sorted({_text(f"{key}={value}", 400) for key, value in kept[:_MOST_LABELS]})


def request_row(ledger: Ledger | None, uid: str) -> Row:
    """What the ledger says; `state` is the reason of the Succeeded condition."""
    if ledger is None:
        ledger = Ledger(uid=uid, name="", namespace="")
    reached = Counter(stage for entry in ledger.entries for stage in _reached(entry))
    return {
        "name": _text(ledger.name, 253) or uid,
        "requester": _text(ledger.requester, 253),
        "state": state_of(ledger),
        "message": _text(ledger.message, 1024),
        "finished": bool(ledger.completed_unix_ns),
        "submitted_unix_ns": _number(ledger.submitted_unix_ns),
        "completed_unix_ns": _number(ledger.completed_unix_ns),
        "targeted": len(ledger.entries),
        **{stage: reached[stage] for stage in ("armed", "captured", "uploaded", "failed")},
    }


def state_of(ledger: Ledger) -> str:
    """The reason of the Succeeded condition, by which `kubectl` tells the state as well."""
    succeeded = next((one.reason for one in ledger.conditions if one.type == "Succeeded"), "")
    return _text(ledger.outcome or succeeded, 64) or RUNNING


def report_rows(report: Report) -> ReportRows:
    """The headline figures of a report, of its ranks, and its findings."""
    total = report.totals[0] if report.totals else None
    of_kind = measured_ranks(report)
    time_ns = total.time_ns if total is not None else None
    span = time_ns.span if time_ns else 0
    late = report.stragglers
    devices = Counter(rank.device_name for rank in of_kind if rank.device_name)
    versions = Counter(rank.torch_version for rank in of_kind if rank.torch_version)
    parts = ("compute", "overlapped_communication", "exposed_communication", "exposed_memory", "idle")
    row = {
        "kind": total.kind if total is not None else "",
        "gpu": _text(_first(devices), 128) if total is not None and total.kind == "gpu" else "",
        "torch_version": _text(_first(versions), 64),
        "rank_count": len(report.ranks),
        "iteration_ns": _number(find_iteration_ns(report)),
        "span_ns": _number(span),
        **{f"{part}_ns": _number(getattr(time_ns, part) if time_ns else 0) for part in parts},
        "busy_permille": _permille(span - time_ns.idle - time_ns.unrecorded, span) if time_ns else UNKNOWN,
        "exposed_communication_permille": _permille(time_ns.exposed_communication, span) if time_ns else UNKNOWN,
        "power_mw": _number(find_power_mw(report)),
        "verdict": late.verdict if late else "not_judged",
        "stragglers": ",".join(str(one.rank) for one in late.ranks[:_MOST_STRAGGLERS])[:128] if late else "",
        "gain_permille": min(1000, max(0, round(1000 * late.gain))) if late else 0,
        "top_finding": _text(report.findings[0].kind, 64) if report.findings else "",
        "sentence": _text(give_answer(report).sentence, 2048),
    }
    return ReportRows(row, _rank_rows(report), _finding_rows(report))


def _rank_rows(report: Report) -> list[Row]:
    late = lateness_by_rank(report)
    return [_rank_row(position, rank, late) for position, rank in enumerate(report.ranks)]


def _rank_row(position: int, rank: Rank, late: Mapping[int, int]) -> Row:
    number = UNKNOWN if rank.rank is None else min(max(rank.rank, UNKNOWN), _MOST_INTEGER)
    return {
        "position": position,
        "rank": number,
        "host_name": _text(rank.host_name, 253),
        "span_ns": _number(rank.time_ns.span),
        "compute_ns": _number(rank.time_ns.compute),
        "exposed_communication_ns": _number(rank.time_ns.exposed_communication),
        "exposed_memory_ns": _number(rank.time_ns.exposed_memory),
        "idle_ns": _number(rank.time_ns.idle),
        "lateness_ns": _number(late.get(number)),
    }


def _finding_rows(report: Report) -> list[Row]:
    return [
        {
            "position": position,
            "kind": _text(finding.kind, 64),
            "gain_permille": min(finding.gain_permille, _MOST_INTEGER),
            "message": _text(finding.message, 1024),
        }
        for position, finding in enumerate(report.findings)
    ]


def _reached(entry: LedgerEntry) -> list[str]:
    stages = []
    if entry.armed_unix_ns:
        stages.append("armed")
    if entry.written_unix_ns or entry.state is RankState.UPLOADED:
        stages.append("captured")
    if entry.state in (RankState.UPLOADED, RankState.FAILED):
        stages.append(entry.state.value.lower())
    return stages


def _permille(part: int, whole: int) -> int:
    return min(1000, max(0, round(1000 * part / whole))) if whole > 0 else UNKNOWN


def _number(value: int | None) -> int:
    return UNKNOWN if value is None else max(UNKNOWN, min(value, _MOST))


def _first(counted: Counter[str]) -> str:
    return counted.most_common(1)[0][0] if counted else ""


def _text(text: str, most: int) -> str:
    shown = make_printable(text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"
